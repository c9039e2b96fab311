//! Bytes that no honest peer sends are refused, each for its own reason, and never with a panic.

mod strategies;

use proptest::prelude::*;
use pydeno_wire::{Budget, DecodeError, Value};

fn decoded(bytes: &[u8]) -> Result<Value, DecodeError> {
    Value::decode(bytes, &Budget::default())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A value that has every kind of item in it.
fn sample() -> Vec<u8> {
    bytes(
        "aa 6161 8301 3903e7 fb3fe0000000000000  6162 84f4f5f6f7  6163 c24401000000  6164 c341ff \
         6165 d903e9a2011a5f5e10002218ea  6166 d901028263616263 d9011144eda08061  6167 d90103a2 80a0 a08142ffff \
         6168 fb7ff8000000000000 6169 1b001fffffffffffff d9011143edbfbf 1818",
    )
}

#[test]
fn the_sample_is_accepted_whole() {
    let value = decoded(&sample()).unwrap();
    let mut again = Vec::new();
    value.encode(&mut again, &Budget::default()).unwrap();
    assert_eq!(again, sample());
}

#[test]
fn a_value_cut_off_anywhere_is_refused() {
    let whole = sample();
    for length in 0..whole.len() {
        let error = decoded(&whole[..length]).unwrap_err();
        let is_short = matches!(error, DecodeError::Truncated { .. } | DecodeError::TooFewBytes { .. });
        assert!(is_short, "cut at {length}: {error}");
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut longer = sample();
    let offset = longer.len();
    longer.extend([0xF6, 0xF6]);
    assert_eq!(decoded(&longer), Err(DecodeError::TrailingBytes { offset, count: 2 }));
}

#[test]
fn a_second_way_to_write_a_value_is_refused() {
    for second in [
        "1817",               // 23 in two bytes
        "1900ff",             // 255 in three
        "1a0000ffff",         // 65535 in five
        "1b00000000ffffffff", // 2^32 - 1 in nine
        "3800",               // -1 in two
        "780161",             // a length in two
        "580100",
        "9801f6",
        "b8016161f6",
        "d802 40",            // a tag in two
        "fb3ff0000000000000", // 1 as a float
        "fb0000000000000000", // 0 as a float
        "fbc33fffffffffffff", // a safe integer as a float
        "fb7ff8000000000001", // NaN with a payload
        "fbfff8000000000000", // NaN with a sign
        "fb7ff0000000000001", // a signalling NaN
        "c24100",             // a bignum with leading zeros
        "c3420001",
        "d901114161", // WTF-8 that is UTF-8
        "d9011140",
        "d9011146eda0bdedb880",       // WTF-8 with a pair in two parts
        "d9011149eda080eda0bdedb880", // the same after a lone surrogate
    ] {
        let error = decoded(&bytes(second)).unwrap_err();
        assert!(matches!(error, DecodeError::NotCanonical { .. }), "{second}: {error}");
    }
}

#[test]
fn items_that_are_not_used_are_refused() {
    for (unused, initial) in [
        ("5f4100ff", 0x5F), // indefinite lengths
        ("7f6161ff", 0x7F),
        ("9ff6ff", 0x9F),
        ("bf6161f6ff", 0xBF),
        ("ff", 0xFF),
        ("1c", 0x1C),     // reserved
        ("f93c00", 0xF9), // floats of other sizes
        ("fa3fc00000", 0xFA),
        ("f0", 0xF0), // other simple values
        ("f820", 0xF8),
        ("f817", 0xF8), // undefined in two bytes
    ] {
        assert_eq!(decoded(&bytes(unused)), Err(DecodeError::Unsupported { offset: 0, initial }), "{unused}");
    }
}

#[test]
fn other_tags_are_refused() {
    for (tagged, tag) in
        [("c074323032302d30312d30315430303a30303a30305a", 0), ("c100", 1), ("d9d9f7f6", 55_799)]
    {
        assert_eq!(decoded(&bytes(tagged)), Err(DecodeError::UnknownTag { offset: 0, tag }));
    }
}

#[test]
fn a_tag_around_something_else_is_refused() {
    for tagged in [
        "c200", // a bignum of an integer
        "c26161",
        "d90102a0",         // a set of a map
        "d9010380",         // a map of an array
        "d901116161",       // WTF-8 of a text string
        "d90102d9010280",   // a set of a set
        "d903e900",         // a time that is no map
        "d903e9a10100",     // without its milliseconds
        "d903e9a222000100", // in another order
        "d903e9a2010022fb3fe0000000000000",
        "d903e9a20100221903e8", // a thousand milliseconds
        "d903e9a201002220",     // fewer than none
        "d903e9a2010025 00",    // microseconds
        "d903e9a201f62200",
        "a1 01f6", // a key that is no string
        "a1 4161f6",
        "a1 f6f6",
    ] {
        let error = decoded(&bytes(tagged)).unwrap_err();
        let is_misplaced = matches!(error, DecodeError::Unexpected { .. } | DecodeError::Unsupported { .. });
        assert!(is_misplaced, "{tagged}: {error}");
    }
}

#[test]
fn integers_beyond_the_safe_ones_are_refused() {
    for integer in ["1b0020000000000000", "3b001fffffffffffff", "1bffffffffffffffff", "3bffffffffffffffff"] {
        assert_eq!(decoded(&bytes(integer)), Err(DecodeError::IntegerOutOfRange { offset: 0 }));
    }
}

#[test]
fn dates_beyond_javascripts_are_refused() {
    for date in [
        "d903e9a2011b000007dba82180002201",      // 8.64e15 + 1
        "d903e9a2013b000007dba821800022190 3e7", // -8.64e15 - 1
        "d903e9a2011b7fffffffffffffff2200",
        "d903e9a2013bffffffffffffffff2200",
    ] {
        assert_eq!(decoded(&bytes(date)), Err(DecodeError::DateOutOfRange { offset: 0 }), "{date}");
    }
}

#[test]
fn ill_formed_strings_are_refused() {
    for (text, offset) in
        [("61ff", 1), ("63eda080", 1), ("62c080", 1), ("d9011141ff", 4), ("d9011142eda0", 4)]
    {
        assert_eq!(decoded(&bytes(text)), Err(DecodeError::InvalidText { offset }), "{text}");
    }
}

#[test]
fn a_key_that_comes_twice_is_refused_in_small_objects_and_in_large_ones() {
    for count in [2_u8, 8, 9, 23] {
        let mut object = vec![0xA0 | count];
        for index in 1..count {
            object.extend([0x61, b'a' + index, 0xF6]);
        }
        if count == 23 {
            object[0] = 0xB7;
        }
        let distinct = [object.clone(), bytes("61 61 f6")].concat();
        assert!(decoded(&distinct).is_ok(), "{count}");
        let twice = [object, vec![0x61, b'b', 0xF6]].concat();
        let expected = DecodeError::DuplicateKey { offset: twice.len(), key: "b".into() };
        assert_eq!(decoded(&twice), Err(expected), "{count}");
    }
    let lone_surrogate_twice = bytes("a2 d9011143eda080 f6 d9011143eda080 f6");
    assert!(matches!(decoded(&lone_surrogate_twice), Err(DecodeError::DuplicateKey { .. })));
}

#[test]
fn a_claim_of_more_than_there_can_be_is_refused_at_once() {
    for (claim, claimed, available) in [
        ("9bffffffffffffffff", u64::MAX, 0),
        ("bbffffffffffffffff", u64::MAX, 0),
        ("84f6f6f6", 4, 3),
        ("a2 6161f6", 4, 3),
        ("d90102 84f6f6f6", 4, 3),
        ("d90103 a2 f6f6f6", 4, 3),
        ("82 83 f6f6f6", 3, 2), // one byte is owed to the outer array
    ] {
        let error = decoded(&bytes(claim)).unwrap_err();
        let is_exact = matches!(error, DecodeError::TooFewBytes { claimed: c, available: a, .. } if (c, a) == (claimed, available));
        assert!(is_exact, "{claim}: {error}");
    }
    for claim in ["5bffffffffffffffff", "7bffffffffffffffff", "5a7fffffff00", "c25bffffffffffffffff"] {
        let error = decoded(&bytes(claim)).unwrap_err();
        assert!(matches!(error, DecodeError::Truncated { .. }), "{claim}: {error}");
    }
}

#[test]
fn a_million_nested_containers_are_refused() {
    for opening in ["81", "d9010281", "a16161", "d90103a1f6", "d90103a1"] {
        let bomb = bytes(opening).repeat(1_000_000);
        let error = Value::decode(&bomb, &Budget { depth: u32::MAX, ..Budget::default() }).unwrap_err();
        assert!(matches!(error, DecodeError::Depth { limit: Budget::MAX_DEPTH, .. }), "{opening}: {error}");
    }
}

/// Whatever is accepted is the one encoding of what it is read as.
fn is_refused_or_canonical(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(value) = decoded(bytes) {
        let mut again = Vec::new();
        value.encode(&mut again, &Budget::default()).unwrap();
        prop_assert_eq!(again, bytes);
    }
    Ok(())
}

/// Bytes of which many begin an item.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let initial = prop::sample::select(bytes(
        "00 17 18 19 20 37 40 41 42 60 61 62 80 81 82 a0 a1 a2 c2 c3 f4 f5 f6 f7 fb d9 01 02 03 11 e9 ed a0 bd ff",
    ));
    prop::collection::vec(prop_oneof![8 => initial, 1 => any::<u8>()], 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes_are_refused_or_canonical(bytes in any::<Vec<u8>>()) {
        is_refused_or_canonical(&bytes)?;
    }

    #[test]
    fn plausible_bytes_are_refused_or_canonical(bytes in plausible()) {
        is_refused_or_canonical(&bytes)?;
    }

    #[test]
    fn a_changed_encoding_is_refused_or_canonical(
        place in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..3
    ) {
        let mut bytes = sample();
        let place = place.index(bytes.len());
        match kind {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            _ => drop(bytes.remove(place)),
        }
        is_refused_or_canonical(&bytes)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_value_is_refused_or_canonical(
        value in strategies::value(), place in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = Vec::new();
        value.encode(&mut bytes, &Budget::default()).unwrap();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        is_refused_or_canonical(&bytes)?;
    }
}
