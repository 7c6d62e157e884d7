//! A function that is too large to be inlined, called from a loop that runs often and from one that
//! does not.

fn mix(table: &[u64; 64], n: u64, seed: u64) -> u64 {
    let mut sum = seed;
    let at = |index: u64| table[(index % 64) as usize];
    macro_rules! rounds {
        ($($shift:literal)*) => {
            $(
                sum ^= at(sum.wrapping_add(n)) >> $shift;
                sum = match sum & 1 {
                    1 => sum.wrapping_add(n.wrapping_mul(at(sum >> $shift))),
                    _ => sum.wrapping_sub(at(n.wrapping_add($shift))),
                };
            )*
        };
    }
    rounds!(1 2 3 4 5 6 7 8 9 10 11 12);
    sum
}

#[no_mangle]
#[inline(never)]
fn often(table: &[u64; 64], n: u64) -> u64 {
    (0..n).fold(0, |sum: u64, i| sum.wrapping_add(mix(table, i, sum)))
}

#[no_mangle]
#[inline(never)]
fn seldom(table: &[u64; 64], n: u64) -> u64 {
    if n > 1000 { mix(table, n, n) } else { n }
}

fn main() {
    let table = std::array::from_fn(|i| (i as u64).wrapping_mul(2_654_435_761));
    std::process::exit((often(&table, 300).wrapping_add(seldom(&table, 3)) & 127) as i32);
}
