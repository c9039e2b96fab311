//! Prints what the scanner takes the stretches of files for: `spans FILE...` prints a line `= FILE` and then lines
//! `kind start end`, in bytes. The comparison with a parser in `tests/oracle` reads it.

use std::io::Write as _;

use pydeno_preflight::{SpanKind, TextKind, spans};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for name in std::env::args().skip(1) {
        let source = std::fs::read(&name)?;
        writeln!(out, "= {name}")?;
        for span in spans(&source) {
            let kind = match span.kind {
                SpanKind::Text(TextKind::Comment) => "comment",
                SpanKind::Text(TextKind::String) => "string",
                SpanKind::Text(TextKind::Template) => "template",
                SpanKind::Text(TextKind::Regex) => "regex",
                SpanKind::Text(TextKind::Jsx) => "jsx",
                SpanKind::Property => "property",
                SpanKind::Type => "type",
            };
            writeln!(out, "{kind} {} {}", span.range.start, span.range.end)?;
        }
    }
    out.flush()
}
