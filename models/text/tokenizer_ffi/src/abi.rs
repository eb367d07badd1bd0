//! The plain C types of tokenizer_ffi.h and the wall that keeps panics inside.

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Message and place of this thread's last panic.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics off stderr, which belongs to the server's log; the text goes into the error.
fn capture_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_hook(Box::new(|info| {
            LAST_PANIC.with(|last| *last.borrow_mut() = info.to_string());
        }));
    });
}

/// UTF-8 is not promised by the caller; every reader checks it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    data: *const u8,
    size: usize,
}

impl Text {
    pub const EMPTY: Text = Text {
        data: std::ptr::null(),
        size: 0,
    };

    pub fn of(bytes: &[u8]) -> Text {
        Text {
            data: bytes.as_ptr(),
            size: bytes.len(),
        }
    }

    /// # Safety
    /// `data` points to `size` readable bytes, or `size` is 0.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 {
            return &[];
        }
        std::slice::from_raw_parts(self.data, self.size)
    }

    /// # Safety
    /// As `bytes`.
    pub unsafe fn utf8<'a>(self, what: &str) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.bytes()).map_err(|e| {
            Failure::input(format!(
                "{what} is not valid UTF-8 at byte {}",
                e.valid_up_to()
            ))
        })
    }
}

#[repr(C)]
pub struct ErrorBuffer {
    data: *mut u8,
    capacity: usize,
    size: usize,
    code: i32,
}

/// Why an entry point failed; the codes are those of tokenizer_ffi.h.
pub struct Failure {
    code: i32,
    message: String,
}

impl Failure {
    pub fn input(message: impl Into<String>) -> Failure {
        Failure {
            code: 1,
            message: message.into(),
        }
    }

    pub fn stopped() -> Failure {
        Failure {
            code: 3,
            message: "nobody waits for it any more".to_string(),
        }
    }

    fn panicked() -> Failure {
        let text = LAST_PANIC.with(|last| last.borrow().clone());
        Failure {
            code: 2,
            message: format!("the tokenizer failed on this input: {text}"),
        }
    }
}

impl From<tokenizers::Error> for Failure {
    fn from(error: tokenizers::Error) -> Failure {
        Failure::input(error.to_string())
    }
}

/// Runs `body`; an error or a panic becomes None and a message in `error`.
///
/// # Safety
/// `error` is null or points to a buffer of its stated capacity.
pub unsafe fn guarded<T>(
    error: *mut ErrorBuffer,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Option<T> {
    capture_panics();
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::panicked(),
    };
    if let Some(buffer) = error.as_mut() {
        buffer.code = failure.code;
        buffer.size = failure.message.len().min(buffer.capacity);
        std::ptr::copy_nonoverlapping(failure.message.as_ptr(), buffer.data, buffer.size);
    }
    None
}
