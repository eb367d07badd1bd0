//! The HuggingFace tokenizers crate behind the C interface described in tokenizer_ffi.h.
//!
//! A handle is immutable once made and may be used from any thread. Every entry point checks its
//! input and turns panics into errors.

mod abi;
mod beginning;
mod cut_plan;
mod encode;
mod long_text;
mod lowered;
mod shared_text;

use std::sync::OnceLock;

use abi::{guarded, ErrorBuffer, Failure, Text};
use cut_plan::CutPlan;
use encode::{EncodeOptions, Encoded};
use lowered::Lowered;
use shared_text::SharedText;
use tokenizers::{PostProcessorWrapper, Tokenizer};

pub struct Handle {
    tokenizer: Tokenizer,
    template: Option<PostProcessorWrapper>,
    /// Cuts long texts; None: they cannot be cut.
    plan: Option<CutPlan>,
    /// `tokenizer`, reading special tokens in the text as text; made when first asked for.
    literal: OnceLock<Tokenizer>,
    vocab_size: usize,
    max_id: i64,
}

impl Handle {
    fn new(json: &[u8]) -> Result<Handle, Failure> {
        let mut tokenizer = Tokenizer::from_bytes(json)?;
        let template = tokenizer.get_post_processor().cloned();
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        tokenizer.with_truncation(None)?;
        tokenizer.with_padding(None);
        tokenizer.set_encode_special_tokens(false);
        let plan = CutPlan::new(&tokenizer);
        let vocab = tokenizer.get_vocab(true);
        let max_id = vocab.values().max().map_or(-1, |&id| i64::from(id));
        let vocab_size = vocab.len();
        Ok(Handle {
            tokenizer,
            template,
            plan,
            literal: OnceLock::new(),
            vocab_size,
            max_id,
        })
    }

    fn encode(
        &self,
        a: &str,
        b: Option<&str>,
        options: &EncodeOptions,
    ) -> Result<Encoded, Failure> {
        let tokenizer = if options.match_special != 0 {
            &self.tokenizer
        } else {
            self.literal()
        };
        let template = self.template.as_ref();
        let at_once = 4 * options.piece_bytes as usize;
        let long = a.len().max(b.map_or(0, str::len)) > at_once;
        if long && options.windows == 0 {
            return encode::encode_long(tokenizer, self.plan.as_ref(), template, a, b, options);
        }
        encode::encode(tokenizer, template, a, b, options)
    }

    fn literal(&self) -> &Tokenizer {
        self.literal.get_or_init(|| {
            let mut tokenizer = self.tokenizer.clone();
            tokenizer.set_encode_special_tokens(true);
            tokenizer
        })
    }
}

/// Plain arrays of one window, as in tokenizer_ffi.h.
#[repr(C)]
pub struct WindowView {
    length: usize,
    ids: *const u32,
    type_ids: *const u32,
    offsets: *const u32,
    words: *const i32,
    sequences: *const i8,
    special: *const u8,
}

fn boxed<T>(value: Option<T>) -> *mut T {
    value.map_or(std::ptr::null_mut(), |v| Box::into_raw(Box::new(v)))
}

unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        drop(Box::from_raw(pointer));
    }
}

/// # Safety
/// Pointers as tokenizer_ffi.h requires; so for every function below.
#[no_mangle]
pub unsafe extern "C" fn lvt_tokenizer_from_json(
    json: Text,
    error: *mut ErrorBuffer,
) -> *mut Handle {
    boxed(guarded(error, || {
        Handle::new(json.utf8("the tokenizer")?.as_bytes())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn lvt_tokenizer_free(handle: *mut Handle) {
    free(handle);
}

#[no_mangle]
pub extern "C" fn lvt_shared_text() -> *mut SharedText {
    Box::into_raw(Box::default())
}

#[no_mangle]
pub unsafe extern "C" fn lvt_shared_text_free(text: *mut SharedText) {
    free(text);
}

#[no_mangle]
pub unsafe extern "C" fn lvt_shared_text_reads(text: *const SharedText) -> usize {
    (*text).reads()
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encode(
    handle: *const Handle,
    a: Text,
    b: *const Text,
    options: *const EncodeOptions,
    error: *mut ErrorBuffer,
) -> *mut Encoded {
    boxed(guarded(error, || {
        let handle = &*handle;
        let options = &*options;
        let a = a.utf8("text")?;
        let b = b.as_ref().map(|text| text.utf8("text_pair")).transpose()?;
        if a.len().max(b.map_or(0, str::len)) > u32::MAX as usize {
            return Err(Failure::input("text is longer than 4 GiB"));
        }
        if options.lower_case == 0 {
            return handle.encode(a, b, options);
        }
        let lower = |text| Lowered::new(text, options.byte_offsets != 0);
        let (first, second) = (lower(a), b.map(lower));
        let mut encoded = handle.encode(
            &first.text,
            second.as_ref().map(|s| s.text.as_str()),
            options,
        )?;
        lowered::restore_offsets(&mut encoded, &first, second.as_ref());
        Ok(encoded)
    }))
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_free(encoded: *mut Encoded) {
    free(encoded);
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_tokens_cut(encoded: *const Encoded) -> usize {
    (*encoded).tokens_cut
}

/// Counts the texts' tokens, template included.
#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_tokens(encoded: *const Encoded) -> usize {
    (*encoded).tokens
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_counted(encoded: *const Encoded) -> u8 {
    (*encoded).counted as u8
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_windows(encoded: *const Encoded) -> usize {
    (*encoded).windows.len()
}

#[no_mangle]
pub unsafe extern "C" fn lvt_encoding_window(encoded: *const Encoded, index: usize) -> WindowView {
    let window = &(&(*encoded).windows)[index];
    WindowView {
        length: window.ids.len(),
        ids: window.ids.as_ptr(),
        type_ids: window.type_ids.as_ptr(),
        offsets: window.offsets.as_ptr(),
        words: window.words.as_ptr(),
        sequences: window.sequences.as_ptr(),
        special: window.special.as_ptr(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn lvt_decode(
    handle: *const Handle,
    ids: *const u32,
    count: usize,
    skip_special: u8,
    error: *mut ErrorBuffer,
) -> *mut String {
    boxed(guarded(error, || {
        let ids = if count == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(ids, count)
        };
        Ok((*handle).tokenizer.decode(ids, skip_special != 0)?)
    }))
}

#[no_mangle]
pub unsafe extern "C" fn lvt_id_to_token(handle: *const Handle, id: u32) -> *mut String {
    let token = guarded(std::ptr::null_mut(), || {
        Ok((*handle).tokenizer.id_to_token(id))
    });
    boxed(token.flatten())
}

#[no_mangle]
pub unsafe extern "C" fn lvt_token_to_id(handle: *const Handle, token: Text) -> i64 {
    guarded(std::ptr::null_mut(), || {
        Ok((*handle)
            .tokenizer
            .token_to_id(token.utf8("token")?)
            .map_or(-1, i64::from))
    })
    .unwrap_or(-1)
}

#[no_mangle]
pub unsafe extern "C" fn lvt_vocab_size(handle: *const Handle) -> usize {
    (*handle).vocab_size
}

#[no_mangle]
pub unsafe extern "C" fn lvt_max_id(handle: *const Handle) -> i64 {
    (*handle).max_id
}

#[no_mangle]
pub unsafe extern "C" fn lvt_string_text(string: *const String) -> Text {
    string
        .as_ref()
        .map_or(Text::EMPTY, |s| Text::of(s.as_bytes()))
}

#[no_mangle]
pub unsafe extern "C" fn lvt_string_free(string: *mut String) {
    free(string);
}
