//! Every value has one encoding, which is CBOR that others read, and survives it.

mod strategies;

use minicbor::data::{IanaTag, Tag};
use proptest::prelude::*;
use pydeno_wire::{BigInt, Budget, MAX_DATE_MILLISECONDS, Text, Value};

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes, &Budget::default()).unwrap();
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// The value as text in which NaN equals itself and -0 differs from 0.
fn exact(value: &Value) -> String {
    format!("{value:?}")
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

#[test]
fn each_kind_of_value_has_its_standard_encoding() {
    let table = [
        (Value::Undefined, "f7"),
        (Value::Null, "f6"),
        (Value::Bool(false), "f4"),
        (Value::Bool(true), "f5"),
        (Value::Number(0.0), "00"),
        (Value::Number(-0.0), "fb8000000000000000"),
        (Value::Number(23.0), "17"),
        (Value::Number(24.0), "1818"),
        (Value::Number(-1.0), "20"),
        (Value::Number(-256.0), "38ff"),
        (Value::Number(65_536.0), "1a00010000"),
        (Value::Number(9_007_199_254_740_991.0), "1b001fffffffffffff"),
        (Value::Number(-9_007_199_254_740_991.0), "3b001ffffffffffffe"),
        (Value::Number(9_007_199_254_740_992.0), "fb4340000000000000"),
        (Value::Number(-9_007_199_254_740_992.0), "fbc340000000000000"),
        (Value::Number(0.5), "fb3fe0000000000000"),
        (Value::Number(f64::NAN), "fb7ff8000000000000"),
        (Value::Number(-f64::NAN), "fb7ff8000000000000"),
        (Value::Number(f64::INFINITY), "fb7ff0000000000000"),
        (Value::Number(f64::NEG_INFINITY), "fbfff0000000000000"),
        (Value::BigInt(BigInt::new(false, vec![])), "c240"),
        (Value::BigInt(BigInt::new(false, vec![0, 5])), "c24105"),
        (Value::BigInt(BigInt::new(true, vec![1])), "c340"),
        (Value::BigInt(BigInt::new(true, vec![1, 0])), "c341ff"),
        (Value::BigInt(BigInt::new(true, vec![2, 0])), "c34201ff"),
        (Value::from("aé"), "6361c3a9"),
        (Value::String(Text::from_utf16(&[0x61, 0xD800])), "d901114461eda080"),
        (Value::Bytes(vec![1, 2]), "420102"),
        (Value::Date(0), "d903e9a201002200"),
        (Value::Date(1_234), "d903e9a201012218ea"),
        (Value::Date(-1), "d903e9a20120221903e7"),
        (Value::Date(MAX_DATE_MILLISECONDS), "d903e9a2011b000007dba82180002200"),
        (Value::Array(vec![Value::Null, Value::Undefined]), "82f6f7"),
        (object([("b", Value::Null), ("a", Value::Bool(true))]), "a26162f66161f5"),
        (Value::Set(vec![Value::Number(1.0)]), "d901028101"),
        (Value::Map(vec![(Value::Null, Value::Array(vec![]))]), "d90103a1f680"),
    ];
    for (value, expected) in table {
        let bytes = encoded(&value);
        assert_eq!(hex(&bytes), expected, "{value:?}");
        assert_eq!(exact(&Value::decode(&bytes, &Budget::default()).unwrap()), exact(&value));
    }
}

#[test]
fn an_object_keeps_its_order_and_every_key() {
    let value = object([
        ("z", Value::Null),
        ("__proto__", object([("polluted", Value::Bool(true))])),
        ("", Value::Undefined),
        ("constructor", Value::Null),
        ("a", Value::Null),
    ]);
    assert_eq!(Value::decode(&encoded(&value), &Budget::default()), Ok(value));
}

#[test]
fn members_and_map_keys_that_look_alike_are_kept() {
    let alike = || object([("a", Value::Number(1.0))]);
    let value = Value::Array(vec![
        Value::Set(vec![alike(), alike()]),
        Value::Map(vec![(alike(), Value::Null), (alike(), Value::Null)]),
    ]);
    assert_eq!(Value::decode(&encoded(&value), &Budget::default()), Ok(value));
}

#[test]
fn an_encoding_is_appended() {
    let mut bytes = vec![1, 2];
    Value::Null.encode(&mut bytes, &Budget::default()).unwrap();
    assert_eq!(bytes, [1, 2, 0xF6]);
}

#[test]
fn a_library_reads_what_is_written() {
    let value = object([
        ("list", Value::Array(vec![Value::Undefined, Value::Null, Value::Number(-7.0), Value::Number(0.5)])),
        ("big", Value::BigInt(BigInt::new(true, vec![1, 0]))),
        ("set", Value::Set(vec![Value::from("é")])),
        ("map", Value::Map(vec![(Value::Bool(true), Value::Bytes(vec![0xAB]))])),
    ]);
    let bytes = encoded(&value);
    let mut library = minicbor::Decoder::new(&bytes);
    assert_eq!(library.map().unwrap(), Some(4));
    assert_eq!(library.str().unwrap(), "list");
    assert_eq!(library.array().unwrap(), Some(4));
    library.undefined().unwrap();
    library.null().unwrap();
    assert_eq!(library.i64().unwrap(), -7);
    assert_eq!(library.f64().unwrap().to_bits(), 0.5_f64.to_bits());
    assert_eq!(library.str().unwrap(), "big");
    assert_eq!(library.tag().unwrap(), IanaTag::NegBignum.tag());
    assert_eq!(library.bytes().unwrap(), [0xFF].as_slice());
    assert_eq!(library.str().unwrap(), "set");
    assert_eq!(library.tag().unwrap(), Tag::new(258));
    assert_eq!(library.array().unwrap(), Some(1));
    assert_eq!(library.str().unwrap(), "é");
    assert_eq!(library.str().unwrap(), "map");
    assert_eq!(library.tag().unwrap(), Tag::new(259));
    assert_eq!(library.map().unwrap(), Some(1));
    assert!(library.bool().unwrap());
    assert_eq!(library.bytes().unwrap(), [0xAB].as_slice());
    assert_eq!(library.position(), bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_value_survives_and_has_one_encoding(value in strategies::value()) {
        let bytes = encoded(&value);
        let decoded = Value::decode(&bytes, &Budget::default()).unwrap();
        prop_assert_eq!(exact(&decoded), exact(&value));
        prop_assert_eq!(encoded(&decoded), bytes);
    }

    #[test]
    fn a_library_finds_well_formed_cbor_and_nothing_after_it(value in strategies::value()) {
        let bytes = encoded(&value);
        let mut decoder = minicbor::Decoder::new(&bytes);
        decoder.skip().unwrap();
        prop_assert_eq!(decoder.position(), bytes.len());
    }

    #[test]
    fn a_number_keeps_its_bits(number in strategies::number()) {
        let decoded = Value::decode(&encoded(&Value::Number(number)), &Budget::default());
        let Ok(Value::Number(decoded)) = decoded else { panic!("{number} became {decoded:?}") };
        if number.is_nan() {
            prop_assert!(decoded.is_nan());
        } else {
            prop_assert_eq!(decoded.to_bits(), number.to_bits());
        }
    }

    #[test]
    fn a_big_integer_is_the_number_that_its_bignum_is(number in any::<i128>(), shift in 0..127_u32) {
        let number = number >> shift;
        let value = BigInt::new(number < 0, number.unsigned_abs().to_be_bytes().to_vec());
        let bytes = encoded(&Value::BigInt(value.clone()));
        // RFC 8949, section 3.4.3: tag 2 holds n, tag 3 holds -1 - n.
        let content = bytes[2..].iter().fold(0, |high, &low| high << 8 | i128::from(low));
        prop_assert_eq!(if bytes[0] == 0xC2 { content } else { -1 - content }, number);
        prop_assert_eq!(Value::decode(&bytes, &Budget::default()), Ok(Value::BigInt(value)));
    }

    #[test]
    fn a_date_is_the_seconds_and_milliseconds_that_it_holds(
        date in -MAX_DATE_MILLISECONDS..=MAX_DATE_MILLISECONDS
    ) {
        let bytes = encoded(&Value::Date(date));
        let mut decoder = minicbor::Decoder::new(&bytes[3..]);
        prop_assert_eq!(decoder.map().unwrap(), Some(2));
        prop_assert_eq!(decoder.i64().unwrap(), 1);
        let seconds = decoder.i64().unwrap();
        prop_assert_eq!(decoder.i64().unwrap(), -3);
        let milliseconds = decoder.i64().unwrap();
        prop_assert!((0..1000).contains(&milliseconds));
        prop_assert_eq!(seconds * 1000 + milliseconds, date);
    }
}
