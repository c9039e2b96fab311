//! What a check finds, and where.

use std::borrow::Cow;
use std::fmt;

use crate::characters::line_end;
use crate::literal::find_far;

/// How much a finding weighs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Often a mistake, or an attempt to get at what is not there.
    Warning,
    /// It will not work, or is not allowed.
    Error,
}

impl Severity {
    /// `"info"`, `"warning"` or `"error"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One place in a source, and what is to be said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule's name, such as `"fetch"`.
    pub rule: &'static str,
    /// One sentence that says what to do instead.
    pub message: Cow<'static, str>,
    /// 1-based.
    pub line: usize,
    /// 1-based, in code points.
    pub column: usize,
    /// How much it weighs.
    pub severity: Severity,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, message, line, column, severity } = self;
        write!(f, "{line}:{column} {} [{rule}] {message}", severity.name())
    }
}

/// What a check says of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Whether there is no error, counted over all findings.
    pub ok: bool,
    /// Sorted by place; at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub omitted: usize,
}

/// How many findings a report lists.
pub const MAX_FINDINGS: usize = 200;

impl fmt::Display for Report {
    /// A line for each finding, and one that says how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            finding.fmt(f)?;
        }
        if self.omitted > 0 {
            write!(f, "\n... and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// A finding at a byte of the source; its line and column are counted at the end, for all in one pass.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) rule: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) offset: usize,
    pub(crate) severity: Severity,
}

/// Takes findings as they come, in the order of the source or nearly.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    found: Vec<Found>,
    omitted: usize,
    has_error: bool,
}

impl Collector {
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn add(
        &mut self,
        offset: usize,
        rule: &'static str,
        severity: Severity,
        message: &'static str,
    ) {
        self.add_with(offset, rule, severity, || Cow::Borrowed(message));
    }

    pub(crate) fn add_with(
        &mut self,
        offset: usize,
        rule: &'static str,
        severity: Severity,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        // Two ways of looking at one place may agree.
        if self.found.iter().rev().take(4).any(|found| found.offset == offset && found.rule == rule) {
            return;
        }
        self.has_error |= severity == Severity::Error;
        if self.found.len() < MAX_FINDINGS {
            self.found.push(Found { rule, message: message(), offset, severity });
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn into_report(mut self, source: &[u8]) -> Report {
        self.found.sort_by_key(|found| found.offset);
        let mut place = Place { offset: 0, line: 1, column: 1 };
        let findings = self
            .found
            .into_iter()
            .map(|Found { rule, message, offset, severity }| {
                place.advance(source, offset);
                Finding { rule, message, line: place.line, column: place.column, severity }
            })
            .collect();
        Report { ok: !self.has_error, findings, omitted: self.omitted }
    }
}

struct Place {
    offset: usize,
    line: usize,
    column: usize,
}

impl Place {
    fn advance(&mut self, source: &[u8], to: usize) {
        let mut start = self.offset;
        loop {
            self.offset = find_far(&source[..to], self.offset, [b'\n', b'\r', 0xe2]);
            if self.offset == to {
                break;
            }
            if let Some(length) = line_end(source, self.offset) {
                self.offset = (self.offset + length).min(to);
                self.line += 1;
                self.column = 1;
                start = self.offset;
            } else {
                self.offset += 1;
            }
        }
        // A sum of bytes at a time, which the compiler makes vectors of.
        let starts = source[start..to]
            .chunks(255)
            .map(|chunk| usize::from(chunk.iter().map(|byte| u8::from(!is_continuation(*byte))).sum::<u8>()));
        self.column += starts.sum::<usize>();
    }
}

/// Whether a byte is not the first of its code point.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
