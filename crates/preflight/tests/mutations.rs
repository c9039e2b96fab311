//! Sources that were cut up and put together again: whatever comes of it, the invariants hold.

mod invariants;

/// Scripts with something of everything.
const SCRIPTS: &[&str] = &[
    "async function* f(a = {b: /[/]/v}, ...c) { yield `x${a ? {d: `y${c}`} : /e/g}z`; return a / b / c }",
    "class A extends (class {}) { #x = 1; static { fetch(1) } get 'y'() { return this.#x++ / 2 } *[z]() {} }",
    "for (const a of /b/) if (c) /d/.test(e); else do /f/.exec(g); while (h) /i/; x = y\n++z; label: {}",
    "import a, {b as c} from 'd'; export default function () {} import('e'); import.meta.f; export * from 'g'",
    "type A<T extends B = {c: D}> = T extends E ? F[] : (g: H) => I; let j: K<L> = <M>n as O; p! / q",
    "globalThis['fe\\x74ch']; window.self?.['process']; \\u0066etch(1); new Function('a'); b.constructor.constructor",
    "x = <A.b c='d' {...e} f={<g/>}>it's {h.map(i => <>{i}</>)} `</A.b>; j = <K,>(l) => m; n = <O>p; async q => await /r/",
    "#!x\n<!-- y\n--> z\r\n\u{2028}'a\\\r\nb' + \"\u{2029}\" // c\u{2028}/* d */ 1_000n + .5e-3 + 0xff + 010.e + 1..f",
];

/// Inputs that once broke an invariant or a rule.
const FOUND: &[&str] =
    &["1 << 2; a / b / c", "import a, {b} from 'c'", "`${", "a?b:`${c}`", "/[", "'\\", "\\u{"];

/// A generator of numbers, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[test]
fn the_invariants_hold_for_whole_scripts_and_each_of_their_beginnings() {
    for script in SCRIPTS.iter().chain(FOUND) {
        for end in 0..=script.len() {
            invariants::hold(&script.as_bytes()[..end]);
        }
    }
}

#[test]
fn the_invariants_hold_for_pieces_put_together_at_random() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let mut source = Vec::new();
        for _ in 0..=numbers.below(6) {
            let script = SCRIPTS[numbers.below(SCRIPTS.len())].as_bytes();
            let start = numbers.below(script.len());
            let end = start + numbers.below(script.len() - start + 1);
            source.extend_from_slice(&script[start..end]);
        }
        if !source.is_empty() && numbers.below(2) == 0 {
            let place = numbers.below(source.len());
            source[place] = numbers.below(256) as u8;
        }
        invariants::hold(&source);
    }
}
