//! ferrum's trace writer: complete events by name, category and elapsed milliseconds.
//!
//! The file is the one that `ferrum_bench_core::trace` makes: a JSON array of
//! `{"name":…,"cat":…,"ph":"X","ts":µs,"dur":µs,"pid":0,"tid":layer,"args":{…}}`. Events wait in memory of
//! libstave and go to the file ten times a second, at a flush and at the end of the program, by a panic, too; a flush or drop empties nothing. After
//! a signal, `abort` or `_exit`, `stave recover trace.json` adds what was still waiting. Forked children write to the same file.
//! A path that cannot be written is one line on stderr; `flush` returns the error.
use crate::json::{self, Error, Value};
use crate::sys;
use std::any::TypeId;
use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};

#[cfg(not(feature = "serde"))]
type Arguments = json::Map<String, Value>;
#[cfg(feature = "serde")]
type Arguments = serde_json::Map<String, serde_json::Value>;

/// The variable that enables [`global_trace`]
pub const TRACE_OUT_ENV: &str = "FERRUM_TRACE_OUT";

static GLOBAL_TRACE: AtomicPtr<TraceWriter> = AtomicPtr::new(std::ptr::null_mut());

/// The writer of the program, opened from `STAVE_TRACE_OUT` or `FERRUM_TRACE_OUT` by the first call; a disabled one where both
/// are unset. C and C++ code of the same process has the same one.
pub fn global_trace() -> &'static TraceWriter {
    let known = GLOBAL_TRACE.load(Ordering::Acquire);
    if !known.is_null() {
        return unsafe { &*known };
    }
    // The library has one, whoever asks first; all references to it are equal.
    let writer = unsafe { sys::stave_global_trace() };
    let made = Box::into_raw(Box::new(TraceWriter {
        writer,
        is_owner: false,
    }));
    let null = std::ptr::null_mut();
    match GLOBAL_TRACE.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => unsafe { &*made },
        Err(other) => unsafe {
            drop(Box::from_raw(made));
            &*other
        },
    }
}

/// Flushes the global writer, if it was used.
pub fn flush_global_trace() {
    unsafe { sys::stave_flush_global_trace() }
}

/// One complete event.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceEvent {
    /// What ran
    pub name: String,
    /// The kind of work
    pub cat: String,
    /// Always 'X'
    pub ph: char,
    /// Microseconds since the trace began
    pub ts: u64,
    /// Microseconds
    pub dur: u64,
    /// Always 0 in ferrum's files
    pub pid: u32,
    /// The layer
    pub tid: u32,
    /// Arguments; absent in the file where there are none
    pub args: Arguments,
}

#[cfg(not(feature = "serde"))]
fn arguments(args: json::Map<String, Value>) -> Arguments {
    args
}

#[cfg(feature = "serde")]
fn arguments(args: json::Map<String, Value>) -> Arguments {
    serde_json::from_str(&Value::Object(args).to_string()).unwrap_or_default()
}

impl TraceEvent {
    /// A complete event from a start in microseconds and a duration in milliseconds.
    pub fn complete(
        name: impl Into<String>,
        cat: impl Into<String>,
        start_ts_us: u64,
        dur_ms: f64,
        tid: u32,
    ) -> Self {
        Self {
            name: name.into(),
            cat: cat.into(),
            ph: 'X',
            ts: start_ts_us,
            dur: (dur_ms * 1000.0).round() as u64,
            pid: 0,
            tid,
            args: Arguments::new(),
        }
    }

    /// The event as it is in the file.
    pub fn to_json(&self) -> String {
        self.to_string()
    }

