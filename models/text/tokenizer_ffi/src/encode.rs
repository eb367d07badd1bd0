//! Encoding with truncation of finished encodings.
//!
//! The crate can truncate while it tokenises, but its versions disagree on what is left then, and
//! the setting lives in the shared tokenizer. Here each text is encoded whole and without special
//! tokens, then cut with the crate's own rule, then put into the template.

use tokenizers::utils::truncation::TruncationError;
use tokenizers::{
    truncate_encodings, Encoding, PostProcessor, PostProcessorWrapper, Tokenizer,
    TruncationDirection, TruncationParams, TruncationStrategy,
};

use std::sync::atomic::AtomicBool;

use crate::abi::Failure;
use crate::cut_plan::CutPlan;
use crate::long_text::{self, Bounds, LongEncoding};
use crate::shared_text::SharedText;

/// Options of tokenizer_ffi.h, same layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EncodeOptions {
    pub stop: *const AtomicBool,
    pub first: *const SharedText,
    pub piece_bytes: u32,
    pub most_tokens: u32,
    pub max_length: u32,
    pub stride: u32,
    pub keep_first: u32,
    pub strategy: u8,
    pub cut_left: u8,
    pub add_special: u8,
    pub match_special: u8,
    pub byte_offsets: u8,
    pub windows: u8,
    pub lower_case: u8,
}

impl EncodeOptions {
    /// Keeps the first text's tokens for other pairs.
    fn shared(&self) -> Option<&SharedText> {
        // SAFETY: null, or the caller keeps it for the call.
        unsafe { self.first.as_ref() }.filter(|_| self.windows == 0)
    }
}

/// One sequence of tokens as plain arrays.
pub struct Window {
    pub ids: Vec<u32>,
    pub type_ids: Vec<u32>,
    pub offsets: Vec<u32>,
    pub words: Vec<i32>,
    pub sequences: Vec<i8>,
    pub special: Vec<u8>,
}

pub struct Encoded {
    pub windows: Vec<Window>,
    pub tokens_cut: usize,
    pub tokens: usize,
    pub counted: bool,
}

impl Window {
    fn new(encoding: &Encoding) -> Window {
        let word = |w: &Option<u32>| w.map_or(-1, |id| id as i32);
        let sequence = |s: Option<usize>| s.map_or(-1, |id| id as i8);
        Window {
            ids: encoding.get_ids().to_vec(),
            type_ids: encoding.get_type_ids().to_vec(),
            offsets: encoding
                .get_offsets()
                .iter()
                .flat_map(|o| [o.0 as u32, o.1 as u32])
                .collect(),
            words: encoding.get_word_ids().iter().map(word).collect(),
            sequences: encoding
                .get_sequence_ids()
                .into_iter()
                .map(sequence)
                .collect(),
            special: encoding
                .get_special_tokens_mask()
                .iter()
                .map(|&m| m as u8)
                .collect(),
        }
    }
}

/// `tokenizer` has neither truncation, padding nor a post-processor; `template` is the latter.
pub fn encode(
    tokenizer: &Tokenizer,
    template: Option<&PostProcessorWrapper>,
    a: &str,
    b: Option<&str>,
    options: &EncodeOptions,
) -> Result<Encoded, Failure> {
    let first = match options.shared() {
        Some(shared) => shared.tokens(tokenizer, a, options)?,
        None => whole(single(tokenizer, a, options)?),
    };
    let mut second = b.map(|b| single(tokenizer, b, options)).transpose()?;
    if let Some(encoding) = second.as_mut() {
        encoding.set_type_ids(vec![1; encoding.len()]);
    }
    let length = |x: &Encoding, y: &Option<Encoding>| x.len() + y.as_ref().map_or(0, |e| e.len());
    let before = first.tokens + second.as_ref().map_or(0, |e| e.len());
    let added = |pair| match template {
        Some(template) if options.add_special != 0 => template.added_tokens(pair),
        _ => 0,
    };
    let keeps_first = options.keep_first != 0 && options.windows == 0;
    let (mut first, mut second) = if keeps_first || options.shared().is_some() {
        cut_kept(first, second.map(whole), added(b.is_some()), options)?
    } else {
        truncate(template, first.encoding, second, options)?
    };
    let tokens_cut = before - length(&first, &second);
    if options.windows == 0 {
        first.take_overflowing();
        second.as_mut().map(|e| e.take_overflowing());
    }

    let encoding = wrap(template, first, second, options)?;
    let mut windows = vec![Window::new(&encoding)];
    if options.windows != 0 {
        windows.extend(encoding.get_overflowing().iter().map(Window::new));
    }
    Ok(Encoded {
        tokens: windows[0].ids.len() + tokens_cut,
        windows,
        tokens_cut,
        counted: true,
    })
}

