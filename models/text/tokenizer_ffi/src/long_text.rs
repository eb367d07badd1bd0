//! Long texts, tokenised in windows: the tokens of the whole text, in memory bounded by a window
//! and the tokens that are kept.
//!
//! A window begins where a word begins, and ends at a safe cut (cut_plan.rs). Where there is none,
//! and the words are GPT-2's:
//!
//! * all words of the window but those near its end are words of the text. The expression that
//!   finds them goes from left to right, looks at nothing before a match and at most three
//!   characters behind one, or at the first that is not white space. The next window begins behind
//!   the last of these words.
//! * of a word longer than a window, the rest is a word with the same end (but for apostrophes, see
//!   `is_contraction`), and merges give tokens t1 t2 ... of which any two neighbours,
//!   merged alone, stay as they are; and any sequence with that property is what merging the whole
//!   gives (the first merge across a border between two tokens would happen with these two alone
//!   as well). So the next window may begin at a token of this one, if its first token is the same.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use tokenizers::{Encoding, Tokenizer};

use crate::abi::Failure;
use crate::beginning;
use crate::cut_plan::CutPlan;

/// How much is read and kept.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    pub piece: usize,          // Bytes of a window.
    pub keep: usize,           // Tokens.
    pub keep_last: bool,       // Tokens at the end are kept instead of the first.
    pub keep_first: usize,     // So many at the beginning are kept, too.
    pub most: Option<usize>,   // More tokens than that need not all be counted in a very long text.
    pub enough: Option<usize>, // Tokens that are wanted; more need be neither counted nor kept.
    pub chars: bool,           // Offsets in code points instead of bytes.
    pub stop: Option<&'a AtomicBool>,
}

impl Bounds<'_> {
    /// Texts up to that size are tokenised at once.
    pub fn at_once(&self) -> usize {
        4 * self.piece
    }
    /// A window grows so far where there is no place to end it.
    fn widest(&self) -> usize {
        16 * self.piece
    }
    /// All tokens of so many bytes are counted.
    pub fn counted(&self) -> usize {
        64 * self.piece
    }
    /// A text's beginning grows so far before its first tokens are given up.
    pub fn longest_beginning(&self) -> usize {
        256 * self.piece
    }
    /// Whoever waits has gone.
    pub fn check_stop(&self) -> Result<(), Failure> {
        match self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            true => Err(Failure::stopped()),
            false => Ok(()),
        }
    }
    pub fn encode(&self, tokenizer: &Tokenizer, text: &str) -> Result<Encoding, Failure> {
        Ok(if self.chars {
            tokenizer.encode_char_offsets(text, false)?
        } else {
            tokenizer.encode(text, false)?
        })
    }
    /// Bytes of the first window: enough for the wanted tokens of a text that is too long to be read
    /// whole for them, else a whole piece.
    fn first_window(&self, text: &str) -> usize {
        match self.enough {
            Some(enough) if text.len() > self.counted() => beginning::likely_bytes(enough, self),
            _ => self.piece,
        }
    }
    fn end_margin(&self) -> usize {
        16
    }
}

pub struct LongEncoding {
    pub encoding: Encoding, // The tokens kept; type 0.
    pub tokens: usize,      // Count of the text; a lower bound if not `complete`.
    pub complete: bool,
}

#[derive(Default)]
struct Kept {
    ids: Vec<u32>,
    tokens: Vec<String>,
    words: Vec<Option<u32>>,
    offsets: Vec<(usize, usize)>,
}

struct Window {
    start: usize,
    end: usize,
    piece: usize, // At most so many bytes were asked for.
    closed: bool, // Ends at a safe cut or with the text.
    encoding: Encoding,
    first_word: u32,                // First of the text's words.
    expected: Option<(u32, usize)>, // First token and its end, where the window begins in a word.
}

