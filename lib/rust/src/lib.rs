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
#![warn(missing_docs)]

pub mod json;
mod sys;
pub mod trace;
