//! The first tokens of a long text that has no safe cut, from a beginning of it.
//!
//! A beginning is cut at several characters in a row. If the wanted tokens are the same for all of
//! these cuts, and end far before them, the rest of the text does not change them: the best path of
//! a Unigram model to any later place leads through one of as many places in a row as its longest
//! piece has characters, and all paths to these begin alike. Merges and longest matches look less
//! far. Where the tokens differ, as in a run of one character whose length decides, the beginning
//! grows, and so it does where an added token behind it may reach into the wanted tokens.

use tokenizers::{Encoding, ModelWrapper, Tokenizer};

use crate::abi::Failure;
use crate::cut_plan::CutPlan;
use crate::long_text::{Bounds, LongEncoding};

/// Cuts that are compared, unless pieces are longer.
const FEWEST_CUTS: usize = 8;
const MOST_CUTS: usize = 64;

/// Bytes that so many tokens hardly exceed, and that are read at once.
pub fn likely_bytes(tokens: usize, bounds: &Bounds) -> usize {
    let least = bounds.piece.min(4096);
    tokens.saturating_mul(8).clamp(least, bounds.piece)
}

/// `impossible` makes the failure of a text of which only the whole would tell.
pub fn encode(
    tokenizer: &Tokenizer,
    text: &str,
    bounds: &Bounds,
    impossible: impl Fn() -> Failure,
) -> Result<LongEncoding, Failure> {
    let wanted = bounds
        .enough
        .filter(|_| CutPlan::begins_alike(tokenizer))
        .ok_or_else(&impossible)?;
    let cuts = cuts_of(tokenizer);
    let reach = Reach::of(tokenizer);
    let mut size = likely_bytes(wanted, bounds);
    let mut margin = size / 4;
    loop {
        bounds.check_stop()?;
        if size >= text.len().min(bounds.longest_beginning()) {
            break;
        }
        let read = tokenizer.encode(&text[..text.floor_char_boundary(size)], false)?;
        size *= 4;
        if read.len() < wanted {
            continue;
        }
        let ends = read.get_offsets()[..wanted].iter();
        let end = ends.map(|offset| offset.1).max().unwrap_or(0);
        let from = end + margin;
        margin *= 4;
        if reach.is_over(text, end, from) {
            continue;
        }
        if let Some(encoding) = settled(tokenizer, text, from, cuts, wanted, bounds)? {
            return Ok(LongEncoding {
                tokens: encoding.len().saturating_sub(cuts).max(wanted),
                encoding,
                complete: false,
            });
        }
    }
    if text.len() > bounds.longest_beginning() {
        return Err(impossible());
    }
    let encoding = bounds.encode(tokenizer, text)?;
    Ok(LongEncoding {
        tokens: encoding.len(),
        encoding,
        complete: true,
    })
}

/// How far added tokens reach to the left of their end.
struct Reach {
    longest: usize,     // Bytes of one.
    takes_spaces: bool, // One takes all white space before it, too.
}

impl Reach {
    fn of(tokenizer: &Tokenizer) -> Reach {
        let tokens = tokenizer.get_added_tokens_decoder();
        let lengths = tokens.values().map(|token| token.content.len());
        Reach {
            longest: lengths.max().unwrap_or(0),
            takes_spaces: tokens.values().any(|token| token.lstrip),
        }
    }

    /// Whether a token that is not written whole before `to` may begin before `end`.
    fn is_over(&self, text: &str, end: usize, to: usize) -> bool {
        let seen = &text[..text.floor_char_boundary(to)];
        let behind = seen.get(end..).unwrap_or_default();
        let behind = match self.takes_spaces {
            true => behind.trim_start(),
            false => behind,
        };
        behind.len() < self.longest
    }
}

fn cuts_of(tokenizer: &Tokenizer) -> usize {
    let ModelWrapper::Unigram(unigram) = tokenizer.get_model() else {
        return FEWEST_CUTS;
    };
    let longest = unigram.iter().map(|piece| piece.0.chars().count()).max();
    longest.unwrap_or(0).clamp(FEWEST_CUTS, MOST_CUTS)
}

/// The encoding of the longest of `cuts` beginnings, the shortest of which ends at `from`. None unless
/// all of them begin with the same `wanted` tokens.
fn settled(
    tokenizer: &Tokenizer,
    text: &str,
    from: usize,
    cuts: usize,
    wanted: usize,
    bounds: &Bounds,
) -> Result<Option<Encoding>, Failure> {
    if from >= text.len().min(bounds.longest_beginning()) {
        return Ok(None);
    }
    let from = text.floor_char_boundary(from);
    let places = text[from..].char_indices().take(cuts);
    let mut first: Option<Encoding> = None;
    for (at, _) in places {
        bounds.check_stop()?;
        let encoding = bounds.encode(tokenizer, &text[..from + at])?;
        if encoding.len() < wanted {
            return Ok(None);
        }
        if first
            .as_ref()
            .is_some_and(|f| !begin_alike(f, &encoding, wanted))
        {
            return Ok(None);
        }
        first = Some(encoding);
    }
    Ok(first)
}

fn begin_alike(one: &Encoding, other: &Encoding, count: usize) -> bool {
    one.get_ids()[..count] == other.get_ids()[..count]
        && one.get_offsets()[..count] == other.get_offsets()[..count]
        && one.get_word_ids()[..count] == other.get_word_ids()[..count]
}
