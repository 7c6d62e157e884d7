// Compiled by rustc alone: iterators, closures, a map and strings.
use std::collections::HashMap;

fn main() {
    let mut words: HashMap<String, usize> = HashMap::new();
    for number in 0..400_usize {
        let word = format!("{:x}", number * 7919 % 61);
        *words.entry(word).or_default() += number;
    }
    let mut list: Vec<(String, usize)> = words.into_iter().collect();
    list.sort_by_key(|(word, sum)| (sum % 11, word.clone()));
    let total: usize = list.iter().filter(|(word, _)| word.len() > 1).map(|(_, sum)| sum).sum();
    println!("{total}");
}
