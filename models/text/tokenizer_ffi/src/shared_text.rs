//! A text that is the first one of many pairs: its tokens are found once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokenizers::Tokenizer;

use crate::abi::Failure;
use crate::encode::{self, EncodeOptions};
use crate::long_text::LongEncoding;

/// Filled by the first pair; a pair with another text or other options fills it anew.
#[derive(Default)]
pub struct SharedText {
    kept: Mutex<Option<Arc<Kept>>>,
    reads: AtomicUsize,
}

struct Kept {
    key: Key,
    text: String,
    tokens: LongEncoding,
}

/// All that the tokens depend on, beside the text.
#[derive(PartialEq)]
struct Key {
    tokenizer: usize, // The address, which a handle keeps while it lives.
    byte_offsets: u8,
    max_length: u32,
    cut_left: u8,
    keep_first: u32,
}

impl SharedText {
    /// How often the text was tokenised.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// All tokens that truncation can leave of `text`, and the count of all. Whoever comes while the
    /// text is tokenised waits for the tokens.
    pub fn tokens(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        options: &EncodeOptions,
    ) -> Result<LongEncoding, Failure> {
        let key = Key {
            tokenizer: std::ptr::from_ref(tokenizer) as usize,
            byte_offsets: options.byte_offsets,
            max_length: options.max_length,
            cut_left: options.cut_left,
            keep_first: options.keep_first,
        };
        let kept = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            match kept.as_ref() {
                Some(kept) if kept.key == key && kept.text == text => kept.clone(),
                _ => {
                    self.reads.fetch_add(1, Ordering::Relaxed);
                    let read = Arc::new(Kept {
                        key,
                        text: text.to_owned(),
                        tokens: encode::beginning_or_end(tokenizer, text, options)?,
                    });
                    kept.insert(read).clone()
                }
            }
        };
        Ok(LongEncoding {
            encoding: kept.tokens.encoding.clone(),
            ..kept.tokens
        })
    }
}