fn single(tokenizer: &Tokenizer, text: &str, options: &EncodeOptions) -> Result<Encoding, Failure> {
    Ok(if options.byte_offsets != 0 {
        tokenizer.encode(text, false)?
    } else {
        tokenizer.encode_char_offsets(text, false)?
    })
}

fn whole(encoding: Encoding) -> LongEncoding {
    LongEncoding {
        tokens: encoding.len(),
        encoding,
        complete: true,
    }
}

/// The tokens of a first text that truncation may leave, whatever the second one is.
pub fn beginning_or_end(
    tokenizer: &Tokenizer,
    text: &str,
    options: &EncodeOptions,
) -> Result<LongEncoding, Failure> {
    let mut read = whole(single(tokenizer, text, options)?);
    let most = options.max_length as usize;
    if most > 0 {
        let front = kept_first(options, most);
        cut(&mut read.encoding, most, front, direction_of(options));
    }
    Ok(read)
}

fn direction_of(options: &EncodeOptions) -> TruncationDirection {
    match options.cut_left {
        0 => TruncationDirection::Right,
        _ => TruncationDirection::Left,
    }
}

/// `encode` for texts of any length in bounded memory, without further windows.
pub fn encode_long(
    tokenizer: &Tokenizer,
    plan: Option<&CutPlan>,
    template: Option<&PostProcessorWrapper>,
    a: &str,
    b: Option<&str>,
    options: &EncodeOptions,
) -> Result<Encoded, Failure> {
    let some = |number: u32| (number != 0).then_some(number as usize);
    let cut_to = some(options.max_length);
    let most = some(options.most_tokens).filter(|_| cut_to.is_none());
    let bounds = Bounds {
        piece: options.piece_bytes as usize,
        keep: cut_to.or(most).unwrap_or(usize::MAX),
        keep_last: cut_to.is_some() && options.cut_left != 0,
        keep_first: 0,
        most,
        enough: None,
        chars: options.byte_offsets == 0,
        // SAFETY: null, or the caller keeps it for the call.
        stop: unsafe { options.stop.as_ref() },
    };
    let added = match template {
        Some(template) if options.add_special != 0 => template.added_tokens(b.is_some()),
        _ => 0,
    };
    let over = |tokens: usize| most.is_some_and(|most| tokens + added > most);
    let uncounted = |tokens: usize, counted: bool| Encoded {
        windows: vec![Window::new(&Encoding::default())],
        tokens_cut: 0,
        tokens: tokens + added,
        counted,
    };
    let read = |text: &str, enough: Option<usize>| {
        long_text::encode(tokenizer, plan, text, Bounds { enough, ..bounds })
    };
    let read_first = |enough: Option<usize>| {
        if let Some(shared) = options.shared().filter(|_| a.len() <= bounds.at_once()) {
            return shared.tokens(tokenizer, a, options);
        }
        let keep_first = kept_first(options, options.max_length as usize);
        let bounds = Bounds {
            enough,
            keep_first,
            ..bounds
        };
        long_text::encode(tokenizer, plan, a, bounds)
    };
    // A token more than may stay, so that a text that is not counted is known to be longer.
    let enough = cut_to.filter(|_| options.cut_left == 0).map(|n| n + 1);
    let (first, second) = match b {
        None => (read_first(enough)?, None),
        // The longer text may get the odd token, so the shorter one is counted where there is one.
        Some(b) if a.len() <= b.len() => {
            let first = read_first(enough.filter(|_| !odd(options, added)))?;
            let least = enough.map(|tokens| tokens.max(first.tokens + 1));
            let second = read(b, least)?;
            (first, Some(second))
        }
        Some(b) => {
            let second = read(b, enough.filter(|_| !odd(options, added)))?;
            let least = enough.map(|tokens| tokens.max(second.tokens + 1));
            (read_first(least)?, Some(second))
        }
    };
    if most.is_some() && !first.complete {
        return Ok(uncounted(first.tokens, false));
    }
    let tokens = first.tokens + second.as_ref().map_or(0, |s| s.tokens);
    if over(tokens) {
        let counted = second.as_ref().is_none_or(|s| s.complete);
        return Ok(uncounted(tokens, counted));
    }
    let counted = first.complete && second.as_ref().is_none_or(|s| s.complete);
    let (first, second) = cut_kept(first, second, added, options)?;
    let tokens_left = first.len() + second.as_ref().map_or(0, Encoding::len);
    let second = second.map(|mut encoding| {
        encoding.set_type_ids(vec![1; encoding.len()]);
        encoding
    });
    Ok(Encoded {
        windows: vec![Window::new(&wrap(template, first, second, options)?)],
        tokens_cut: tokens - tokens_left,
        tokens: tokens + added,
        counted,
    })
}

