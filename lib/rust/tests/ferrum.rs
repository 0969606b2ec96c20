//! What the tests of ferrum's trace.rs check, and what its users need beyond: only the import lines are others.
use stave::json::{Map, Value};
use stave::trace::{flush_global_trace, global_trace, TraceEvent, TraceWriter};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("stave-rust-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Vec<TraceEvent> {
    let text = std::fs::read_to_string(path).unwrap();
    TraceEvent::vec_from_json(&text)
        .unwrap_or_else(|why| panic!("{}: {why}: {text:.200}", path.display()))
}

#[test]
fn an_event_survives_json() {
    let event = TraceEvent::complete("rms_norm", "norm", 1_000_000, 0.123, 1);
    assert_eq!((event.ph, event.dur, event.pid), ('X', 123, 0));
    let json = event.to_json();
    assert_eq!(
        json,
        r#"{"name":"rms_norm","cat":"norm","ph":"X","ts":1000000,"dur":123,"pid":0,"tid":1}"#
    );
    assert_eq!(TraceEvent::from_json(&json).unwrap(), event);
}

#[test]
fn other_events_are_refused() {
    for json in [
        r#"{"name":"a","cat":"b","ph":"X","ts":1.0,"dur":1,"pid":0,"tid":0}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":-1,"dur":1,"pid":0,"tid":0}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0,"tid":4294967296}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0,"tid":0,"more":1}"#,
        r#"{"name":"a","cat":"b","ph":"","ts":1,"dur":1,"pid":0,"tid":0}"#,
    ] {
        assert!(TraceEvent::from_json(json).is_err(), "{json}");
    }
}

#[test]
fn a_disabled_writer_does_nothing() {
    let writer = TraceWriter::disabled();
    writer.push("rms_norm", "norm", 1.0, 0);
    writer.push_with_args("rms_norm", "norm", 1.0, 0, Map::new());
    assert!(!writer.is_enabled());
    writer.flush().unwrap();
}

#[test]
fn variables_enable_a_writer() {
    let folder = Folder::new("variables");
    let path = folder.join("trace.json").display().to_string();
    assert!(!TraceWriter::from_env_vars([("FERRUM_TRACE_OUT", ""), ("OTHER", "1")]).is_enabled());
    assert!(TraceWriter::from_env_vars([("FERRUM_TRACE_OUT", path.as_str())]).is_enabled());
    assert!(TraceWriter::from_env_vars(vec![("STAVE_TRACE_OUT".to_string(), path)]).is_enabled());
    assert_eq!(
        std::fs::read_to_string(folder.join("trace.json")).unwrap(),
        "[]"
    );
}

#[test]
fn a_flushed_file_holds_every_event() {
    let folder = Folder::new("flush");
    let path = folder.join("trace.json");
    let writer = TraceWriter::enabled(path.clone());
    writer.push("rms_norm", "norm", 1.0, 1);
    writer.push(String::from("rope"), "attn", 0.5, 1);
    writer.flush().unwrap();
    let events = read(&path);
    assert_eq!(events.len(), 2);
    assert_eq!(
        (events[0].name.as_str(), events[1].cat.as_str()),
        ("rms_norm", "attn")
    );
    assert_eq!(
        (events[0].dur, events[1].dur, events[1].tid),
        (1000, 500, 1)
    );
    writer.flush().unwrap(); // empties nothing
    drop(writer); // nor does this
    assert_eq!(read(&path), events);
}

