//! The C functions of `stave/trace_writer.h`, and the error of `stave/error.h`, as they are declared there.
use std::os::raw::{c_char, c_int};

#[repr(C)]
pub struct Writer {
    _private: [u8; 0],
}

#[repr(C)]
pub struct Event {
    pub name: *const c_char,
    pub cat: *const c_char,
    pub ts: u64,
    pub dur: u64,
    pub pid: u32,
    pub tid: u32,
    pub args: *const c_char,
    pub name_len: usize,
    pub cat_len: usize,
    pub args_len: usize,
}

#[repr(C)]
pub struct Error {
    pub code: c_int,
    pub os_error: c_int,
    pub text: [c_char; 600],
}

impl Error {
    pub fn none() -> Self {
        Self {
            code: 0,
            os_error: 0,
            text: [0; 600],
        }
    }
}

extern "C" {
    pub fn stave_trace_writer_from_env() -> *mut Writer;
    pub fn stave_trace_writer_from_vars(vars: *const *const c_char) -> *mut Writer;
    pub fn stave_trace_writer_open(path: *const c_char) -> *mut Writer;
    pub fn stave_trace_writer_close(writer: *mut Writer);
    pub fn stave_trace_writer_is_enabled(writer: *const Writer) -> bool;
    pub fn stave_trace_writer_push_timed(
        writer: *mut Writer,
        event: *const Event,
        dur_ms: f64,
    ) -> c_int;
    pub fn stave_trace_writer_flush(writer: *mut Writer, error: *mut Error) -> c_int;
    pub fn stave_global_trace() -> *mut Writer;
    pub fn stave_flush_global_trace();
}

/// A text with its length; one of length 0 ends at its NUL.
pub fn text(s: &str) -> (*const c_char, usize) {
    let bytes: &[u8] = if s.is_empty() { b"\0" } else { s.as_bytes() };
    (bytes.as_ptr().cast(), s.len())
}
