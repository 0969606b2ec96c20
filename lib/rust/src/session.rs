//! libstave: slices of blocks, instants and counters.
//!
//! The trace is what `STAVE_OUT` names, or [`start`]; without either, an event costs a call and a test, and its arguments are not evaluated by
//! the macros. A crash loses nothing: `stave recover` completes the file. Names and keys in the macros are literals; [`Scope::begin`] takes names
//! that are known at run time only.
use crate::sys;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Starts recording into the file, whose suffix is the form (`.pftrace`, `.json`, `.json.gz`). Variables of the environment give the rest.
pub fn start(out: impl AsRef<Path>) -> std::io::Result<()> {
    let out = CString::new(out.as_ref().as_os_str().as_bytes())?;
    let options = sys::Options {
        size: std::mem::size_of::<sys::Options>(),
        out: out.as_ptr(),
        categories: std::ptr::null(),
        buffer_bytes: 0,
        full: 0,
        compress: std::ptr::null(),
        keep_ms: 0,
        after_ms: 0,
        trigger_signal: 0,
        trigger_name: std::ptr::null(),
        trigger_ms: 0,
        quiet: true,
    };
    let mut error = sys::Error::none();
    match unsafe { sys::stave_start(&options, &mut error) } {
        0 => Ok(()),
        _ => {
            let text = unsafe { CStr::from_ptr(error.text.as_ptr()) };
            Err(std::io::Error::new(
                std::io::ErrorKind::Other,
                text.to_string_lossy(),
            ))
        }
    }
}

/// Writes everything so far to the file, which is still incomplete. False: that has failed.
pub fn flush() -> bool {
    unsafe { sys::stave_flush() == 0 }
}

/// Completes the file. It is also done when the program ends.
pub fn stop() -> bool {
    unsafe { sys::stave_stop() == 0 }
}

/// Is this category recorded?
pub fn is_enabled(category: &str) -> bool {
    CString::new(category).map_or(false, |c| unsafe { sys::stave_enabled(c.as_ptr()) })
}

/// The value of an argument
pub enum Value<'a> {
    /// A number with a sign
    Int(i64),
    /// A number without one
    Uint(u64),
    /// A number with a fraction
    Float(f64),
    /// true or false
    Bool(bool),
    /// A text, of which up to 32 kB are kept
    Text(&'a str),
}

macro_rules! values {
    ($($kind:ident $of:ty: $($t:ty)*;)*) => {$($(
        impl From<$t> for Value<'_> {
            fn from(v: $t) -> Self {
                Value::$kind(v as $of)
            }
        }
    )*)*};
}
values! {
    Int i64: i8 i16 i32 i64 isize;
    Uint u64: u8 u16 u32 u64 usize;
    Float f64: f32 f64;
    Bool bool: bool;
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Value::Text(v)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(v: &'a String) -> Self {
        Value::Text(v)
    }
}

fn put(args: *mut sys::Args, key: &CStr, value: &Value) {
    let key = key.as_ptr();
    unsafe {
        match *value {
            Value::Int(v) => sys::stave_args_int(args, key, v),
            Value::Uint(v) => sys::stave_args_uint(args, key, v),
            Value::Float(v) => sys::stave_args_double(args, key, v),
            Value::Bool(v) => sys::stave_args_bool(args, key, v),
            Value::Text(v) => sys::stave_args_text_n(args, key, v.as_ptr().cast(), v.len()),
        }
    }
}

struct Moment {
    kind: c_int,
    track: u32,
    start_ns: i64,
    dur_ns: i64,
    value: f64,
}

const NOW: Moment = Moment {
    kind: sys::INSTANT,
    track: sys::THREAD,
    start_ns: 0,
    dur_ns: 0,
    value: 0.0,
};

fn emit(m: Moment, category: &CStr, name: Option<&CStr>, args: &[(&CStr, Value)]) -> bool {
    let mut space = MaybeUninit::<sys::Args>::uninit();
    if !args.is_empty() {
        unsafe { sys::stave_args_init(space.as_mut_ptr()) };
        for (key, value) in args {
            put(space.as_mut_ptr(), key, value);
        }
    }
    let event = sys::Emitted {
        size: std::mem::size_of::<sys::Emitted>(),
        kind: m.kind,
        track: m.track,
        category: category.as_ptr(),
        name: name.map_or(std::ptr::null::<c_char>(), CStr::as_ptr),
        args: if args.is_empty() {
            std::ptr::null()
        } else {
            space.as_ptr()
        },
        start_ns: m.start_ns,
        dur_ns: m.dur_ns,
        value: m.value,
    };
    unsafe { sys::stave_emit(&event) }
}

