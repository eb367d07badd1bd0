//! A text in lower case, and where its parts lie in the text as it came.
//!
//! Lower case is that of Unicode's full mapping, as in Python's `str.lower`: a final sigma minds
//! its neighbours, and U+0130 becomes two characters. The text changes before the tokenizer looks
//! for its added tokens, so that `[MASK]` in it is no mask.

use crate::encode::Encoded;

/// A character that is longer or shorter in lower case; all others only move.
struct Resized {
    lowered: (usize, usize),
    original: (usize, usize),
}

pub struct Lowered {
    pub text: String,
    resized: Vec<Resized>,
}

impl Lowered {
    /// Offsets count bytes, or else code points.
    pub fn new(original: &str, bytes: bool) -> Lowered {
        let mut resized = Vec::new();
        if !original.is_ascii() {
            let (mut to, mut from) = (0, 0);
            for c in original.chars() {
                let (length, lower) = match bytes {
                    true => (c.len_utf8(), c.to_lowercase().map(char::len_utf8).sum()),
                    false => (1, c.to_lowercase().count()),
                };
                if length != lower {
                    resized.push(Resized {
                        lowered: (to, to + lower),
                        original: (from, from + length),
                    });
                }
                to += lower;
                from += length;
            }
        }
        Lowered {
            text: original.to_lowercase(),
            resized,
        }
    }

    /// The place in the original where what begins at `at` begins.
    fn begin(&self, at: usize) -> usize {
        let before = self.resized.partition_point(|r| r.lowered.0 <= at);
        match before.checked_sub(1).map(|i| &self.resized[i]) {
            Some(r) if at < r.lowered.1 => r.original.0,
            Some(r) => at - r.lowered.1 + r.original.1,
            None => at,
        }
    }

    /// The place in the original where what ends at `at` ends.
    fn end(&self, at: usize) -> usize {
        let before = self.resized.partition_point(|r| r.lowered.0 < at);
        match before.checked_sub(1).map(|i| &self.resized[i]) {
            Some(r) if at < r.lowered.1 => r.original.1,
            Some(r) => at - r.lowered.1 + r.original.1,
            None => at,
        }
    }
}

/// Makes the offsets of `encoded` those of the texts as they came.
pub fn restore_offsets(encoded: &mut Encoded, first: &Lowered, second: Option<&Lowered>) {
    for window in &mut encoded.windows {
        let tokens = window
            .sequences
            .iter()
            .zip(window.offsets.chunks_exact_mut(2));
        for (sequence, offsets) in tokens {
            let text = match *sequence {
                0 => first,
                1 => second.unwrap_or(first),
                _ => continue,
            };
            let (begin, end) = (offsets[0] as usize, offsets[1] as usize);
            offsets[0] = text.begin(begin) as u32;
            offsets[1] = text.end(end).max(text.begin(begin)) as u32;
        }
    }
}
