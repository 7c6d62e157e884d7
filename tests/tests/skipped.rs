//! Prints the tests that were skipped on this machine. `cargo test` runs the test programs of a
//! package in alphabetical order, so this is the last one.

fn main() {
    match perfdata_tests::skipped::take_table() {
        Some(table) => println!("\n{table}"),
        None => println!("\nNo test noted that it lacks anything on this machine.\n"),
    }
}
