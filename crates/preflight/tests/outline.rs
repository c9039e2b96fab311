//! Where the statements of a program begin.

use pydeno_preflight::outline;

fn last_words(source: &str) -> Vec<String> {
    let outline = outline(source.as_bytes());
    outline.starts.iter().map(|start| source[start.at..outline.end].to_owned()).collect()
}

#[test]
fn a_semicolon_between_statements_leaves_only_what_follows_it() {
    assert_eq!(last_words("const x = 1; x + 1;"), ["x + 1"]);
    assert_eq!(last_words("x + 1;;\n"), ["x + 1"]);
    assert!(outline(b"x + 1;").is_single);
    assert!(!outline(b"x; 1").is_single);
}

#[test]
fn a_line_that_goes_on_with_the_one_before_begins_nothing() {
    assert_eq!(last_words("a\n  .b()\n  + c"), ["a\n  .b()\n  + c"]);
    assert_eq!(last_words("f()\ng()"), ["f()\ng()", "g()"]);
    assert_eq!(last_words("a\n++b"), ["a\n++b", "++b"]);
}

#[test]
fn brackets_text_and_comments_hide_what_is_inside() {
    assert_eq!(last_words("f({\n a: 1,\n b: [\n 2 ] })"), ["f({\n a: 1,\n b: [\n 2 ] })"]);
    assert_eq!(last_words("`a;\n${b\n;c}\nd`"), ["`a;\n${b\n;c}\nd`"]);
    assert_eq!(last_words("a // ; b\n/* ; c */"), ["a"]);
}

#[test]
fn what_could_go_on_after_a_brace_is_told_apart_by_where_the_text_before_ends() {
    let outline = outline(b"if (a) {}\n(b)");
    let last = outline.starts.last().unwrap();
    assert_eq!((last.before, last.at), (9, 10));
}

#[test]
fn a_declaration_is_a_statement_and_an_arrow_function_is_not() {
    let is_statement = |source: &str| outline(source.as_bytes()).starts.last().unwrap().is_statement;
    assert!(is_statement("async function f() {}"));
    assert!(is_statement("const a = 1"));
    assert!(!is_statement("async () => {}"));
    assert!(!is_statement("functional()"));
}

#[test]
fn a_default_export_is_found_where_it_begins_a_statement_only() {
    assert_eq!(outline(b"export default  f").export_default, Some(0..16));
    assert_eq!(outline(b"let a = 1\nexport default f").export_default, Some(10..25));
    assert_eq!(outline(b"'export default f'").export_default, None);
    assert_eq!(outline(b"{ export default f }").export_default, None);
}

#[test]
fn only_the_last_statements_are_kept() {
    let source = "f()\n".repeat(1000);
    assert_eq!(outline(source.as_bytes()).starts.len(), 64);
}
