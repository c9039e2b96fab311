//! A host's own rules, in place of those of a check.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::characters::{continues_name, name_end, starts_name};
use crate::finding::{Collector, Severity};
use crate::literal::unescape;
use crate::reading::{Next, Reader, meaning};
use crate::rules::{Import, Options, Rules, imports, is_global_object, is_variable, through_global};
use crate::scanner::{Role, Sink, TextKind};

/// What a host does not allow. Everything it names is an error.
///
/// By default the inside of strings, templates, comments and regular expressions is read, too: what is forbidden
/// may not even be mentioned.
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Names that may stand nowhere: not as a variable, a property, a key or a declared name.
    pub forbidden_identifiers: BTreeSet<Vec<u8>>,
    /// Names that may not be used as variables or reached through the global object.
    pub forbidden_globals: BTreeSet<Vec<u8>>,
    /// Forbids `import(`.
    pub forbid_dynamic_import: bool,
    /// Forbids the global `eval`.
    pub forbid_eval: bool,
    /// Forbids the global `Function`.
    pub forbid_function: bool,
    /// Forbids the global `WebAssembly`.
    pub forbid_webassembly: bool,
    /// The longest source, in bytes of UTF-8. A longer one is an error and is not read.
    pub max_source_bytes: usize,
    /// Applies the rules of a check, too.
    pub include_preflight_rules: bool,
    /// Forbids `globalThis[...]` with anything but a literal.
    pub forbid_computed_global_access: bool,
    /// Reads code alone.
    pub ignore_strings_and_comments: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            forbidden_identifiers: BTreeSet::new(),
            forbidden_globals: BTreeSet::new(),
            forbid_dynamic_import: false,
            forbid_eval: false,
            forbid_function: false,
            forbid_webassembly: false,
            max_source_bytes: 1 << 20,
            include_preflight_rules: false,
            forbid_computed_global_access: false,
            ignore_strings_and_comments: false,
        }
    }
}

impl Policy {
    /// The rule against a global of this name.
    fn against_global(&self, name: &[u8]) -> Option<&'static str> {
        match name {
            b"eval" if self.forbid_eval => Some("eval"),
            b"Function" if self.forbid_function => Some("function"),
            b"WebAssembly" if self.forbid_webassembly => Some("webassembly"),
            _ if self.forbidden_globals.contains(name) => Some("forbidden-global"),
            _ => None,
        }
    }
}

/// A policy as a sink of the scanner.
pub(crate) struct PolicyRules<'a> {
    policy: &'a Policy,
    /// The rules of a check, where the policy includes them; else only what collects the findings.
    pub(crate) rules: Rules,
    reader: Reader,
}

impl<'a> PolicyRules<'a> {
    pub(crate) fn new(policy: &'a Policy, options: Options) -> Self {
        Self { policy, rules: Rules::new(options), reader: Reader::default() }
    }

    fn collector(&mut self) -> &mut Collector {
        &mut self.rules.collector
    }

    fn forbid(&mut self, offset: usize, rule: &'static str, what: &[u8], place: &str) {
        let message = || {
            let what = String::from_utf8_lossy(what);
            Cow::Owned(format!("The policy of this host does not allow `{what}`{place}; do without it."))
        };
        self.collector().add_with(offset, rule, Severity::Error, message);
    }

    fn code(&mut self, source: &[u8], span: &Range<usize>, name: &[u8], role: Role) {
        let start = span.start;
        if self.policy.forbidden_identifiers.contains(name) {
            self.forbid(start, "forbidden-identifier", name, "");
        }
        if role == Role::Keyword && name == b"import" && self.policy.forbid_dynamic_import {
            if imports(&mut self.reader, source, span.end) == Import::Dynamic {
                self.forbid(start, "dynamic-import", b"import()", "");
            }
            return;
        }
        // What runs is JavaScript: what looks like a type is no excuse.
        let by_name = self.policy.against_global(name);
        if let Some(rule) = by_name
            && (role == Role::Type || is_variable(&mut self.reader, source, span, role))
        {
            self.forbid(start, rule, name, "");
        }
        if is_global_object(name) && matches!(role, Role::Reference | Role::New | Role::Type) {
            self.through_global(source, span);
        }
    }

    fn through_global(&mut self, source: &[u8], span: &Range<usize>) {
        match through_global(&mut self.reader, source, span.end).0 {
            Next::Property(name, _) => {
                if let Some(rule) = self.policy.against_global(&name) {
                    self.forbid(span.start, rule, &name, " through the global object");
                }
            }
            Next::Computed if self.policy.forbid_computed_global_access => {
                self.forbid(span.start, "computed-global-access", &source[span.clone()], "[...]");
            }
            _ => {}
        }
    }

    /// Reads the words of a text; `place` is where to report them, when that is not where they stand.
    fn words(&mut self, text: &[u8], offset: usize, place: Option<usize>) {
        const IN_TEXT: &str = " in a string, comment or regular expression";
        let mut position = 0;
        self.reader.steps += text.len();
        while position < text.len() {
            if !starts_name(text, position) {
                // A digit starts no name, and what follows it belongs to it.
                position =
                    if continues_name(text, position) { name_end(text, position).0 } else { position + 1 };
                continue;
            }
            let end = name_end(text, position).0.max(position + 1);
            let name = &text[position..end];
            let at = place.unwrap_or(offset + position);
            if self.policy.forbidden_identifiers.contains(name) {
                self.forbid(at, "forbidden-identifier", name, IN_TEXT);
            }
            if let Some(rule) = self.policy.against_global(name) {
                self.forbid(at, rule, name, IN_TEXT);
            }
            let next = text[end..].iter().find(|byte| !byte.is_ascii_whitespace());
            if name == b"import" && next == Some(&b'(') && self.policy.forbid_dynamic_import {
                self.forbid(at, "dynamic-import", b"import()", IN_TEXT);
            }
            if is_global_object(name) && next == Some(&b'[') && self.policy.forbid_computed_global_access {
                self.forbid(at, "computed-global-access", name, IN_TEXT);
            }
            position = end;
        }
    }

    #[cfg(test)]
    /// How many bytes were read ahead or inside texts.
    pub(crate) fn steps(&self) -> usize {
        self.reader.steps + self.rules.steps()
    }
}

impl Sink for PolicyRules<'_> {
    const EVERY_WORD: bool = true;

    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role) {
        if self.policy.include_preflight_rules {
            self.rules.word(source, span.clone(), escaped, role);
        }
        let name = meaning(source, span.clone());
        self.code(source, &span, &name, role);
    }

    fn text(&mut self, source: &[u8], span: Range<usize>, _: TextKind) {
        if self.policy.ignore_strings_and_comments {
            return;
        }
        let text = &source[span.clone()];
        self.words(text, span.start, None);
        if text.contains(&b'\\') {
            self.words(&unescape(text), span.start, Some(span.start));
        }
    }

    fn steps(&mut self, _: usize) {}
}
