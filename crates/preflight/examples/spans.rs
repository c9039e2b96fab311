//! Prints what is text in each file named: `spans FILE...`, a line `= FILE` and then `kind start end` in bytes. The
//! comparison with a parser in `tests/oracle` reads it.

use std::io::Write as _;

use pydeno_preflight::{TextKind, spans};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for name in std::env::args().skip(1) {
        let source = std::fs::read(&name)?;
        writeln!(out, "= {name}")?;
        for span in spans(&source) {
            let kind = match span.kind {
                TextKind::Comment => "comment",
                TextKind::String => "string",
                TextKind::Template => "template",
                TextKind::Regex => "regex",
            };
            writeln!(out, "{kind} {} {}", span.range.start, span.range.end)?;
        }
    }
    out.flush()
}
