//! Reads a script before it runs and tells its author what the sandbox does not have.
//!
//! An agent that writes `require("fs")` or `await fetch(url)` learns from one line with a position and a remedy what a
//! `ReferenceError` would only hint at. **It is no security boundary**: a script that wants to hide a name builds it at
//! run time. What keeps a script from the network is that its process has none.
//!
//! # Terms
//!
//! - The **scanner** walks over the source once. It is no parser: it keeps what the grammar expects next and which brackets
//!   are open, which is enough to tell code from text, a division from a regular expression, a property from a
//!   variable, a type of TypeScript from an expression.
//!   Most tokens take one step in a **table**, some together with the word in front of them; the others are looked at.
//!   A check has it walk no further than the last word that a rule could have something to say about.
//! - A **rule** looks at one word of code, its role and what follows it. A **finding** is what it has to say.
//! - A **[`Policy`]** is a host's own rules, and an error wherever they are broken.
//!
//! # Example
//!
//! ```
//! use pydeno_preflight::{Options, check};
//!
//! let report = check(b"// fetch() is not meant\nlet x = fetch(url)", Options::default());
//! assert!(!report.ok);
//! assert!(report.to_string().starts_with("2:9 error [fetch] "));
//! ```
//!
//! # What it does not do
//!
//! It knows no scopes: a `fetch` that the script defines is reported like any other. It does not say whether the source
//! parses. It never fails, on any bytes; it reads each byte a bounded number of times and needs memory only for open brackets,
//! a bounded number of findings and a bounded number of names of JSX elements.

#![forbid(unsafe_code)]

#[cfg(test)]
mod agreement;
mod block;
mod characters;
mod class;
mod finding;
mod frame;
mod jsx;
mod keyword;
#[cfg(test)]
mod linear;
mod literal;
mod outline;
mod policy;
mod punctuators;
mod reading;
mod relevant;
mod rules;
mod scanner;
mod spans;
mod stack;
mod transition;
mod word_set;
mod words;

use std::borrow::Cow;

pub use finding::{Finding, MAX_FINDINGS, Report, Severity};
pub use outline::{Outline, Start, outline};
pub use policy::Policy;
pub use rules::Options;
pub use scanner::TextKind;
pub use spans::{Span, SpanKind, spans};

use finding::Collector;
use policy::PolicyRules;
use rules::Rules;
use scanner::Scanner;

/// Checks a source against the rules. UTF-8 is expected; anything else is read as if it were.
pub fn check(source: &[u8], options: Options) -> Report {
    let end = relevant::end(source, options);
    Scanner::new(source, Rules::new(options)).run_to(end).collector.into_report(source)
}

/// Checks a source against a host's policy. `options` are for the rules of a check, where the policy includes them.
pub fn check_policy(source: &[u8], policy: &Policy, options: Options) -> Report {
    if source.len() > policy.max_source_bytes {
        let mut collector = Collector::default();
        let (length, most) = (source.len(), policy.max_source_bytes);
        collector.add_with(0, "source-size", Severity::Error, || {
            Cow::Owned(format!(
                "The source has {length} bytes and the policy allows {most}; make it shorter."
            ))
        });
        return collector.into_report(source);
    }
    Scanner::new(source, PolicyRules::new(policy, options)).run().rules.collector.into_report(source)
}
