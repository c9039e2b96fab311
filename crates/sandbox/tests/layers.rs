//! Every layer applied: in order, in force, with and without root, with and without an empty root.

mod confined;

use confined::{become_ordinary_user, confine, parts, run, say, say_report};
use pydeno_sandbox::{Mode, Report, layer};

parts!(everything, everything_as_an_ordinary_user, no_empty_root, automatic, nothing);

fn everything() {
    confine_and_say(Mode::Require, true);
}

fn everything_as_an_ordinary_user() {
    become_ordinary_user();
    confine_and_say(Mode::Require, true);
}

fn no_empty_root() {
    confine_and_say(Mode::Require, false);
}

fn automatic() {
    confine_and_say(Mode::Auto, true);
}

fn nothing() {
    confine_and_say(Mode::Off, true);
}

fn confine_and_say(mode: Mode, empty_root: bool) {
    let report = confine(mode, empty_root).expect("this machine can confine a worker");
    say_report(&report);
    say_summary(&report);
}

fn say_summary(report: &Report) {
    say(&format!(
        "applied {} complete {} hardened {}",
        report.applied_string(),
        report.is_complete(),
        report.is_hardened()
    ));
}

/// The layers of a part's report, and its last line.
fn layers(part: &str) -> (Vec<(String, bool, String)>, String) {
    let said = run(part).said();
    let mut lines: Vec<&str> = said.lines().collect();
    let summary = lines.pop().expect("a part says its summary last").to_owned();
    let layers = lines
        .into_iter()
        .map(|line| {
            let mut fields = line.split('|');
            let name = fields.next().expect("a name").to_owned();
            let applied = fields.next().expect("whether it is applied") == "true";
            (name, applied, fields.next().expect("a detail").to_owned())
        })
        .collect();
    (layers, summary)
}

#[track_caller]
fn detail<'a>(layers: &'a [(String, bool, String)], name: &str) -> &'a str {
    &layers.iter().find(|(found, ..)| found == name).expect("the layer is reported").2
}

#[test]
fn every_layer_is_in_force_and_reported_in_order() {
    for part in ["everything", "everything_as_an_ordinary_user", "automatic"] {
        let (layers, summary) = layers(part);
        let names: Vec<&str> = layers.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, layer::ALL, "{part}");
        assert!(layers.iter().all(|(_, applied, _)| *applied), "{part}: {layers:?}");
        assert_eq!(summary, "applied landlock+seccomp complete true hardened true", "{part}");
    }
}

#[test]
fn the_details_say_what_was_checked() {
    let (layers, _) = layers("everything");
    assert!(detail(&layers, layer::EMPTY_ROOT).contains("the kernel caps its tasks at 64, as tried out"));
    assert!(detail(&layers, layer::LANDLOCK).contains("the canary was refused afterwards"));
    assert!(detail(&layers, layer::LANDLOCK).starts_with("ABI "));
    assert!(detail(&layers, layer::SECCOMP).contains("a refused call answered EPERM"));
    assert!(detail(&layers, layer::SELF_TEST).ends_with("none worked"));
}

#[test]
fn root_becomes_nobody_and_a_user_stays_who_it_is() {
    let (as_started, _) = layers("everything");
    let (as_user, _) = layers("everything_as_an_ordinary_user");
    if rustix::process::getuid().is_root() {
        assert!(detail(&as_started, layer::PRIVILEGES).starts_with("root became nobody (65534)"));
        assert!(detail(&as_user, layer::PRIVILEGES).starts_with("user 54321, not root"));
    } else {
        assert!(detail(&as_started, layer::PRIVILEGES).contains("not root"));
    }
}

#[test]
fn without_an_empty_root_the_sandbox_is_complete_but_not_hardened() {
    let (layers, summary) = layers("no_empty_root");
    let missing: Vec<&str> =
        layers.iter().filter(|(_, applied, _)| !applied).map(|(name, ..)| name.as_str()).collect();
    assert_eq!(missing, [layer::EMPTY_ROOT]);
    assert_eq!(summary, "applied landlock+seccomp complete true hardened false");
}

#[test]
fn with_the_sandbox_off_the_self_test_reports_every_breach() {
    let (layers, summary) = layers("nothing");
    assert_eq!(summary, "applied none complete false hardened false");
    let names: Vec<&str> = layers.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, layer::ALL);
    let applied: Vec<&str> =
        layers.iter().filter(|(_, applied, _)| *applied).map(|(name, ..)| name.as_str()).collect();
    assert_eq!(applied, [layer::PROCESS]);
    let breaches = detail(&layers, layer::SELF_TEST);
    for breach in [
        "list the root directory",
        "read a file",
        "read its own environment",
        "write its own memory",
        "write a file",
        "make a file in memory",
        "make an IPv4 socket",
        "make a Unix socket",
        "make a netlink socket",
        "signal its parent",
        "signal a thread of its parent",
        "start a process",
        "map executable memory",
        "make memory executable",
        "share memory",
        "become dumpable",
        "outlive its parent",
    ] {
        assert!(breaches.contains(breach), "{breach:?} is missing from {breaches:?}");
    }
}