struct Reader<'a> {
    tokenizer: &'a Tokenizer,
    plan: &'a CutPlan,
    text: &'a str,
    bounds: Bounds<'a>,
    kept: Kept,
    total: usize,
    white: Cell<(usize, usize)>, // A run of white space whose end was looked for.
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether the word that begins with `rest` may be one such as 's or 'll. Such a word ends where
/// letters go on: what begins behind its apostrophe is a longer word, and an apostrophe that ends
/// other signs would begin such a word if they were left out.
fn is_contraction(rest: &str) -> bool {
    rest.strip_prefix('\'')
        .is_some_and(|letters| letters.starts_with(char::is_alphabetic))
}

fn too_wide(bounds: &Bounds) -> Failure {
    Failure::input(format!(
        "text has no place to split it within {} bytes; send it in parts",
        bounds.widest()
    ))
}

/// Tokens of `text` as the tokenizer gives them for the whole of it.
pub fn encode(
    tokenizer: &Tokenizer,
    plan: Option<&CutPlan>,
    text: &str,
    bounds: Bounds,
) -> Result<LongEncoding, Failure> {
    let short = match plan {
        Some(_) => bounds.at_once(),
        None => bounds.widest(),
    };
    if text.len() <= short {
        let encoding = bounds.encode(tokenizer, text)?;
        return Ok(LongEncoding {
            tokens: encoding.len(),
            encoding,
            complete: true,
        });
    }
    let mut reader = match plan {
        Some(plan) => Reader {
            tokenizer,
            plan,
            text,
            bounds,
            kept: Kept::default(),
            total: 0,
            white: Cell::default(),
        },
        None => return beginning::encode(tokenizer, text, &bounds, || too_wide(&bounds)),
    };
    let complete = match reader.read() {
        Ok(complete) => complete,
        Err(End::Failed(failure)) => return Err(failure),
        Err(End::NoCut) if reader.has_enough() => false,
        Err(End::NoCut) => {
            return beginning::encode(tokenizer, text, &bounds, || too_wide(&bounds))
        }
    };
    Ok(LongEncoding {
        tokens: reader.total,
        encoding: reader.finish(),
        complete,
    })
}

/// Why the windows do not reach the text's end.
enum End {
    NoCut,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        End::Failed(failure)
    }
}

impl From<tokenizers::Error> for End {
    fn from(error: tokenizers::Error) -> End {
        End::Failed(error.into())
    }
}

