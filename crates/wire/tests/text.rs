//! Strings keep every code unit, and show nothing that deceives.

mod strategies;

use std::collections::HashSet;

use proptest::prelude::*;
use pydeno_wire::{InvalidWtf8, Text};

const HIGH: u16 = 0xD83D;
const LOW: u16 = 0xDE00;

#[test]
fn a_well_formed_string_is_utf8_and_another_is_not() {
    let emoji = Text::from_utf16(&[HIGH, LOW]);
    assert_eq!(emoji.as_str(), Some("😀"));
    assert_eq!(emoji.into_string(), Ok("😀".to_owned()));

    let lone = Text::from_utf16(&[u16::from(b'a'), HIGH]);
    assert_eq!(lone.as_str(), None);
    assert_eq!(*lone.to_wtf8(), *b"a\xED\xA0\xBD");
    assert_eq!(lone.to_string_lossy(), "a\u{FFFD}");
    assert_eq!(lone.to_string(), "a\u{FFFD}");
    assert_eq!(format!("{lone:?}"), r#""a\ud83d""#);
    assert_eq!(lone.clone().into_string(), Err(lone));
}

#[test]
fn a_surrogate_pair_in_two_parts_is_joined() {
    let joined = Text::from_wtf8(b"\xED\xA0\xBD\xED\xB8\x80".to_vec());
    assert_eq!(joined, Ok(Text::from("😀")));
    let reversed = Text::from_wtf8(b"\xED\xB8\x80\xED\xA0\xBD".to_vec());
    assert_eq!(reversed, Ok(Text::from_utf16(&[LOW, HIGH])));
}

#[test]
fn the_first_byte_that_is_not_wtf8_is_named() {
    for (bytes, offset) in [
        (b"ab\xFF".as_slice(), 2),
        (b"\xC0\x80", 0),                     // an overlong NUL
        (b"\xED\xA0\xBD\xF4\x90\x80\x80", 3), // beyond U+10FFFF, after a surrogate
        (b"x\xED\xA0", 1),                    // a surrogate cut off
        (b"\xED\xA0\x41", 0),
        (b"\xC3", 0),
    ] {
        assert_eq!(Text::from_wtf8(bytes.to_vec()), Err(InvalidWtf8 { offset }), "{bytes:x?}");
    }
}

#[test]
fn nul_is_a_character_like_any_other() {
    let text = Text::from_utf16(&[0, 1, 0]);
    assert_eq!(text.as_str(), Some("\0\u{1}\0"));
    assert_eq!(text.len_bytes(), 3);
}

#[test]
fn only_the_empty_string_is_empty() {
    assert!(Text::default().is_empty());
    assert_eq!(Text::default(), Text::from_utf16(&[]));
    assert!(!Text::from("\0").is_empty());
    assert!(!Text::from_utf16(&[HIGH]).is_empty());
}

#[test]
fn what_a_person_does_not_see_is_removed_before_showing() {
    for (text, shown) in [
        ("plain text, línea\n\ttabbed", "plain text, línea\n\ttabbed"),
        ("\u{1b}[2Jcleared\u{7}\r\u{0}\u{7f}\u{9b}31m", "[2Jcleared31m"),
        ("a\u{202e}txt.exe\u{2066}b\u{200f}", "atxt.exeb"),
        ("pass\u{200b}word\u{feff}\u{ad}\u{2060}", "password"),
        ("tag\u{e0041}\u{e007f}s \u{fe0f}\u{e0100}", "tags "),
        ("\u{3164}\u{115f}\u{ffa0}filled", "filled"),
        ("one\u{2028}two\u{2029}", "onetwo"),
        ("an\u{fff9}no\u{fffa}ta\u{fffb}", "annota"),
        ("Zürich, 東京, العربية, 😀", "Zürich, 東京, العربية, 😀"),
    ] {
        assert_eq!(Text::from(text).display_safe(), shown);
    }
    assert_eq!(Text::from_utf16(&[0x1B, HIGH]).display_safe(), "\u{FFFD}");
}

#[test]
fn a_long_text_is_cut_between_characters_and_says_so() {
    let text = Text::from("ab€cd");
    assert_eq!(*text.shortened(7), "ab€cd");
    assert_eq!(*text.shortened(6), "ab…");
    assert_eq!(*Text::from("abcd€").shortened(6), "abc…");
    assert_eq!(*text.shortened(3), "…");
    assert_eq!(*text.shortened(2), "");
    let lone = Text::from_utf16(&[HIGH, 0x61, 0x61, 0x61, 0x61]);
    assert_eq!(*lone.shortened(6), Text::from_utf16(&[HIGH, '…' as u16]));
}

#[test]
fn the_debug_form_is_a_literal_that_hides_nothing() {
    assert_eq!(
        format!("{:?}", Text::from("a\"\\\n\u{1b}\u{202e}\u{e0041}é")),
        r#""a\"\\\n\u001b\u202e\udb40\udc41é""#
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn code_units_survive_every_form(units in strategies::units()) {
        let text = Text::from_utf16(&units);
        prop_assert_eq!(text.to_utf16(), units.clone());
        prop_assert_eq!(text.as_str().map(str::to_owned), String::from_utf16(&units).ok());
        prop_assert_eq!(text.to_string_lossy(), String::from_utf16_lossy(&units));
        prop_assert_eq!(text.len_bytes(), text.to_wtf8().len());
        prop_assert_eq!(Text::from_wtf8(text.to_wtf8().into_owned()), Ok(text.clone()));
        let each_apart: Vec<u8> = units.iter().flat_map(|&unit| Text::from_utf16(&[unit]).to_wtf8().into_owned()).collect();
        prop_assert_eq!(Text::from_wtf8(each_apart), Ok(text));
    }

    #[test]
    fn equal_strings_are_equal_however_they_were_made(string in any::<String>()) {
        let units: Vec<u16> = string.encode_utf16().collect();
        let made = [Text::from(string.as_str()), Text::from_utf16(&units), Text::from_wtf8(string.into_bytes()).unwrap()];
        prop_assert_eq!(HashSet::from(made).len(), 1);
    }

    #[test]
    fn long_ascii_and_a_surrogate_anywhere_in_it_survive(length in 0..200_usize, place in 0..200_usize, unit in 0xD000..0xE000_u16) {
        let mut units = vec![u16::from(b'x'); length];
        units.insert(place.min(length), unit);
        prop_assert_eq!(Text::from_utf16(&units).to_utf16(), units);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        if let Ok(text) = Text::from_wtf8(bytes.clone()) {
            prop_assert_eq!(String::from_utf8(bytes).ok(), text.as_str().map(str::to_owned));
        }
    }

    #[test]
    fn a_shortened_text_fits(units in strategies::units(), max in 0..100_usize) {
        let text = Text::from_utf16(&units);
        let short = text.shortened(max);
        prop_assert!(short.len_bytes() <= max);
        prop_assert_eq!(*short == text, text.len_bytes() <= max);
    }
}
