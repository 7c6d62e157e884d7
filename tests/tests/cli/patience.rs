//! Scenarios in which several processes must reach certain points within a certain time. A busy
//! machine may stop each of them for seconds.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a scenario with the usual times, and if it fails, again with several times as long ones.
/// `scenario` is given the factor. The last failure counts.
pub fn patiently(scenario: impl Fn(u32)) {
    for factor in [1, 4] {
        if catch_unwind(AssertUnwindSafe(|| scenario(factor))).is_ok() {
            return;
        }
        eprintln!("again, with more time than {factor} times the usual one");
    }
    scenario(16);
}
