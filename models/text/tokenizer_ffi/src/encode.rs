//! Encoding with truncation of finished encodings.
//!
//! The crate can truncate while it tokenises, but its versions disagree on what is left then, and
//! the setting lives in the shared tokenizer. Here each text is encoded whole and without special
//! tokens, then cut with the crate's own rule, then put into the template.

use tokenizers::{
    truncate_encodings, Encoding, PostProcessor, PostProcessorWrapper, Tokenizer,
    TruncationDirection, TruncationParams, TruncationStrategy,
};

use crate::abi::Failure;

/// As in tokenizer_ffi.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EncodeOptions {
    pub max_length: u32,
    pub stride: u32,
    pub strategy: u8,
    pub cut_left: u8,
    pub add_special: u8,
    pub match_special: u8,
    pub byte_offsets: u8,
    pub windows: u8,
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
    let single = |text: &str| {
        if options.byte_offsets != 0 {
            tokenizer.encode(text, false)
        } else {
            tokenizer.encode_char_offsets(text, false)
        }
    };
    let first = single(a)?;
    let mut second = b.map(single).transpose()?;
    if let Some(encoding) = second.as_mut() {
        encoding.set_type_ids(vec![1; encoding.len()]);
    }
    let length = |x: &Encoding, y: &Option<Encoding>| x.len() + y.as_ref().map_or(0, |e| e.len());
    let before = length(&first, &second);
    let (mut first, mut second) = truncate(template, first, second, options)?;
    let tokens_cut = before - length(&first, &second);
    if options.windows == 0 {
        first.take_overflowing();
        second.as_mut().map(|e| e.take_overflowing());
    }

    let encoding = match template {
        Some(template) => template.process(first, second, options.add_special != 0)?,
        None => {
            let parts = std::iter::once(first).chain(second).collect();
            <dyn PostProcessor>::default_process(parts, false)?
                .pop()
                .ok_or_else(|| Failure::input("no encoding"))?
        }
    };
    let mut windows = vec![Window::new(&encoding)];
    if options.windows != 0 {
        windows.extend(encoding.get_overflowing().iter().map(Window::new));
    }
    Ok(Encoded {
        windows,
        tokens_cut,
    })
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
        .ok_or_else(|| {
            Failure::input(format!(
                "max_length {max_length} is less than the {} special tokens",
                added(second.is_some())
            ))
        })?;
    let strategy = match options.strategy {
        0 => TruncationStrategy::LongestFirst,
        1 => TruncationStrategy::OnlyFirst,
        2 => TruncationStrategy::OnlySecond,
        other => {
            return Err(Failure::input(format!(
                "unknown truncation strategy {other}"
            )))
        }
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
    let direction = match options.cut_left {
        0 => TruncationDirection::Right,
        _ => TruncationDirection::Left,
    };
    let params = TruncationParams {
        direction,
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
