//! `pydeno check`: what scripts ask for that the sandbox does not have. Nothing is run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use pydeno_preflight::{Options, Report, Severity, check};
use pydeno_wire::Text;
use serde_json::{Value, json};

use crate::arguments::{Checks, Listing};
use crate::evaluate::limited;
use crate::{Exit, json, terminal};

/// One input and what was found in it.
struct Checked {
    name: String,
    report: Report,
}

/// Checks every file and prints the findings. One that cannot be read is wrong usage, and the others are not told of.
pub(crate) fn run(checks: &Checks) -> Exit {
    let mut checked = Vec::new();
    for path in &checks.paths {
        match read(path, checks.options) {
            Ok(one) => checked.push(one),
            Err(message) => {
                terminal::complain(&message);
                return Exit::Usage;
            }
        }
    }
    let text = match checks.listing {
        Listing::Lines => lines(&checked),
        // Escaped for the terminal's sake: serde_json leaves everything above U+001F as it is.
        Listing::Json => format!("{}\n", json::safe(&as_json(&checked).to_string())),
        Listing::Sarif => format!("{}\n", json::safe(&sarif(&checked).to_string())),
    };
    match terminal::print(&text) {
        Exit::Fine if checked.iter().all(|one| one.report.ok) => Exit::Fine,
        Exit::Fine => Exit::JavaScriptError,
        failed => failed,
    }
}

fn read(path: &Path, options: Options) -> Result<Checked, String> {
    let (bytes, name) = if path == "-" {
        (limited(io::stdin().lock(), "standard input")?, "stdin".to_owned())
    } else {
        let name = path.display().to_string();
        let shown = shown(&name);
        let file = File::open(path).map_err(|error| format!("{shown}: {error}"))?;
        (limited(file, &shown)?, name)
    };
    Ok(Checked { name, report: check(&bytes, options) })
}

/// A file's name without what a terminal would act on.
fn shown(name: &str) -> String {
    Text::from(name).display_safe().into_owned()
}

fn lines(checked: &[Checked]) -> String {
    let mut text = String::new();
    for Checked { name, report } in checked {
        let name = shown(name);
        for finding in &report.findings {
            text.push_str(&format!("{name}:{finding}\n"));
        }
        if report.omitted > 0 {
            text.push_str(&format!("{name}: ... and {} more\n", report.omitted));
        }
    }
    text
}

fn as_json(checked: &[Checked]) -> Value {
    let files = checked.iter().map(|Checked { name, report }| {
        let findings = report.findings.iter().map(|finding| {
            json!({
                "rule": finding.rule, "message": finding.message, "line": finding.line,
                "column": finding.column, "severity": finding.severity.name(),
            })
        });
        json!({
            "file": name, "ok": report.ok, "findings": findings.collect::<Vec<_>>(), "omitted": report.omitted,
        })
    });
    json!({"ok": checked.iter().all(|one| one.report.ok), "files": files.collect::<Vec<_>>()})
}

/// SARIF 2.1.0, which code-scanning tools read.
fn sarif(checked: &[Checked]) -> Value {
    let findings =
        || checked.iter().flat_map(|one| one.report.findings.iter().map(move |finding| (&one.name, finding)));
    let rules: BTreeSet<_> = findings().map(|(_, finding)| finding.rule).collect();
    let results = findings().map(|(name, finding)| {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        json!({
            "ruleId": finding.rule,
            "level": level,
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(name)},
                "region": {"startLine": finding.line, "startColumn": finding.column},
            }}],
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "pydeno",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| json!({"id": rule})).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

/// A path as a URI: absolute ones with a scheme, others relative to where the reader stands.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(source: &str) -> Vec<Checked> {
        vec![Checked { name: "a b.js".into(), report: check(source.as_bytes(), Options::default()) }]
    }

    #[test]
    fn each_line_names_its_file() {
        let text = lines(&checked("1\nfetch(1); a.__proto__"));
        let starts: Vec<_> = text.lines().map(|line| line.split(']').next()).collect();
        assert_eq!(starts, [Some("a b.js:2:1 error [fetch"), Some("a b.js:2:13 warning [proto")]);
        assert_eq!(lines(&checked("1")), "");
    }

    #[test]
    fn sarif_has_a_rule_and_a_place_for_each_result() {
        let log = sarif(&checked("fetch(1); fetch(2); eval('3')"));
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"], json!([{"id": "eval"}, {"id": "fetch"}]));
        let levels: Vec<_> =
            run["results"].as_array().unwrap().iter().map(|result| &result["level"]).collect();
        assert_eq!(levels, ["error", "error", "note"]);
        let place = &run["results"][1]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b.js");
        assert_eq!(place["region"], json!({"startLine": 1, "startColumn": 11}));
    }

    #[test]
    fn absolute_paths_become_file_uris() {
        assert_eq!(uri("/a/é.js"), "file:///a/%C3%A9.js");
        assert_eq!(uri("../a.js"), "../a.js");
    }
}
