//! Sources that were cut up and put together again: whatever comes of it, the invariants hold.

mod invariants;

use proptest::prelude::*;

/// Sources with something of everything.
const SOURCES: &[&str] = &[
    "const {a, b: [c = await d()]} = e, f = 1\nlet g; var h, [i] = j\nclass K { static { await => 1 } }\nfunction l() {}\nf = 2; ({f} = m)",
    "for await (var n of o) { if (p) q\n else r++\n[s]; } label: for (var t in u) try { v } finally { w }; do x\nwhile (y)",
    "import z, {a as b, 'c d' as e} from 'f' with {type: 'g'}; import * as h from \"i\"; b(h)`j`; ({b, k: b}); b?.l\n(b)(1)",
    "export * from 'm'; export * as n from 'o'; export {p as 'q', r as default}; export {s} from 't'; let p, r; export const [u, {v}] = w",
    "export default function () { return import.meta.x }\nexport class Y { #z = await 1; static async *a() { yield* b } }",
    "export default (class {}); import('c', d); x<!--y; \u{1f600} => 1; `e${f(`${g}`)}`; h = /[/`]/v; '\\u{61}'",
    "enum A { B = 1, C = B << 2, D = `e` } namespace F { export const g: H = 1 } abstract class I<J> extends K<L> { private m?; constructor(readonly n: O) { super() } }",
    "@p class Q { @r s(@t u: v) {} @w x = 1; static @y z } using a = b; await using c = d; for (using e of f) ;",
    "import type G from 'h'; export type { G }; let i = <J>k as L satisfies M; function n(this: O): asserts p is Q; n!<R>()",
    "#!s\n'use strict'\nawait 1\nlet $v, $m, $i, $d\nreturn",
    "async () => { await using t = u }; { using v = w }\n({await: 1}).await; var await; await + 1",
];

/// Inputs that once broke an invariant.
const FOUND: &[&str] = &[
    "{ export let x }",
    "function f() {}await 1",
    "await 1\r",
    "",
    "await",
    "await 1 }); (async()=>{",
    "export {",
    "<a",
    "`${",
    "import(",
    "\u{feff}await 1",
];

#[test]
fn the_invariants_hold_for_whole_sources_and_each_of_their_beginnings() {
    for source in SOURCES.iter().chain(FOUND) {
        for end in (0..=source.len()).filter(|&end| source.is_char_boundary(end)) {
            invariants::hold(&source.as_bytes()[..end]);
        }
    }
}

/// A piece of one of the sources.
fn piece() -> impl Strategy<Value = String> {
    (0..SOURCES.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(
        |(source, from, to)| {
            let source: Vec<_> = SOURCES[source].chars().collect();
            let (from, to) = (from.index(source.len() + 1), to.index(source.len() + 1));
            source[from.min(to)..from.max(to)].iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_for_pieces_put_together(pieces in prop::collection::vec(piece(), 1..5)) {
        invariants::hold(pieces.concat().as_bytes());
    }
}
