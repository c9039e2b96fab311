//! What holds for every source, shared with the fuzz target.

#![allow(unreachable_pub, reason = "the fuzz target uses it from outside")]

use pydeno_transform::{
    Completion, Decorators, ErrorKind, Language, ModuleOptions, Position, PositionMap, ScriptOptions,
    TransformError, module, needs_transform, script,
};

const MAX: usize = 1 << 16;

/// Transforms a source in every way. It never panics; what comes out is a script that the parser takes, and that needs no
/// more work; positions are inside the source.
pub fn hold(source: &[u8]) {
    let Ok(source) = std::str::from_utf8(source) else { return };
    for language in [Language::JavaScript, Language::TypeScript] {
        for decorators in [Decorators::Refuse, Decorators::Legacy] {
            if decorators == Decorators::Legacy && language == Language::JavaScript {
                continue;
            }
            for redeclare in [false, true] {
                let options = ScriptOptions {
                    language,
                    decorators,
                    redeclare,
                    import_function: Some("load"),
                    max_source_bytes: MAX,
                };
                match script(source, &options) {
                    Ok(script) => {
                        positions_are_inside(source, &script.text, &script.map);
                        if script.map.is_identity() {
                            assert_eq!(script.text, source);
                            assert_eq!(script.completion, Completion::Value);
                        } else {
                            is_a_script(source, &script.text);
                        }
                        assert!(needs_transform(source, &options) || script.map.is_identity());
                    }
                    Err(error) => is_no_mistake_of_ours(source, &error),
                }
            }
            let options = ModuleOptions { language, decorators, max_source_bytes: MAX };
            match module(source, &options) {
                Ok(module) => {
                    positions_are_inside(source, &module.text, &module.map);
                    is_a_script(source, &module.text);
                    assert!(module.imports.iter().all(|import| import.request < module.requests.len()));
                }
                Err(error) => is_no_mistake_of_ours(source, &error),
            }
        }
    }
}

fn is_no_mistake_of_ours(source: &str, error: &TransformError) {
    assert_ne!(error.kind, ErrorKind::Internal, "{source:?}\n{error}");
    assert!(error.position <= end(source), "{source:?}\n{error}");
}

/// With an option that looks at the whole text, a text that does not parse is an error; one that does comes back.
fn is_a_script(source: &str, text: &str) {
    let options = ScriptOptions { redeclare: true, max_source_bytes: usize::MAX, ..ScriptOptions::default() };
    let longer = format!("{text}\nlet $$again");
    match script(&longer, &options) {
        Ok(again) => assert_eq!(again.completion, Completion::Value, "{source:?}\n{text}"),
        // Two brackets more than the source.
        Err(error) if error.kind == ErrorKind::TooDeep => {}
        Err(error) => panic!("{source:?}\n{text}\n{error}"),
    }
}

fn positions_are_inside(source: &str, text: &str, map: &PositionMap) {
    let end = end(source);
    let lines = 1 + text.matches(['\n', '\r', '\u{2028}', '\u{2029}']).count() as u32;
    for line in 1..=lines + 1 {
        for column in [1, 2, 7, 40] {
            let original = map.original(Position { line, column });
            assert!(original.line >= 1 && original.column >= 1, "{source:?}\n{text}");
            if !map.is_identity() && line <= lines {
                assert!(original.line <= end.line, "{source:?}\n{text}\n{line}:{column} is {original}");
            }
        }
    }
}

fn end(source: &str) -> Position {
    let mut position = Position::START;
    let mut previous = ' ';
    for character in source.chars() {
        match character {
            '\n' if previous == '\r' => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                position = Position { line: position.line + 1, column: 1 }
            }
            _ => position.column += character.len_utf16() as u32,
        }
        previous = character;
    }
    position
}
