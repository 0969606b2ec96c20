//! TraceEvent by serde, as in ferrum: the same JSON as by the crate's own functions, and read as strictly.
use serde_json::{json, Map, Value};
use stave::trace::{TraceEvent, TraceWriter, TRACE_OUT_ENV};

#[test]
fn an_event_by_serde() {
    let mut event = TraceEvent::complete("rms_norm", "norm", 1_000_000, 0.123, 1);
    let plain = serde_json::to_string(&event).unwrap();
    assert_eq!(plain, event.to_json());
    assert_eq!(serde_json::from_str::<TraceEvent>(&plain).unwrap(), event);
    event.args.insert("dims".into(), json!([1, -2, {"x": null}]));
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(text, event.to_json());
    assert_eq!(serde_json::from_str::<TraceEvent>(&text).unwrap(), event);
    assert_eq!(TraceEvent::from_json(&text).unwrap(), event);
}

#[test]
fn what_serde_refuses() {
    for text in [
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0}"#,
        r#"{"name":"a","cat":"b","ph":"XY","ts":1,"dur":1,"pid":0,"tid":0}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":-1,"dur":1,"pid":0,"tid":0}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0,"tid":4294967296}"#,
        r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":0,"tid":0,"args":[]}"#,
        "[]",
    ] {
        assert!(serde_json::from_str::<TraceEvent>(text).is_err(), "{text}");
    }
}

#[test]
fn a_file_by_serde() {
    let path = std::env::temp_dir().join(format!("stave-serde-{}.json", std::process::id()));
    let variables = [(TRACE_OUT_ENV, path.display().to_string())];
    let writer = TraceWriter::from_env_vars(variables);
    let mut args = Map::new();
    args.insert("tokens".to_string(), Value::from(4));
    writer.push_with_args("gemm", "gemm", 0.25, 3, args.clone());
    writer.push("rope", "attn", 0.5, 1);
    writer.flush().unwrap();
    let events: Vec<TraceEvent> =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0].args, events[1].dur), (&args, 500));
    drop(writer);
    std::fs::remove_file(&path).unwrap();
}