fn ended(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// A slice on the row of this thread, from its begin until it is dropped: by the end of the block, a return, `?` or a panic.
#[must_use = "a slice ends when its scope is dropped: let _scope = …"]
pub struct Scope {
    category: Option<Category>,
    // It ends on the thread where it began.
    _not_send: PhantomData<*const ()>,
}

enum Category {
    Literal(&'static CStr),
    Made(CString),
}

impl Scope {
    /// With names that are known at run time only. The macro [`scope!`](crate::scope) is cheaper.
    pub fn begin(category: &str, name: &str) -> Self {
        let category = ended(category);
        let is_on = unsafe { sys::stave_enabled(category.as_ptr()) };
        let has_begun = is_on
            && emit(
                Moment {
                    kind: sys::BEGIN,
                    ..NOW
                },
                &category,
                Some(&ended(name)),
                &[],
            );
        Self::of(has_begun.then(|| Category::Made(category)))
    }

    #[doc(hidden)]
    pub fn literal(
        category: &'static CStr,
        name: &'static CStr,
        args: &[(&'static CStr, Value)],
    ) -> Self {
        let moment = Moment {
            kind: sys::BEGIN,
            ..NOW
        };
        let has_begun = emit(moment, category, Some(name), args);
        Self::of(has_begun.then_some(Category::Literal(category)))
    }

    #[doc(hidden)]
    pub fn none() -> Self {
        Self::of(None)
    }

    fn of(category: Option<Category>) -> Self {
        Scope {
            category,
            _not_send: PhantomData,
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let category: &CStr = match &self.category {
            None => return,
            Some(Category::Literal(c)) => c,
            Some(Category::Made(c)) => c,
        };
        emit(
            Moment {
                kind: sys::END,
                ..NOW
            },
            category,
            None,
            &[],
        );
    }
}

#[doc(hidden)]
pub fn is_on() -> bool {
    unsafe { sys::stave_enabled(std::ptr::null()) }
}

#[doc(hidden)]
pub fn literal(with_nul: &'static str) -> &'static CStr {
    // A literal with a NUL inside ends there, as in C.
    unsafe { CStr::from_ptr(with_nul.as_ptr().cast()) }
}

#[doc(hidden)]
pub fn instant(category: &'static CStr, name: &'static CStr, args: &[(&'static CStr, Value)]) {
    emit(NOW, category, Some(name), args);
}

/// The value of a counter of this process from now on.
pub fn counter(category: &str, name: &str, value: f64) {
    if is_enabled(category) {
        let (category, name) = (ended(category), ended(name));
        let track = unsafe { sys::stave_counter(sys::PROCESS, name.as_ptr(), std::ptr::null()) };
        emit(
            Moment {
                kind: sys::COUNTER,
                track,
                value,
                ..NOW
            },
            &category,
            Some(&name),
            &[],
        );
    }
}

/// A slice on this thread's row that was measured elsewhere; `start_ns` is of [`now_ns`].
pub fn complete(category: &str, name: &str, start_ns: i64, dur_ns: i64) {
    if is_enabled(category) {
        emit(
            Moment {
                kind: sys::COMPLETE,
                start_ns,
                dur_ns,
                ..NOW
            },
            &ended(category),
            Some(&ended(name)),
            &[],
        );
    }
}

/// CLOCK_MONOTONIC in nanoseconds
pub fn now_ns() -> i64 {
    unsafe { sys::stave_now_ns() }
}

/// A slice until the end of the block: `let _scope = stave::scope!("nn", "attention", "layer" => 3);`
#[macro_export]
macro_rules! scope {
    ($category:literal, $name:literal $(, $key:literal => $value:expr)* $(,)?) => {{
        if $crate::session::is_on() {
            $crate::session::Scope::literal(
                $crate::session::literal(concat!($category, "\0")),
                $crate::session::literal(concat!($name, "\0")),
                &[$(($crate::session::literal(concat!($key, "\0")), $crate::session::Value::from($value))),*],
            )
        } else {
            $crate::session::Scope::none()
        }
    }};
}

/// A moment: `stave::instant!("io", "cache miss", "path" => path);`
#[macro_export]
macro_rules! instant {
    ($category:literal, $name:literal $(, $key:literal => $value:expr)* $(,)?) => {{
        if $crate::session::is_on() {
            $crate::session::instant(
                $crate::session::literal(concat!($category, "\0")),
                $crate::session::literal(concat!($name, "\0")),
                &[$(($crate::session::literal(concat!($key, "\0")), $crate::session::Value::from($value))),*],
            );
        }
    }};
}
