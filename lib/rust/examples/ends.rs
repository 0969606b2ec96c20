//! A program that records by the global writer and ends in the way that it is told: `ends return|exit|panic|abort|term|kill|fork`.
//! Each leaves a whole trace; after abort, term and kill `stave recover` adds the last events.
//!
//!     FERRUM_TRACE_OUT=trace.json cargo run --example ends panic
use stave::trace::global_trace;

extern "C" {
    fn fork() -> i32;
    fn wait(status: *mut i32) -> i32;
    fn _exit(code: i32) -> !;
    fn getpid() -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
}

fn work(what: &'static str) {
    for layer in 0..100 {
        global_trace().push("op", what, 0.01, layer % 32);
    }
}

fn fork_two() {
    for what in ["first", "second"] {
        // The child only writes and ends.
        if unsafe { fork() } == 0 {
            work(what);
            unsafe { _exit(0) }
        }
    }
    while unsafe { wait(std::ptr::null_mut()) } > 0 {}
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    work("parent");
    match way.as_str() {
        "exit" => std::process::exit(0),
        "panic" => panic!("as it was told"),
        "abort" => std::process::abort(),
        "term" => unsafe {
            kill(getpid(), 15);
        },
        "kill" => unsafe {
            kill(getpid(), 9);
        },
        "fork" => fork_two(),
        _ => (),
    }
}