    /// Reads one event, as strictly as serde would: every member but `args` must be there, with its type.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::from_value(text.parse()?)
    }

    /// Reads a whole trace: an array of events.
    pub fn vec_from_json(text: &str) -> Result<Vec<Self>, Error> {
        match text.parse()? {
            Value::Array(items) => items.into_iter().map(Self::from_value).collect(),
            _ => Err(Error::new("a trace is an array", 0)),
        }
    }

    fn from_value(value: Value) -> Result<Self, Error> {
        let mut members = match value {
            Value::Object(members) => members,
            _ => return Err(Error::new("an event is an object", 0)),
        };
        let wrong = |key: &str| Error::new(format!("{key} is absent or not of its type"), 0);
        let mut text = |key: &str| match members.remove(key) {
            Some(Value::String(v)) => Ok(v),
            _ => Err(wrong(key)),
        };
        let (name, cat, ph) = (text("name")?, text("cat")?, text("ph")?);
        let mut number = |key: &str| match members.remove(key) {
            Some(Value::Unsigned(v)) => Ok(v),
            _ => Err(wrong(key)),
        };
        let (ts, dur, pid, tid) = (
            number("ts")?,
            number("dur")?,
            number("pid")?,
            number("tid")?,
        );
        let args = match members.remove("args") {
            None => json::Map::new(),
            Some(Value::Object(args)) => args,
            Some(_) => return Err(wrong("args")),
        };
        if let Some((key, _)) = members.iter().next() {
            return Err(Error::new(format!("unknown member {key}"), 0));
        }
        let mut letters = ph.chars();
        let ph = match (letters.next(), letters.next()) {
            (Some(ph), None) => ph,
            _ => return Err(wrong("ph")),
        };
        let pid = u32::try_from(pid).map_err(|_| wrong("pid"))?;
        let tid = u32::try_from(tid).map_err(|_| wrong("tid"))?;
        Ok(Self {
            name,
            cat,
            ph,
            ts,
            dur,
            pid,
            tid,
            args: arguments(args),
        })
    }
}

#[cfg(feature = "serde")]
mod by_serde {
    //! As `#[derive(Serialize, Deserialize)]` would do, without its compiler plug-in.
    use super::{Arguments, TraceEvent};
    use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
    use serde::ser::{Serialize, SerializeStruct, Serializer};
    use std::fmt;

    impl Serialize for TraceEvent {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let n = if self.args.is_empty() { 7 } else { 8 };
            let mut to = to.serialize_struct("TraceEvent", n)?;
            to.serialize_field("name", &self.name)?;
            to.serialize_field("cat", &self.cat)?;
            to.serialize_field("ph", &self.ph)?;
            to.serialize_field("ts", &self.ts)?;
            to.serialize_field("dur", &self.dur)?;
            to.serialize_field("pid", &self.pid)?;
            to.serialize_field("tid", &self.tid)?;
            if !self.args.is_empty() {
                to.serialize_field("args", &self.args)?;
            }
            to.end()
        }
    }

    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = TraceEvent;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an event")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut from: M) -> Result<TraceEvent, M::Error> {
            let (mut name, mut cat, mut ph) = (None, None, None);
            let (mut ts, mut dur, mut pid, mut tid) = (None, None, None, None);
            let mut args = Arguments::new();
            while let Some(key) = from.next_key::<String>()? {
                match key.as_str() {
                    "name" => name = Some(from.next_value()?),
                    "cat" => cat = Some(from.next_value()?),
                    "ph" => ph = Some(from.next_value()?),
                    "ts" => ts = Some(from.next_value()?),
                    "dur" => dur = Some(from.next_value()?),
                    "pid" => pid = Some(from.next_value()?),
                    "tid" => tid = Some(from.next_value()?),
                    "args" => args = from.next_value()?,
                    _ => drop(from.next_value::<IgnoredAny>()?),
                }
            }
            Ok(TraceEvent {
                name: name.ok_or_else(|| M::Error::missing_field("name"))?,
                cat: cat.ok_or_else(|| M::Error::missing_field("cat"))?,
                ph: ph.ok_or_else(|| M::Error::missing_field("ph"))?,
                ts: ts.ok_or_else(|| M::Error::missing_field("ts"))?,
                dur: dur.ok_or_else(|| M::Error::missing_field("dur"))?,
                pid: pid.ok_or_else(|| M::Error::missing_field("pid"))?,
                tid: tid.ok_or_else(|| M::Error::missing_field("tid"))?,
                args,
            })
        }
    }

    impl<'de> Deserialize<'de> for TraceEvent {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_map(Members)
        }
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"name\":")?;
        json::quote(f, &self.name)?;
        f.write_str(",\"cat\":")?;
        json::quote(f, &self.cat)?;
        f.write_str(",\"ph\":")?;
        json::quote(f, self.ph.encode_utf8(&mut [0; 4]))?;
        write!(
            f,
            ",\"ts\":{},\"dur\":{},\"pid\":{},\"tid\":{}",
            self.ts, self.dur, self.pid, self.tid
        )?;
        if !self.args.is_empty() {
            f.write_str(",\"args\":")?;
            json::object(f, &self.args)?;
        }
        f.write_str("}")
    }
}

