//! Scopes, instants and a counter: `scopes trace.pftrace`. Whatever the suffix says is written.
use stave::session;

fn attention(layer: u32, tokens: usize) -> Option<f64> {
    let _scope = stave::scope!("nn", "attention", "layer" => layer, "tokens" => tokens, "kind" => "causal");
    if tokens == 0 {
        return None; // the slice ends here, too
    }
    let _inner = stave::scope!("nn", "softmax");
    Some(0.5)
}

fn main() -> std::io::Result<()> {
    attention(0, 1); // off: nothing is recorded
    if let Some(out) = std::env::args().nth(1) {
        session::start(out)?;
    }
    assert_eq!(session::is_enabled("nn"), std::env::args().nth(1).is_some());
    let begun = session::now_ns();
    for layer in 0..3 {
        attention(layer, 128 * layer as usize);
    }
    session::complete("nn", "forward", begun, session::now_ns() - begun);
    stave::instant!("io", "cache miss", "path" => &String::from("/data/\u{fc}"), "hit" => false, "share" => 0.25, "depth" => -1);
    session::counter("mem", "allocated", 4096.0);
    let name = format!("layer {}", 7);
    drop(session::Scope::begin("nn", &name));
    let caught = std::panic::catch_unwind(|| {
        let _scope = session::Scope::begin("nn", "panics\0");
        panic!("on purpose");
    });
    assert!(caught.is_err() && session::flush());
    Ok(())
}
