//! The way back: a name in the output is where the author wrote it.

use proptest::prelude::*;
use pydeno_transform::{Language, ModuleOptions, Position, PositionMap, ScriptOptions, module, script};

/// Statements in which `N` stands for names; those of a line are the same name.
const STATEMENTS: &[&str] = &[
    "const N = await f(N1)",
    "let N, {N1: N2 = [N3]} = N4",
    "var N = (N1) => N1.N2, [N3] = N4;",
    "function N(N1, ...N2) { return N1 + N2 }",
    "class N extends N1 { N2 = N3; static N4() { return N2 } }",
    "for (var N of N1) { if (N2) N3(); else N4() }",
    "N()\n",
    "N.N1`x${N2}y`;",
    "/* é😀 */ N = '€😀' + N1;",
    "try { N(N1) } catch (N2) { N2 } finally { N3 }",
    "x = {N, N1: N2, [N3]() { return N4 }}",
];

const FOR_MODULES: &[&str] = &[
    "export const N = N1",
    "export default function () { return N }",
    "import {N as N1} from 'm'; N1(N2); N3 = {N1}",
    "export function N() { return import.meta.N1 }",
    "const N = await import(N1)",
];

const FOR_TYPESCRIPT: &[&str] = &[
    "let N: T<U> = N2 as V",
    "enum N { A = N1.length, B }",
    "class N { constructor(private N1: T, N2?: U) { N3<V>(N1!) } }",
    "let N = (N1 satisfies V) as { a: U }",
];

const ENDS: &[&str] = &["\n", ";\n", ";\r\n", ";\r", ";\u{2028}", "; "];

/// A source of some of the statements, with names that appear nowhere else.
fn source(statements: Vec<&'static str>) -> impl Strategy<Value = String> {
    let statement = prop::sample::select(statements);
    let end = prop::sample::select(ENDS);
    prop::collection::vec((statement, end), 1..12).prop_map(|lines| {
        let mut text = String::new();
        for (number, (statement, end)) in lines.into_iter().enumerate() {
            // A default export is there only once.
            if statement.contains("default") && text.contains("default") {
                continue;
            }
            for part in statement.split_inclusive(|character: char| !character.is_ascii_alphanumeric()) {
                let word = part.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
                let is_name = word
                    .strip_prefix('N')
                    .is_some_and(|rest| rest.chars().all(|digit| digit.is_ascii_digit()));
                if is_name {
                    text +=
                        &format!("name_{number}_{}", word.len() + word[1..].parse::<usize>().unwrap_or(0));
                    text += &part[word.len()..];
                } else {
                    text += part;
                }
            }
            text += end;
        }
        text
    })
}

/// Where the names begin, each with the text there.
fn names(text: &str) -> Vec<(Position, &str)> {
    let mut found = Vec::new();
    let (mut position, mut previous) = (Position::START, ' ');
    for (at, character) in text.char_indices() {
        if text[at..].starts_with("name_") && !previous.is_alphanumeric() && previous != '_' {
            let length = text[at..].find(|character: char| !character.is_alphanumeric() && character != '_');
            found.push((position, &text[at..length.map_or(text.len(), |length| at + length)]));
        }
        match character {
            '\n' if previous == '\r' => {}
            '\n' | '\r' | '\u{2028}' => position = Position { line: position.line + 1, column: 1 },
            _ => position.column += character.len_utf16() as u32,
        }
        previous = character;
    }
    found
}

/// Every name of the source has a place in the output that leads to it, and no name leads to another one.
fn check(source: &str, text: &str, map: &PositionMap) {
    let known = names(source);
    let mut missing = known.clone();
    let start = map.original(Position::START);
    for (position, name) in names(text) {
        let original = map.original(position);
        // What was put in for the whole source is at its beginning.
        if original == start {
            continue;
        }
        if let Some((_, there)) = known.iter().find(|(place, _)| *place == original) {
            assert_eq!(*there, name, "{source}\n{text}\n{position} is {original}");
            missing.retain(|(place, _)| *place != original);
        }
    }
    missing.retain(|(place, _)| *place != start);
    // The clause of an import is for the loader and not in the text.
    let imports: Vec<_> = source
        .split_inclusive(['\n', '\r', '\u{2028}', ';'])
        .filter(|line| line.trim_start().starts_with("import"))
        .collect();
    missing.retain(|(_, name)| !imports.iter().any(|line| line.contains(name)));
    assert!(missing.is_empty(), "{source}\n{text}\nnothing leads to {missing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_of_scripts_lead_back(source in source(STATEMENTS.to_vec()), redeclare: bool) {
        let options = ScriptOptions { redeclare, ..ScriptOptions::default() };
        let script = script(&source, &options).unwrap_or_else(|error| panic!("{source}\n{error}"));
        check(&source, &script.text, &script.map);
    }

    #[test]
    fn names_of_modules_lead_back(source in source([STATEMENTS, FOR_MODULES].concat())) {
        let module = module(&source, &ModuleOptions::default()).unwrap_or_else(|error| panic!("{source}\n{error}"));
        check(&source, &module.text, &module.map);
    }

    #[test]
    fn names_of_typescript_lead_back(source in source([STATEMENTS, FOR_TYPESCRIPT].concat())) {
        let options = ScriptOptions { language: Language::TypeScript, ..ScriptOptions::default() };
        let script = script(&source, &options).unwrap_or_else(|error| panic!("{source}\n{error}"));
        check(&source, &script.text, &script.map);
    }
}

#[test]
fn a_map_that_leads_elsewhere_would_be_noticed() {
    let source = "name_0_1()\nname_0_2(await 1)";
    let script = script(source, &ScriptOptions::default()).expect("it parses");
    check(source, &script.text, &script.map);
    let wrong = std::panic::catch_unwind(|| check(source, &script.text, &PositionMap::identity()));
    assert!(wrong.is_err());
}