/// The type of `T`, whatever it borrows: lifetimes are no part of a `TypeId`.
fn type_of<T>() -> TypeId {
    trait Typed {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Typed for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let phantom = PhantomData::<T>;
    // The object has no bytes, and only its type is asked for.
    let object: &(dyn Typed + 'static) =
        unsafe { std::mem::transmute::<&dyn Typed, &(dyn Typed + 'static)>(&phantom) };
    object.id()
}

/// Calls `take` with the text. A `&str` is not copied to the heap, as `Into<String>` would do.
fn with_text<T: Into<String>>(text: T, take: impl FnOnce(&str)) {
    if type_of::<T>() == TypeId::of::<&'static str>() {
        // `T` is `&str`, which outlives this call.
        take(unsafe { std::mem::transmute_copy::<T, &str>(&text) });
    } else {
        take(&text.into());
    }
}

/// A writer to one file, or one that does nothing.
pub struct TraceWriter {
    writer: *mut sys::Writer,
    is_owner: bool,
}

// The functions of the library may be called from any thread.
unsafe impl Send for TraceWriter {}
unsafe impl Sync for TraceWriter {}

impl TraceWriter {
    /// To `STAVE_TRACE_OUT` or `FERRUM_TRACE_OUT`; disabled where both are unset or empty.
    pub fn from_env() -> Self {
        Self::owning(unsafe { sys::stave_trace_writer_from_env() })
    }

    /// The same with pairs of name and value instead of the environment.
    pub fn from_env_vars<I, K, V>(vars: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<String>,
    {
        let texts: Vec<CString> = vars
            .into_iter()
            .filter_map(|(name, value)| {
                CString::new(format!("{}={}", name.into(), value.into())).ok()
            })
            .collect();
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self::owning(unsafe { sys::stave_trace_writer_from_vars(pointers.as_ptr()) })
    }

    /// To a file, which is replaced.
    pub fn enabled(out_path: PathBuf) -> Self {
        let path = CString::new(out_path.as_os_str().as_bytes()).unwrap_or_else(|wrong| {
            // A path with a NUL names no file, nor does one that ends in a slash: the library says so.
            let text: Vec<u8> = wrong
                .into_vec()
                .into_iter()
                .map(|b| if b == 0 { b'?' } else { b })
                .chain(*b"/")
                .collect();
            CString::new(text).unwrap_or_default()
        });
        Self::owning(unsafe { sys::stave_trace_writer_open(path.as_ptr()) })
    }

    /// A writer that does nothing.
    pub fn disabled() -> Self {
        Self::owning(std::ptr::null_mut())
    }

    fn owning(writer: *mut sys::Writer) -> Self {
        Self {
            writer,
            is_owner: true,
        }
    }

    /// Are events wanted?
    pub fn is_enabled(&self) -> bool {
        unsafe { sys::stave_trace_writer_is_enabled(self.writer) }
    }

    /// An event that ended now and took `dur_ms`. `tid` is the layer, 0 for the engine.
    pub fn push(&self, name: impl Into<String>, cat: impl Into<String>, dur_ms: f64, tid: u32) {
        if self.is_enabled() {
            with_text(name, |name| {
                with_text(cat, |cat| self.push_text(name, cat, dur_ms, tid, ""))
            });
        }
    }

    /// The same with arguments: a [`json::Map`], a `serde_json::Map`, or any pairs whose values print themselves as JSON.
    pub fn push_with_args<K: AsRef<str>, V: fmt::Display>(
        &self,
        name: impl Into<String>,
        cat: impl Into<String>,
        dur_ms: f64,
        tid: u32,
        args: impl IntoIterator<Item = (K, V)>,
    ) {
        if self.is_enabled() {
            let mut text = String::new();
            let printed = json::object(&mut text, args);
            let args = if printed.is_ok() { &*text } else { "" };
            with_text(name, |name| {
                with_text(cat, |cat| self.push_text(name, cat, dur_ms, tid, args))
            });
        }
    }

    fn push_text(&self, name: &str, cat: &str, dur_ms: f64, tid: u32, args: &str) {
        let (name, name_len) = sys::text(name);
        let (cat, cat_len) = sys::text(cat);
        let (args, args_len) = sys::text(args);
        let event = sys::Event {
            name,
            cat,
            ts: 0,
            dur: 0,
            pid: 0,
            tid,
            args,
            name_len,
            cat_len,
            args_len,
        };
        unsafe { sys::stave_trace_writer_push_timed(self.writer, &event, dur_ms) };
    }

    /// Writes what is not in the file yet.
    pub fn flush(&self) -> std::io::Result<()> {
        let mut error = sys::Error::none();
        match unsafe { sys::stave_trace_writer_flush(self.writer, &mut error) } {
            0 => Ok(()),
            _ => Err(std::io::Error::from_raw_os_error(error.os_error)),
        }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if self.is_owner {
            unsafe { sys::stave_trace_writer_close(self.writer) }
        }
    }
}
