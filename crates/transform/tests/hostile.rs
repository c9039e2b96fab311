//! Sources that were made to cost more than they should.

use pydeno_transform::{
    ErrorKind, Language, MAX_NESTING, MAX_SOURCE_BYTES, ModuleOptions, Position, ScriptOptions,
    TransformError, module, script,
};

/// What is nested, how, and what stands in the middle.
const NESTED: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "", "]"),
    ("{", "", "}"),
    ("`${", "1", "}`"),
    ("({a:", "1", "})"),
    ("function f(){", "", "}"),
    ("(class{[", "1", "](){}})"),
    ("(a=", "1", ")=>1"),
    ("async(a=", "1", ")"),
    ("()=>{", "", "}"),
    ("f(", "", ")"),
    ("a?(b=", "1", "):c=>1"),
];

/// What nests without brackets.
const CHAINED: &[(&str, &str, &str)] = &[
    ("!", "1", ""),
    ("- ", "1", ""),
    ("a=>", "1", ""),
    ("a=", "1", ""),
    ("a**", "1", ""),
    ("if(a)", ";", ""),
    ("if(a){}else ", ";", ""),
    ("for(;;)", ";", ""),
    ("do ", ";", "while(0)"),
    ("1+", "1", ""),
    ("a.", "b", ""),
    ("a?.", "b", ""),
    ("", "a", "()"),
    ("", "a", "``"),
    ("", "a", "[0]"),
    ("new ", "a", ""),
    ("await ", "1", ""),
    ("a?", "1", ":1"),
];

fn nested((before, middle, after): (&str, &str, &str), levels: usize) -> String {
    [&before.repeat(levels), middle, &after.repeat(levels)].concat()
}

fn run(source: &str, language: Language) -> [Result<(), TransformError>; 2] {
    let options = ScriptOptions { language, redeclare: true, ..ScriptOptions::default() };
    let as_script = script(&format!("{source}\nlet await_"), &options).map(drop);
    let as_module = module(source, &ModuleOptions { language, ..ModuleOptions::default() }).map(drop);
    [as_script, as_module]
}

/// On a thread whose stack would not do.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(test).expect("a thread can be made");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_hundred_thousand_brackets_are_refused_by_their_number() {
    on_a_small_stack(|| {
        for &shape in NESTED {
            for language in [Language::JavaScript, Language::TypeScript] {
                for result in run(&nested(shape, 100_000 / shape.0.len()), language) {
                    assert_eq!(result.expect_err(shape.0).kind, ErrorKind::TooDeep, "{shape:?}");
                }
            }
        }
    });
}

#[test]
fn as_many_brackets_as_are_allowed_are_no_error_of_depth() {
    on_a_small_stack(|| {
        for &shape in NESTED {
            let levels = MAX_NESTING / 4;
            for language in [Language::JavaScript, Language::TypeScript] {
                for result in run(&nested(shape, levels), language) {
                    let deep = result
                        .is_err_and(|error| matches!(error.kind, ErrorKind::TooDeep | ErrorKind::Internal));
                    assert!(!deep, "{shape:?}");
                }
            }
        }
    });
}

#[test]
fn long_chains_without_brackets_have_room() {
    on_a_small_stack(|| {
        for &shape in CHAINED {
            for language in [Language::JavaScript, Language::TypeScript] {
                for result in run(&nested(shape, 2_000), language) {
                    let inside = result.is_err_and(|error| error.kind == ErrorKind::Internal);
                    assert!(!inside, "{shape:?}");
                }
            }
        }
    });
}

/// The count takes the slash for the beginning of a regular expression; it is a division.
#[test]
fn brackets_that_the_count_does_not_see_have_room() {
    on_a_small_stack(|| {
        let source = format!("y = function () {{}} / {} / 1", nested(("(", "1", ")"), 5_000));
        assert_eq!(run(&source, Language::JavaScript), [Ok(()), Ok(())]);
    });
}

#[test]
fn angle_brackets_of_typescript_are_counted_too() {
    let source = "a<".repeat(20_000) + "b";
    for result in run(&source, Language::TypeScript) {
        assert_eq!(result.expect_err("it is deep").kind, ErrorKind::TooDeep);
    }
    for result in run(&source, Language::JavaScript) {
        assert_eq!(result, Ok(()));
    }
}

#[test]
fn the_place_where_it_gets_too_deep_is_told() {
    let source = format!("1\n  {}", "[".repeat(MAX_NESTING + 1));
    let error = module(&source, &ModuleOptions::default()).expect_err("it is deep");
    assert_eq!(error.position, Position { line: 2, column: 3 + MAX_NESTING as u32 });
}

#[test]
fn a_source_that_is_too_long_is_refused() {
    let source = " ".repeat(MAX_SOURCE_BYTES + 1);
    assert_eq!(script(&source, &ScriptOptions::default()).expect_err("it is long").kind, ErrorKind::TooLarge);
    assert_eq!(module(&source, &ModuleOptions::default()).expect_err("it is long").kind, ErrorKind::TooLarge);
    let options = ModuleOptions { max_source_bytes: source.len(), ..ModuleOptions::default() };
    assert!(module(&source, &options).is_ok());
}

#[test]
fn the_output_grows_with_the_source_and_not_with_its_square() {
    let source = nested(("if(a)", ";", ""), 20_000);
    let options = ModuleOptions { language: Language::TypeScript, ..ModuleOptions::default() };
    let text = module(&source, &options).expect("it parses").text;
    assert!(text.len() < source.len() * 3, "{} of {}", text.len(), source.len());
}
