//! What a report says of itself, without applying anything.

use pydeno_sandbox::{Layer, Report, layer};

/// A report of every layer, in force but for the `missing` ones.
fn report_without(missing: &[&str]) -> Report {
    let layers = layer::ALL.map(|name| {
        let applied = !missing.contains(&name);
        Layer { name, applied, detail: String::new(), fix: String::new() }
    });
    Report { layers: layers.into() }
}

#[test]
fn a_report_of_every_layer_is_hardened() {
    let report = report_without(&[]);
    assert!(report.is_complete());
    assert!(report.is_hardened());
    assert_eq!(report.missing().count(), 0);
}

#[test]
fn each_required_layer_is_needed_for_completeness() {
    for name in layer::ALL {
        let report = report_without(&[name]);
        assert_eq!(report.is_complete(), !layer::is_required(name), "{name}");
        assert!(!report.is_hardened(), "{name}");
        assert_eq!(report.missing().map(|layer| layer.name).collect::<Vec<_>>(), [name]);
    }
}

#[test]
fn only_the_empty_root_is_not_required() {
    let optional: Vec<&str> = layer::ALL.into_iter().filter(|name| !layer::is_required(name)).collect();
    assert_eq!(optional, [layer::EMPTY_ROOT]);
}

#[test]
fn a_report_that_ends_early_is_not_complete() {
    assert!(!Report::default().is_complete());
    let mut report = report_without(&[]);
    report.layers.pop();
    assert!(!report.is_complete());
}

#[test]
fn the_applied_string_names_what_enforces() {
    assert_eq!(report_without(&[]).applied_string(), "landlock+seccomp");
    assert_eq!(report_without(&[layer::EMPTY_ROOT, layer::SELF_TEST]).applied_string(), "landlock+seccomp");
    assert_eq!(report_without(&[layer::LANDLOCK]).applied_string(), "seccomp");
    assert_eq!(report_without(&[layer::SECCOMP]).applied_string(), "landlock");
    assert_eq!(report_without(&[layer::LANDLOCK, layer::SECCOMP]).applied_string(), "none");
    assert_eq!(Report::default().applied_string(), "none");
}
