//! Proof that the table says of words what looking at each of them says, whether they are joined with the tokens behind them
//! or not, and wherever the bounds of blocks are.

use std::ops::Range;

use crate::keyword::RULE_WORDS;
use crate::scanner::{Role, Scanner, Sink, TextKind};

/// Scripts with something of everything.
const SCRIPTS: &[&str] = &[
    "async function* f(a = {b: /[/]/v}, ...c) { yield `x${a ? {d: `y${c}`} : /e/g}z`; return fetch / b / self }",
    "class A extends (class {}) { #x = 1; static { fetch(1) } get 'y'() { return this.#x++ / 2 } *[z]() {} eval }",
    "for(const a of /b/)if(c)/d/.test(e);else do/f/.exec(g);while(h)/i/;x=y\n++z;label:{}switch(a){case b:/c/}",
    "import a, {b as c} from 'd'; export default function () {} import('e'); import.meta.f; export * from 'g'",
    "type A<T extends B = {c: D}> = T extends E ? F[] : (g: H) => I; let j: K<process> = <M>n as O; p! / q",
    "x = <A.b c='d' {...e} f={<g/>}>it's {h.map(i => <>{i}</>)} </A.b>; j = <K,>(l) => m; async q => await /r/",
    "t=function(n,e){return n?e/2:i=>i.process<<1};\\u0066etch(1);({fetch,async*eval(){},global:self})\u{2028}caf\u{e9}/a/1",
    "async a => b\nc(await / fetch / 1); d = //e\n/fetch/g",
    "a.constructor.constructor;abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz/b/c",
];

/// Where words that rules are about and texts stand, and the role or the kind of each.
#[derive(Default, PartialEq, Debug)]
struct Found<const EVERY_WORD: bool>(Vec<(Range<usize>, u8)>);

impl<const EVERY_WORD: bool> Sink for Found<EVERY_WORD> {
    const EVERY_WORD: bool = EVERY_WORD;

    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role) {
        if escaped || RULE_WORDS.iter().any(|word| word.as_bytes() == &source[span.clone()]) {
            self.0.push((span, role as u8));
        }
    }

    fn text(&mut self, _: &[u8], span: Range<usize>, kind: TextKind) {
        self.0.push((span, u8::MAX - kind as u8));
    }

    fn steps(&mut self, _: usize) {}
}

fn assert_agreement(source: &str) {
    let by_table = Scanner::new(source.as_bytes(), Found::<false>::default()).run().0;
    let by_looking = Scanner::new(source.as_bytes(), Found::<true>::default()).run().0;
    assert_eq!(by_table, by_looking, "{source:?}");
}

#[test]
fn the_table_says_what_looking_says_wherever_blocks_end() {
    for script in SCRIPTS {
        for shift in 0..64 {
            assert_agreement(&format!("{}{script}", " ".repeat(shift)));
            assert_agreement(&format!("{};{script}", "a".repeat(shift + 1)));
        }
    }
}

#[test]
fn the_table_says_what_looking_says_of_each_beginning_and_each_end() {
    for script in SCRIPTS {
        for (at, _) in script.char_indices() {
            assert_agreement(&script[..at]);
            assert_agreement(&script[at..]);
            assert_agreement(&format!("{}{}", &script[at..], &script[..at]));
        }
    }
}

#[test]
fn the_comparison_sees_words_of_rules_and_texts() {
    let found = Scanner::new(b"fetch('a')", Found::<false>::default()).run().0;
    assert_eq!(found, [(0..5, Role::Reference as u8), (6..9, u8::MAX - TextKind::String as u8)]);
    assert_ne!(found, Scanner::new(b"fetch(`a`)", Found::<true>::default()).run().0);
}