/// Truncation of texts of which only as many tokens are kept as may stay.
fn cut_kept(
    first: LongEncoding,
    second: Option<LongEncoding>,
    added: usize,
    options: &EncodeOptions,
) -> Result<(Encoding, Option<Encoding>), Failure> {
    let max_length = options.max_length as usize;
    let lengths = (first.tokens, second.as_ref().map(|s| s.tokens));
    let (mut first, mut second) = (first.encoding, second.map(|s| s.encoding));
    if max_length == 0 {
        return Ok((first, second));
    }
    let budget = max_length
        .checked_sub(added)
        .ok_or_else(|| too_short(max_length, added))?;
    let (to_first, to_second) = shares(lengths.0, lengths.1, budget, options.strategy)?;
    let direction = direction_of(options);
    cut(
        &mut first,
        to_first,
        kept_first(options, to_first),
        direction,
    );
    if let Some(encoding) = second.as_mut() {
        cut(encoding, to_second, 0, direction);
    }
    Ok((first, second))
}

/// How many tokens of the first text stay in front of what is cut, if `length` stay in all.
fn kept_first(options: &EncodeOptions, length: usize) -> usize {
    match options.cut_left {
        0 => 0,
        _ => length.min(options.keep_first as usize),
    }
}

/// Leaves `length` tokens, `front` of them the first ones whatever the direction.
fn cut(encoding: &mut Encoding, length: usize, front: usize, direction: TruncationDirection) {
    if encoding.len() <= length {
        return;
    }
    let mut head = Encoding::default();
    if front > 0 {
        head = encoding.clone();
        head.truncate(front, 0, TruncationDirection::Right);
        head.take_overflowing();
    }
    encoding.truncate(length - front, 0, direction);
    encoding.take_overflowing();
    if front > 0 {
        head.merge_with(std::mem::take(encoding), false);
        *encoding = head;
    }
}

/// Whether the longer one of two texts gets a token more than the other.
fn odd(options: &EncodeOptions, added: usize) -> bool {
    options.strategy == 0 && (options.max_length as usize).saturating_sub(added) % 2 != 0
}