impl Reader<'_> {
    fn has_enough(&self) -> bool {
        self.bounds
            .enough
            .is_some_and(|enough| self.total >= enough)
    }

    /// Whether all was read.
    fn read(&mut self) -> Result<bool, End> {
        let mut window = self.open(0, 0, None, self.bounds.first_window(self.text))?;
        loop {
            self.bounds.check_stop()?;
            if window.closed {
                let words = window.encoding.get_word_ids().last().copied().flatten();
                self.take(&window, window.encoding.len());
                if window.end == self.text.len() {
                    return Ok(true);
                }
                let next = window.first_word + words.map_or(0, |last| last + 1);
                window = self.open(window.end, next, None, self.bounds.piece)?;
            } else if let Some(count) = self.finished_words(&window) {
                self.take(&window, count);
                let at = window.start + window.encoding.get_offsets()[count].0;
                let word = window.encoding.get_word_ids()[count].unwrap_or(0);
                let next = window.first_word + word;
                window = self.open(at, next, None, self.bounds.piece)?;
            } else if let Some((count, next)) = self.go_on_in_word(&window)? {
                self.take(&window, count);
                window = next;
            } else {
                let wider = 4 * window.piece;
                if wider > self.bounds.widest() {
                    return Err(End::NoCut);
                }
                let expected = window.expected;
                window = self.open(window.start, window.first_word, expected, wider)?;
                if !window.begins_as_expected() {
                    return Err(End::NoCut);
                }
            }
            if self.has_enough() && self.text.len() > self.bounds.counted() {
                return Ok(false);
            }
            let over = self.bounds.most.is_some_and(|most| self.total > most);
            if over && window.start >= self.bounds.counted() {
                return Ok(false);
            }
        }
    }

    fn open(
        &self,
        start: usize,
        first_word: u32,
        expected: Option<(u32, usize)>,
        piece: usize,
    ) -> Result<Window, End> {
        let (end, closed) = self.end_of(start, piece).ok_or(End::NoCut)?;
        let encoding = self.tokenizer.encode(&self.text[start..end], false)?;
        Ok(Window {
            start,
            end,
            piece,
            closed,
            encoding,
            first_word,
            expected,
        })
    }

    fn cut_before(&self, start: usize, target: usize) -> Option<usize> {
        let places = (start + 1..=target).rev();
        self.plan.first_of(self.tokenizer, self.text, places)
    }

    /// End of a window that begins at `start`, and whether that is a safe cut.
    fn end_of(&self, start: usize, piece: usize) -> Option<(usize, bool)> {
        let length = self.text.len();
        if length - start <= piece {
            return Some((length, true));
        }
        let target = floor(self.text, start + piece);
        if let Some(cut) = self.cut_before(start, target) {
            return Some((cut, true));
        }
        if self.plan.whole_bytes().is_some() {
            let mut end = target;
            while end > start && self.plan.touches_added(self.text, end) {
                end = floor(self.text, end - 1);
            }
            if end > start {
                return Some((end, false));
            }
        }
        let widest = length.min(start + self.bounds.widest());
        let cut = self
            .plan
            .first_of(self.tokenizer, self.text, target..=widest - 1);
        match cut {
            Some(cut) => Some((cut, true)),
            None if widest == length => Some((length, true)),
            None => None,
        }
    }

    /// How many tokens of an open window are those of words that the text has too, if a window may
    /// begin behind them.
    fn finished_words(&self, window: &Window) -> Option<usize> {
        let prefix_space = self.plan.whole_bytes()?.prefix_space;
        let seen = floor(
            self.text,
            window.end.saturating_sub(self.bounds.end_margin()),
        );
        if seen <= window.start {
            return None;
        }
        let (last_solid, _) = self.text[window.start..seen]
            .char_indices()
            .rfind(|(_, c)| !c.is_whitespace())?;
        let words = window.encoding.get_word_ids();
        let offsets = window.encoding.get_offsets();
        (1..words.len()).rev().find(|&i| {
            let at = offsets[i].0;
            let here = window.start + at;
            words[i] != words[i - 1]
                && offsets[i - 1].1 == at
                && at > 0
                && at <= last_solid
                && !self.text[..here].ends_with(char::is_whitespace)
                && (!prefix_space || self.text.as_bytes()[here] == b' ')
                && !self.plan.touches_added(self.text, here)
        })
    }

    /// In a word that the window does not end: how many tokens stay, and a window that begins with
    /// the next one.
    fn go_on_in_word(&self, window: &Window) -> Result<Option<(usize, Window)>, End> {
        if self
            .plan
            .whole_bytes()
            .is_none_or(|bytes| bytes.prefix_space)
        {
            return Ok(None);
        }
        let words = window.encoding.get_word_ids();
        let offsets = window.encoding.get_offsets();
        let length = window.end - window.start;
        if offsets.last().is_none_or(|last| last.1 != length) {
            return Ok(None);
        }
        let word = words[words.len() - 1];
        let first = words.iter().rposition(|w| *w != word).map_or(0, |i| i + 1);
        if is_contraction(&self.text[window.start + offsets[first].0..]) {
            return Ok(None);
        }
        for part in [8, 4, 2] {
            let from = length - (self.bounds.piece / part).min(length);
            let Some(i) = (first + 1..words.len()).find(|&i| {
                offsets[i].0 >= from
                    && offsets[i].0 == offsets[i - 1].1
                    && self.is_inside(window.start + offsets[i].0)
                    && !self
                        .plan
                        .touches_added(self.text, window.start + offsets[i].0)
            }) else {
                continue;
            };
            let start = window.start + offsets[i].0;
            let expected = (window.encoding.get_ids()[i], offsets[i].1 - offsets[i].0);
            let next = self.open(
                start,
                window.first_word + word.unwrap_or(0),
                Some(expected),
                self.bounds.piece,
            )?;
            if next.begins_as_expected() {
                return Ok(Some((i, next)));
            }
        }
        Ok(None)
    }

    /// Whether the word before `at` goes on there, and has its end where a word that begins there
    /// has it. The last of several white space characters may belong to the next word, and all of
    /// them to an added token behind.
    fn is_inside(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        if !rest.starts_with(char::is_whitespace) {
            return !rest.is_empty() && !is_contraction(rest);
        }
        rest.chars().nth(1).is_some_and(char::is_whitespace)
            && !self.plan.takes_spaces_before(self.text, self.white_end(at))
    }

    /// End of the white space at `at`.
    fn white_end(&self, at: usize) -> usize {
        let (begin, end) = self.white.get();
        if (begin..end).contains(&at) {
            return end;
        }
        let end = self.text.len() - self.text[at..].trim_start().len();
        self.white.set((at, end));
        end
    }

    /// The window's first `count` tokens are the text's next ones.
    fn take(&mut self, window: &Window, count: usize) {
        let kept = &mut self.kept;
        self.total += count;
        let room = match self.bounds.keep_last {
            true => count,
            false => count.min(self.bounds.keep - kept.ids.len()),
        };
        let encoding = &window.encoding;
        kept.ids.extend(&encoding.get_ids()[..room]);
        kept.tokens
            .extend_from_slice(&encoding.get_tokens()[..room]);
        let words = encoding.get_word_ids()[..room].iter();
        kept.words
            .extend(words.map(|w| w.map(|word| word + window.first_word)));
        let offsets = encoding.get_offsets()[..room].iter();
        kept.offsets
            .extend(offsets.map(|o| (o.0 + window.start, o.1 + window.start)));
        if kept.ids.len() > self.bounds.keep.saturating_mul(2) {
            self.drop_surplus();
        }
    }

    fn drop_surplus(&mut self) {
        let kept = &mut self.kept;
        let front = self.bounds.keep_first.min(kept.ids.len());
        let surplus = kept.ids.len().saturating_sub(self.bounds.keep);
        let surplus = front..surplus.max(front);
        kept.ids.drain(surplus.clone());
        kept.tokens.drain(surplus.clone());
        kept.words.drain(surplus.clone());
        kept.offsets.drain(surplus);
    }

    fn finish(mut self) -> Encoding {
        self.drop_surplus();
        let mut kept = std::mem::take(&mut self.kept);
        if self.bounds.chars {
            self.count_chars(&mut kept.offsets);
        }
        let count = kept.ids.len();
        Encoding::new(
            kept.ids,
            vec![0; count],
            kept.tokens,
            kept.words,
            kept.offsets,
            vec![0; count],
            vec![1; count],
            vec![],
            Default::default(),
        )
    }

    fn count_chars(&self, offsets: &mut [(usize, usize)]) {
        let mut places: Vec<usize> = offsets.iter().flat_map(|o| [o.0, o.1]).collect();
        places.sort_unstable();
        places.dedup();
        let bytes = self.text.as_bytes();
        let (mut at, mut chars) = (0, 0);
        let mut counts = Vec::with_capacity(places.len());
        for &place in &places {
            chars += bytes[at..place]
                .iter()
                .filter(|&&byte| byte & 0xC0 != 0x80)
                .count();
            at = place;
            counts.push(chars);
        }
        let count = |place: usize| places.binary_search(&place).map_or(0, |i| counts[i]);
        for offset in offsets {
            *offset = (count(offset.0), count(offset.1));
        }
    }
}

impl Window {
    fn begins_as_expected(&self) -> bool {
        self.expected.is_none_or(|(id, end)| {
            self.encoding.get_ids().first() == Some(&id)
                && self.encoding.get_offsets()[0] == (0, end)
        })
    }
}
