//! A host's own rules replace those of a check, and read everything unless told otherwise.

use pydeno_preflight::{Options, Policy, Severity, check_policy};

fn rules(source: &str, policy: &Policy) -> Vec<&'static str> {
    let report = check_policy(source.as_bytes(), policy, Options::default());
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Error));
    assert_eq!(report.ok, report.findings.is_empty());
    report.findings.iter().map(|finding| finding.rule).collect()
}

fn names(names: &[&str]) -> std::collections::BTreeSet<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn a_policy_without_rules_allows_everything_that_fits() {
    let policy = Policy::default();
    assert!(rules("import a from 'a'; fetch(1); eval('1')", &policy).is_empty());
    let small = Policy { max_source_bytes: 4, ..Policy::default() };
    assert!(rules("éé", &small).is_empty());
    assert_eq!(rules("éé ", &small), ["source-size"]);
}

#[test]
fn identifiers_are_forbidden_wherever_they_stand() {
    let policy = Policy {
        forbidden_identifiers: names(&["secret"]),
        ignore_strings_and_comments: true,
        ..Policy::default()
    };
    for source in [
        "secret",
        "a.secret",
        "({secret: 1})",
        "({secret() {}})",
        "class A { secret = 1 }",
        "function secret() {}",
        "let a: secret",
        r"s\u0065cret",
        "this.#x.secret",
    ] {
        assert_eq!(rules(source, &policy), ["forbidden-identifier"], "{source}");
    }
    for source in ["secrets", "'secret'", "// secret", "`secret`", "/secret/"] {
        assert!(rules(source, &policy).is_empty(), "{source}");
    }
}

#[test]
fn texts_are_read_by_default() {
    let policy = Policy { forbidden_identifiers: names(&["secret"]), ..Policy::default() };
    for source in [
        "'secret'",
        "'a-secret.b'",
        "// secret",
        "/* a secret */",
        "`a ${b} secret`",
        "/secret/",
        r"'s\x65cret'",
        r"'s\u0065cret'",
        r"'\nsecret'",
        r"/\bsecret/",
        "'se\\\ncret'",
    ] {
        assert_eq!(rules(source, &policy), ["forbidden-identifier"], "{source}");
    }
    for source in ["'secrets'", "// 1secret", "'se' + 'cret'"] {
        assert!(rules(source, &policy).is_empty(), "{source}");
    }
}

#[test]
fn globals_are_forbidden_as_variables_and_through_the_global_object() {
    let policy = Policy {
        forbidden_globals: names(&["Date"]),
        forbid_eval: true,
        forbid_function: true,
        forbid_webassembly: true,
        ignore_strings_and_comments: true,
        ..Policy::default()
    };
    assert_eq!(rules("new Date", &policy), ["forbidden-global"]);
    assert_eq!(rules("f({Date})", &policy), ["forbidden-global"]);
    assert_eq!(rules("globalThis['Date']", &policy), ["forbidden-global"]);
    assert_eq!(rules("(0, eval)('1')", &policy), ["eval"]);
    assert_eq!(rules("Function('1')", &policy), ["function"]);
    assert_eq!(rules("self?.WebAssembly", &policy), ["webassembly"]);
    assert!(rules("a.Date; ({Date: 1, eval() {}}); a.eval(); a.Function", &policy).is_empty());
}

#[test]
fn dynamic_imports_and_computed_access_can_be_forbidden() {
    let policy =
        Policy { forbid_dynamic_import: true, forbid_computed_global_access: true, ..Policy::default() };
    assert_eq!(rules("import('a')", &policy), ["dynamic-import"]);
    assert_eq!(rules("'import(1)'", &policy), ["dynamic-import"]);
    assert_eq!(rules("globalThis[a + b]", &policy), ["computed-global-access"]);
    assert_eq!(rules("window.self?.[a]", &policy), ["computed-global-access"]);
    assert_eq!(rules("'globalThis[a]'", &policy), ["computed-global-access"]);
    assert!(rules("import a from 'a'; globalThis['a']; globalThis.a[b]; a.self[b]", &policy).is_empty());
}

#[test]
fn the_rules_of_a_check_can_be_included() {
    let policy = Policy { include_preflight_rules: true, ..Policy::default() };
    assert_eq!(rules("fetch(1)", &policy), ["fetch"]);
    assert!(rules("fetch(1)", &Policy::default()).is_empty());
}
