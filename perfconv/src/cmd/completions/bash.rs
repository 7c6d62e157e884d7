//! Completions of the command line for bash.
//!
//! A function examines the words before the current one: the command, whether an option requires a
//! value, and which options are no longer permitted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, ValueHint};

/// The part of the script that does not depend on the command line. The words in `@` are replaced.
const FRAME: &str = r#"# What makes bash complete perfconv's words.
_perfconv() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} before=${COMP_WORDS[COMP_CWORD-2]:-}
    local command= commands="@COMMANDS@" word gone=" " front=1 options= wants= rest=files
    COMPREPLY=()
    # bash takes --option=value for three words.
    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $prev == "=" ]]; then
        prev=$before before=${COMP_WORDS[COMP_CWORD-3]:-}
    else
        before=
    fi
    [[ -n $before || ${COMP_WORDS[COMP_CWORD]} == "=" ]] && prev+="="
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $front == 1 && " $commands help " == *" $word "* ]]; then
            command=$word front=
        elif [[ " @GENERAL@ " != *" $word "* ]]; then
            front=
        fi
        case $word in
@GONE@        esac
    done
    case $command in
@COMMAND@    esac
    if [[ -z $wants && $cur == -* ]]; then
        for word in $options; do
            [[ $gone == *" $word "* ]] || COMPREPLY+=($(compgen -W "$word" -- "$cur"))
        done
        return
    fi
    case ${wants:-$rest} in
        files)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            # A command has no options in front of it.
            [[ -n $front && -z $wants ]] && COMPREPLY+=($(compgen -W "$commands" -- "$cur"))
            ;;
        folders)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            ;;
        "list "*)
            word=
            [[ $cur == *,* ]] && word=${cur%,*},
            COMPREPLY=($(compgen -P "$word" -W "${wants#list }" -- "${cur##*,}"))
            ;;
        "words "*)
            word=${wants:-$rest}
            COMPREPLY=($(compgen -W "${word#words }" -- "$cur"))
            [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace 2>/dev/null
            ;;
    esac
}
complete -F _perfconv perfconv
"#;

/// Returns the script for the command line, after `Command::build`.
pub fn script(command: &Command) -> String {
    let subcommands = || {
        command
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
    };
    let names: Vec<&str> = subcommands().map(Command::get_name).collect();
    let globals = command
        .get_arguments()
        .filter(|arg| arg.is_global_set() && !takes_value(arg));
    let general: Vec<String> = globals.flat_map(words_of).collect();
    let mut gone: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for command in subcommands().chain([command]) {
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
            gone.entry(words_of(arg).join("|"))
                .or_default()
                .extend(refused_after(command, arg));
        }
    }
    let line = |(words, refused): (String, BTreeSet<String>)| {
        let refused: Vec<String> = refused.into_iter().collect();
        format!("            {words}) gone+=\"{} \" ;;\n", refused.join(" "))
    };
    let gone = gone
        .into_iter()
        .filter(|(_, refused)| !refused.is_empty())
        .map(line);
    let mut cases = case_of("\"\"", command, None);
    for command in subcommands() {
        cases += &case_of(command.get_name(), command, None);
    }
    cases += &case_of(
        "help",
        &Command::new("help"),
        Some(&format!("words {}", names.join(" "))),
    );
    FRAME
        .replace("@COMMANDS@", &names.join(" "))
        .replace("@GENERAL@", &general.join(" "))
        .replace("@GONE@", &gone.collect::<String>())
        .replace("@COMMAND@", &cases)
}

/// Returns the short and the long form of an option.
fn words_of(arg: &Arg) -> Vec<String> {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect()
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.takes_values())
}

/// Returns the options that must not follow `arg`: the option itself, unless it is repeatable, and
/// those that it conflicts with.
fn refused_after(command: &Command, arg: &Arg) -> impl Iterator<Item = String> {
    let is_repeated = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
    let own = if is_repeated {
        Vec::new()
    } else {
        words_of(arg)
    };
    let conflicts = command.get_arg_conflicts_with(arg);
    let reverse = command.get_arguments().filter(|other| {
        !other.is_positional()
            && command
                .get_arg_conflicts_with(other)
                .iter()
                .any(|id| id.get_id() == arg.get_id())
    });
    let alternatives = command
        .get_groups()
        .filter(|group| !(*group).clone().is_multiple())
        .flat_map(|group| {
            let members: Vec<_> = group
                .get_args()
                .filter_map(|id| command.get_arguments().find(|arg| arg.get_id() == id))
                .collect();
            if members.iter().any(|member| member.get_id() == arg.get_id()) {
                members
            } else {
                Vec::new()
            }
        });
    let others = conflicts
        .into_iter()
        .chain(reverse)
        .chain(alternatives)
        .filter(|other| other.get_id() != arg.get_id());
    let others: Vec<String> = others.flat_map(words_of).collect();
    own.into_iter().chain(others)
}

/// Returns the completions after the name of a command: its options, the values of options, and
/// other words.
fn case_of(pattern: &str, command: &Command, rest: Option<&str>) -> String {
    let options: Vec<String> = command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
        .flat_map(words_of)
        .collect();
    let mut case = format!(
        "        {pattern})\n            options=\"{}\"\n",
        options.join(" ")
    );
    let rest = rest.map(str::to_owned).or_else(|| {
        let values = command.get_positionals().next().map(wanted);
        // Without values, nothing is completed.
        values.or_else(|| Some("none".into()))
    });
    if let Some(rest) = rest.filter(|rest| rest != "files") {
        let _ = writeln!(case, "            rest=\"{rest}\"");
    }
    case += "            case $prev in\n";
    for arg in command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && takes_value(arg))
    {
        let joined = words_of(arg)
            .into_iter()
            .filter(|word| word.starts_with("--"))
            .map(|word| word + "=");
        let apart = words_of(arg)
            .into_iter()
            .filter(|_| !arg.is_require_equals_set());
        let patterns: Vec<String> = apart.chain(joined).collect();
        let _ = writeln!(
            case,
            "                {}) wants=\"{}\" ;;",
            patterns.join("|"),
            wanted(arg)
        );
    }
    case += "            esac\n            ;;\n";
    case
}

/// Returns the completions for the value of an argument.
fn wanted(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    if !values.is_empty() && takes_value(arg) {
        let names: Vec<&str> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name())
            .collect();
        let kind = if arg.get_value_delimiter().is_some() {
            "list"
        } else {
            "words"
        };
        return format!("{kind} {}", names.join(" "));
    }
    match arg.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath => "files".into(),
        ValueHint::DirPath => "folders".into(),
        _ => "none".into(),
    }
}
