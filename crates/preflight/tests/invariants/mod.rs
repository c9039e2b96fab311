//! What is so of every source, sensible or not.

use pydeno_preflight::{MAX_FINDINGS, Options, Policy, Span, SpanKind, TextKind, check, check_policy, spans};

/// Panics unless every invariant holds for `source`.
pub(crate) fn hold(source: &[u8]) {
    stretches_are_in_order_and_apart(source);
    findings_are_sorted_bounded_and_inside(source);
    a_comment_around_it_silences_it(source);
    no_word_is_left_out_because_none_of_interest_follows(source);
}

fn stretches_are_in_order_and_apart(source: &[u8]) {
    let mut end = 0;
    for Span { range, .. } in spans(source) {
        assert!(end <= range.start && range.start < range.end && range.end <= source.len(), "{range:?}");
        end = range.end;
    }
}

fn findings_are_sorted_bounded_and_inside(source: &[u8]) {
    let policy = Policy {
        forbidden_identifiers: [b"fetch".to_vec()].into(),
        forbidden_globals: [b"a".to_vec()].into(),
        forbid_dynamic_import: true,
        forbid_eval: true,
        forbid_computed_global_access: true,
        include_preflight_rules: true,
        ..Policy::default()
    };
    let lines = 1 + source.iter().filter(|byte| matches!(byte, b'\n' | b'\r' | 0xe2)).count();
    for report in [check(source, Options::default()), check_policy(source, &policy, Options::default())] {
        let places: Vec<_> = report.findings.iter().map(|finding| (finding.line, finding.column)).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert!(places.len() <= MAX_FINDINGS);
        assert!(report.omitted == 0 || places.len() == MAX_FINDINGS);
        for (line, column) in places {
            assert!((1..=lines).contains(&line) && (1..=source.len()).contains(&column), "{line}:{column}");
        }
    }
}

fn a_comment_around_it_silences_it(source: &[u8]) {
    if source.windows(2).any(|pair| pair == b"*/") || source.last() == Some(&b'*') {
        return;
    }
    let comment = [b"/*", source, b"*/"].concat();
    let whole = Span { kind: SpanKind::Text(TextKind::Comment), range: 0..comment.len() };
    assert_eq!(spans(&comment), [whole]);
    assert!(check(&comment, Options::default()).findings.is_empty());
}

/// A check ends at the last word that there may be a rule for; here there is one more behind the source.
fn no_word_is_left_out_because_none_of_interest_follows(source: &[u8]) {
    let (mut longer, report) =
        (check(&[source, b"\n;x.__proto__"].concat(), Options::default()), check(source, Options::default()));
    if longer.findings.len() > report.findings.len() {
        assert_eq!(longer.findings.pop().map(|finding| finding.rule), Some("proto"));
    }
    assert_eq!(longer.findings, report.findings);
}