/// As serde_json's Value: prints itself as JSON.
struct Foreign(&'static str);

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

#[test]
fn arguments_of_every_kind() {
    let folder = Folder::new("args");
    let path = folder.join("any.suffix");
    let writer = TraceWriter::enabled(path.clone());
    let mut args = Map::new();
    args.insert("tokens".to_string(), Value::from(4));
    args.insert("dims".to_string(), Value::from(vec![64u64, 128]));
    args.insert("text \"\u{1}ü\0".to_string(), Value::from("a\\b\n"));
    args.insert("nan".to_string(), Value::from(f64::NAN));
    args.insert("x".to_string(), Value::from(-1.5));
    writer.push_with_args("gemm", "gemm\0", 0.25, 3, args.clone());
    writer.push_with_args(
        "foreign",
        "",
        0.25,
        3,
        [("a", Foreign("[1,null]")), ("b", Foreign("{\"c\":true}"))],
    );
    writer.push_with_args("none", "", 0.25, 3, Map::new());
    writer.push_with_args("broken", "", 0.25, 3, [("a", Foreign("not JSON"))]);
    writer.push("", "", f64::NAN, u32::MAX);
    writer.flush().unwrap();
    let events = read(&path);
    assert_eq!(events[0].args, args);
    assert_eq!(events[0].cat, "gemm\0");
    assert_eq!(
        Value::Object(events[1].args.clone()).to_string(),
        r#"{"a":[1,null],"b":{"c":true}}"#
    );
    assert!(events[2].args.is_empty() && events[3].args.is_empty());
    assert_eq!(
        (events[4].name.as_str(), events[4].dur, events[4].tid),
        ("", 0, u32::MAX)
    );
}

#[test]
fn threads_share_a_writer() {
    let folder = Folder::new("threads");
    let path = folder.join("trace.json");
    let writer = TraceWriter::enabled(path.clone());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|layer| writer.push("op", "thread", 0.01, layer)));
        }
    });
    writer.flush().unwrap();
    assert_eq!(read(&path).len(), 1000);
}

#[test]
fn a_path_that_cannot_be_written() {
    let writer = TraceWriter::enabled(PathBuf::from("/no/such/folder/trace.json"));
    assert!(writer.is_enabled());
    writer.push("op", "c", 1.0, 0);
    assert_eq!(
        writer.flush().unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    let writer = TraceWriter::enabled(PathBuf::from("/tmp\0/x"));
    assert!(writer.flush().is_err());
}

#[test]
fn without_a_variable_the_global_writer_is_off() {
    if std::env::var_os("FERRUM_TRACE_OUT").is_none()
        && std::env::var_os("STAVE_TRACE_OUT").is_none()
    {
        global_trace().push("op", "c", 1.0, 0);
        assert!(!global_trace().is_enabled() && !TraceWriter::from_env().is_enabled());
        flush_global_trace();
    }
}

/// The example `ends` beside this test.
fn ends() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples/ends")
}

/// The program `stave`, which completes what a killed process left; STAVE names it.
fn recover(path: &Path) {
    let stave = std::env::var_os("STAVE").unwrap_or_else(|| "stave".into());
    let run = Command::new(stave)
        .arg("recover")
        .arg(path)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

#[test]
fn no_end_loses_an_event() {
    let folder = Folder::new("ends");
    for way in ["return", "exit", "panic", "fork", "abort", "term", "kill"] {
        let path = folder.join(way);
        let run = Command::new(ends())
            .arg(way)
            .env("FERRUM_TRACE_OUT", &path)
            .env_remove("STAVE_TRACE_OUT")
            .output()
            .unwrap();
        assert_eq!(
            run.status.success(),
            matches!(way, "return" | "exit" | "fork"),
            "{way}"
        );
        if matches!(way, "abort" | "term" | "kill") {
            assert!(!read(&path).is_empty(), "{way}"); // a whole trace all the same
            recover(&path);
        }
        let expected = if way == "fork" { 300 } else { 100 };
        assert_eq!(
            read(&path).len(),
            expected,
            "{way}: {}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
}

#[test]
fn texts_of_all_kinds() {
    let folder = Folder::new("texts");
    let path = folder.join("trace.json");
    let writer = TraceWriter::enabled(path.clone());
    let owned = String::from("borrowed, and not static");
    writer.push(owned.as_str(), &owned[..8], 1.0, 0);
    writer.push(&owned, owned.clone(), 1.0, 1);
    writer.push(std::borrow::Cow::Borrowed(&*owned), 'x', 1.0, 2);
    writer.push(owned.clone().into_boxed_str(), "", 1.0, 3);
    writer.push_with_args(owned.as_str(), owned.as_str(), 1.0, 4, [("n", 1)]);
    writer.flush().unwrap();
    let events = read(&path);
    assert!(events.iter().all(|e| e.name == owned), "{events:?}");
    let cats: Vec<_> = events.iter().map(|e| e.cat.as_str()).collect();
    assert_eq!(cats, ["borrowed", &owned, "x", "", &owned]);
}
