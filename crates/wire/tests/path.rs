//! Paths read as a programmer would write them, and stay short and safe.

use pydeno_wire::{Path, Segment, Text};

fn key(key: &str) -> Segment {
    Segment::Key(key.into())
}

#[test]
fn a_path_reads_like_javascript() {
    let path: Path = [key("items"), Segment::Index(3), key("x")].into_iter().collect();
    assert_eq!(path.to_string(), "$.items[3].x");
    assert_eq!(Path::root().to_string(), "$");
}

#[test]
fn members_and_entries_say_what_they_are() {
    let path: Path = [Segment::Member(0), Segment::MapKey(1), Segment::MapValue(2)].into_iter().collect();
    assert_eq!(path.to_string(), "$<member 0><key 1><value 2>");
}

#[test]
fn a_key_that_is_no_identifier_is_quoted() {
    for (name, shown) in [
        ("_a$1", "$._a$1"),
        ("größe", "$.größe"),
        ("a b", r#"$["a b"]"#),
        ("", r#"$[""]"#),
        ("1a", r#"$["1a"]"#),
        ("a\"b\\", r#"$["a\"b\\"]"#),
        ("a.b\n", r#"$["a.b\n"]"#),
        ("\u{3164}", r#"$["\u3164"]"#),
        ("__proto__", "$.__proto__"),
    ] {
        assert_eq!(Path::from_iter([key(name)]).to_string(), shown);
    }
    let lone = Segment::Key(Text::from_utf16(&[0xD800]));
    assert_eq!(Path::from_iter([lone]).to_string(), r#"$["\ud800"]"#);
}

#[test]
fn going_in_and_out_leads_back() {
    let mut path = Path::root();
    path.push(key("a"));
    path.push(Segment::Index(0));
    assert_eq!(path.pop(), Some(Segment::Index(0)));
    assert_eq!(path.segments(), [key("a")]);
    assert_eq!(path.pop(), Some(key("a")));
    assert_eq!(path.pop(), None);
}

#[test]
fn a_long_key_is_cut() {
    let shown = Path::from_iter([key(&"k".repeat(1_000_000))]).to_string();
    assert_eq!(shown, format!("$[\"{}…\"]", "k".repeat(64)));
    let whole = Path::from_iter([key(&"k".repeat(64))]).to_string();
    assert_eq!(whole, format!("$.{}", "k".repeat(64)));
}

#[test]
fn a_long_path_shows_its_ends() {
    let path: Path = (0..1000).map(Segment::Index).collect();
    let shown = path.to_string();
    assert!(shown.starts_with("$[0][1][2]"), "{shown}");
    assert!(shown.contains("[15] …(968 more)… [984]"), "{shown}");
    assert!(shown.ends_with("[999]"), "{shown}");
    let whole: Path = (0..32).map(Segment::Index).collect();
    assert!(!whole.to_string().contains('…'));
}
