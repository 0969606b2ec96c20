//! Stave for Rust.
//!
//! [`trace`] has the names, signatures and behaviour of ferrum's `ferrum_bench_core::trace`; the file is the same. A program
//! changes one line:
//!
//! ```
//! // use ferrum_bench_core::trace::{flush_global_trace, global_trace};
//! use stave::trace::{flush_global_trace, global_trace};
//!
//! global_trace().push("attn", "attention", 1.25, 3); // FERRUM_TRACE_OUT or STAVE_TRACE_OUT; unset: nothing happens
//! flush_global_trace();
//! ```
//!
//! [`session`] is libstave: scopes, instants and counters, in a `.pftrace` or any other form that it writes.
//!
//! ```
//! fn attention(layer: u32, tokens: usize) {
//!     let _scope = stave::scope!("nn", "attention", "layer" => layer, "tokens" => tokens); // ends with the block
//! }
//! attention(3, 128); // STAVE_OUT=trace.pftrace, or stave::session::start("trace.pftrace")
//! ```
//!
//! With the manifest `lib/rust/serde`, [`trace::TraceEvent`] has serde's traits, and its arguments are serde_json's.
#![warn(missing_docs)]

pub mod json;
pub mod session;
mod sys;
pub mod trace;
