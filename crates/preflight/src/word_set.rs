//! A quick no for words that are not in a small set.

/// What lengths the words of a set have, by their first byte.
pub(crate) struct WordSet([u16; 256]);

impl WordSet {
    /// For words of at most 15 bytes.
    pub(crate) const fn new(words: &[&str]) -> Self {
        let mut lengths = [0; 256];
        let mut index = 0;
        while index < words.len() {
            let word = words[index].as_bytes();
            lengths[word[0] as usize] |= 1 << word.len();
            index += 1;
        }
        Self(lengths)
    }

    /// Whether the set has a word of this length with this first byte: few others pass. It does not branch on what cannot
    /// be predicted.
    #[inline]
    pub(crate) fn may_hold(&self, word: &[u8]) -> bool {
        word.first().is_some_and(|&first| u32::from(self.0[first as usize]) >> word.len().min(16) & 1 == 1)
    }
}
