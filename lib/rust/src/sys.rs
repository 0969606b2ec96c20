//! The C functions of `stave/trace_writer.h` and `stave/stave.h`, and the error of `stave/error.h`, as they are declared there.
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

#[link(name = "stave-file")]
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

#[repr(C)]
pub struct Options {
    pub size: usize,
    pub out: *const c_char,
    pub categories: *const c_char,
    pub buffer_bytes: usize,
    pub full: c_int,
    pub compress: *const c_char,
    pub keep_ms: u64,
    pub after_ms: u64,
    pub trigger_signal: c_int,
    pub trigger_name: *const c_char,
    pub trigger_ms: u64,
    pub quiet: bool,
}

pub const BEGIN: c_int = 1;
pub const END: c_int = 2;
pub const INSTANT: c_int = 3;
pub const COUNTER: c_int = 4;
pub const COMPLETE: c_int = 5;
pub const THREAD: u32 = 0;
pub const PROCESS: u32 = 1;

#[repr(C)]
pub struct Emitted {
    pub size: usize,
    pub kind: c_int,
    pub track: u32,
    pub category: *const c_char,
    pub name: *const c_char,
    pub args: *const Args,
    pub start_ns: i64,
    pub dur_ns: i64,
    pub value: f64,
}

#[repr(C)]
pub struct Args {
    len: u32,
    depth: u32,
    limit: u32,
    dropped: u32,
    count: [u32; 32],
    kept: [u32; 32],
    is_list: [u8; 32],
    bytes: [u8; 16000],
}

#[link(name = "stave")]
extern "C" {
    pub fn stave_start(options: *const Options, error: *mut Error) -> c_int;
    pub fn stave_flush() -> c_int;
    pub fn stave_stop() -> c_int;
    pub fn stave_enabled(category: *const c_char) -> bool;
    pub fn stave_now_ns() -> i64;
    pub fn stave_counter(parent: u32, name: *const c_char, unit: *const c_char) -> u32;
    pub fn stave_emit(event: *const Emitted) -> bool;
    pub fn stave_args_init(args: *mut Args);
    pub fn stave_args_int(args: *mut Args, key: *const c_char, v: i64);
    pub fn stave_args_uint(args: *mut Args, key: *const c_char, v: u64);
    pub fn stave_args_double(args: *mut Args, key: *const c_char, v: f64);
    pub fn stave_args_bool(args: *mut Args, key: *const c_char, v: bool);
    pub fn stave_args_text_n(args: *mut Args, key: *const c_char, v: *const c_char, len: usize);
}

/// A text with its length; one of length 0 ends at its NUL.
pub fn text(s: &str) -> (*const c_char, usize) {
    let bytes: &[u8] = if s.is_empty() { b"\0" } else { s.as_bytes() };
    (bytes.as_ptr().cast(), s.len())
}