/// How many tokens of each text stay: the rule of the crate's `truncate_encodings`.
fn shares(
    first: usize,
    second: Option<usize>,
    budget: usize,
    strategy: u8,
) -> Result<(usize, usize), Failure> {
    let other = second.unwrap_or(0);
    let excess = (first + other).saturating_sub(budget);
    if budget == 0 {
        return Ok((0, 0));
    }
    if excess == 0 {
        return Ok((first, other));
    }
    let rest = |length: usize| {
        length
            .checked_sub(excess)
            .filter(|&left| left > 0)
            .ok_or_else(|| Failure::input(TruncationError::SequenceTooShort.to_string()))
    };
    match (strategy, second) {
        (0, None) => Ok((budget, 0)),
        (0, Some(_)) => {
            let (short, long) = (first.min(other), first.max(other));
            // Half of the room each, an odd token to the longer one, or all of the shorter one.
            let (short, long) = if short > budget || short + short.max(budget - short) > budget {
                (budget / 2, budget / 2 + budget % 2)
            } else {
                (short, long.min(short.max(budget - short)))
            };
            Ok(match first > other {
                true => (long, short),
                false => (short, long),
            })
        }
        (1, _) => Ok((rest(first)?, other)),
        (2, Some(_)) => Ok((first, rest(other)?)),
        (2, None) => Err(Failure::input(
            TruncationError::SecondSequenceNotProvided.to_string(),
        )),
        (unknown, _) => Err(unknown_strategy(unknown)),
    }
}

fn wrap(
    template: Option<&PostProcessorWrapper>,
    first: Encoding,
    second: Option<Encoding>,
    options: &EncodeOptions,
) -> Result<Encoding, Failure> {
    match template {
        Some(template) => Ok(template.process(first, second, options.add_special != 0)?),
        None => {
            let parts = std::iter::once(first).chain(second).collect();
            <dyn PostProcessor>::default_process(parts, false)?
                .pop()
                .ok_or_else(|| Failure::input("no encoding"))
        }
    }
}

fn too_short(max_length: usize, added: usize) -> Failure {
    Failure::input(format!(
        "max_length {max_length} is less than the {added} special tokens"
    ))
}

fn unknown_strategy(strategy: u8) -> Failure {
    Failure::input(format!("unknown truncation strategy {strategy}"))
}

fn truncate(
    template: Option<&PostProcessorWrapper>,
    first: Encoding,
    second: Option<Encoding>,
    options: &EncodeOptions,
) -> Result<(Encoding, Option<Encoding>), Failure> {
    if options.max_length == 0 {
        return Ok((first, second));
    }
    let added = |pair| match template {
        Some(template) if options.add_special != 0 => template.added_tokens(pair),
        _ => 0,
    };
    let max_length = options.max_length as usize;
    let budget = max_length
        .checked_sub(added(second.is_some()))
        .ok_or_else(|| too_short(max_length, added(second.is_some())))?;
    let strategy = match options.strategy {
        0 => TruncationStrategy::LongestFirst,
        1 => TruncationStrategy::OnlyFirst,
        2 => TruncationStrategy::OnlySecond,
        other => return Err(unknown_strategy(other)),
    };
    let stride = options.stride as usize;
    check_stride(
        &first,
        &second,
        strategy,
        budget,
        max_length - added(false),
        stride,
    )?;
    let params = TruncationParams {
        direction: direction_of(options),
        max_length: budget,
        strategy,
        stride,
    };
    Ok(truncate_encodings(first, second, &params)?)
}

/// A stride that does not advance makes the crate panic; two texts that are both cut make it list
/// the product of their windows.
fn check_stride(
    first: &Encoding,
    second: &Option<Encoding>,
    strategy: TruncationStrategy,
    budget: usize,
    single_budget: usize,
    stride: usize,
) -> Result<(), Failure> {
    if stride == 0 {
        return Ok(());
    }
    if second.is_some() && strategy == TruncationStrategy::LongestFirst {
        return Err(Failure::input(
            "stride needs only_first or only_second for two texts",
        ));
    }
    let other = match (strategy, second) {
        (TruncationStrategy::OnlySecond, _) => first.len(),
        (_, Some(second)) => second.len(),
        _ => 0,
    };
    let total = first.len() + second.as_ref().map_or(0, |e| e.len());
    let window = if total > budget {
        budget.saturating_sub(other)
    } else {
        single_budget + 1
    };
    // No window at all means that the other text alone is too long; truncation says so.
    if single_budget < stride || (window > 0 && window <= stride) {
        return Err(Failure::input(format!(
            "stride {stride} must be less than the window of {} tokens that the other tokens leave",
            window.min(single_budget)
        )));
    }
    Ok(())
}
