//! Prints what the tests before it could not do on this machine. `cargo test` runs the test programs of a package in
//! the order of their names.

fn main() {
    match perfdata_tests::skipped::take_table() {
        Some(table) => println!("\n{table}"),
        None => println!("\nNo test noted that it lacks anything on this machine.\n"),
    }
}
