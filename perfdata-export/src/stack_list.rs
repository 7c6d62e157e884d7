//! Stacks of numbers in one list.

/// Lists of numbers, one after the other.
#[derive(Debug, Default)]
pub(crate) struct StackList {
    numbers: Vec<u32>,
    ends: Vec<usize>,
}

impl StackList {
    /// Adds a stack, and returns its number, which counts from 0.
    pub fn push(&mut self, stack: impl Iterator<Item = u32>) -> u32 {
        self.numbers.extend(stack);
        self.ends.push(self.numbers.len());
        u32::try_from(self.ends.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Returns a stack; an empty one if there is none with this number.
    pub fn get(&self, number: u32) -> &[u32] {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let start = match at.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let range = start.zip(self.ends.get(at).copied());
        let stack = range.and_then(|(start, end)| self.numbers.get(start..end));
        stack.unwrap_or_default()
    }

    /// Returns all stacks.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..).map(|number| self.get(number)).take(self.ends.len())
    }

    /// Returns the number of stacks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns how many numbers all stacks have.
    pub fn size(&self) -> usize {
        self.numbers.len()
    }

    /// Removes all stacks.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_keep_their_numbers() {
        let mut list = StackList::default();
        let stacks = [vec![7, 8], vec![], vec![9]];
        let numbers: Vec<u32> = stacks
            .iter()
            .map(|stack| list.push(stack.iter().copied()))
            .collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(list.iter().eq(stacks.iter().map(Vec::as_slice)));
        assert_eq!((list.len(), list.size()), (3, 3));
        assert_eq!(list.get(3), [0_u32; 0]);
        list.clear();
        assert_eq!(list.push([4].into_iter()), 0);
        assert_eq!(list.get(0), [4]);
    }
}
