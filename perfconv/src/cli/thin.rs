//! The options that make samples smaller.

use clap::Args;
use perfdata_core::attr::SampleType;
use perfdata_edit::thin::{StackSize, part};
use perfdata_recipe::Thinning;

/// Heading of these options.
const THIN: &str = "Samples to thin";

/// What to remove from samples.
#[derive(Debug, Clone, Args)]
pub struct ThinArgs {
    /// Keep the first N frames of each callchain
    ///
    /// perf script shows the output as it shows INPUT with its own --max-stack N. Frames that perf
    /// unwinds from user stacks (perf record --call-graph dwarf) are not in callchains.
    #[arg(long, value_name = "N", help_heading = THIN)]
    pub max_stack: Option<u32>,
    /// Cut user stacks to BYTES [default: remove only unused space]
    ///
    /// Applies to perf record --call-graph dwarf. 0 omits the stacks. Without BYTES, perf shows the
    /// same as before.
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = USED,
        value_parser = stack_size,
        help_heading = THIN
    )]
    pub stack_size: Option<StackSize>,
    /// Omit parts of samples (repeatable), in words of perf script -F
    ///
    /// For instance raw,brstack,uregs; an unknown word shows all of them. What a reader needs
    /// cannot be omitted.
    #[arg(long, value_name = "PART,…", value_delimiter = ',', value_parser = omitted, help_heading = THIN)]
    pub omit: Vec<SampleType>,
}

/// The value of `--stack-size` without BYTES.
const USED: &str = "used";

impl From<&ThinArgs> for Thinning {
    fn from(args: &ThinArgs) -> Self {
        let parts = args.omit.iter();
        let mut thinning = Thinning::default();
        thinning.max_stack = args.max_stack;
        thinning.stack_size = args.stack_size;
        thinning.omit = parts.fold(SampleType(0), |all, &part| all | part);
        thinning
    }
}

/// Parses the size of a user stack.
fn stack_size(text: &str) -> Result<StackSize, String> {
    if text == USED {
        return Ok(StackSize::Dumped);
    }
    let bytes = text.parse().ok().filter(|bytes| *bytes <= StackSize::MAX);
    bytes
        .map(StackSize::AtMost)
        .ok_or_else(|| format!("expected a number of bytes up to {}", StackSize::MAX))
}

/// Parses the name of a part.
fn omitted(word: &str) -> Result<SampleType, String> {
    part(word).map_err(|error| error.to_string())
}
