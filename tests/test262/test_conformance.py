"""A confined worker conforms as the engine does without pydeno, but for what is removed.

Everything is run by `make test262`; here a sample of it, and what shows that a difference would be noticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from .engines import Engine, Library, Recorded, Verdict, WithoutPydeno, Worker
from .reasons import REASONS, reason_for
from .run import DEFAULT_SUITE, Comparison, Tally, compare
from .suite import Scenario, Suite

#: Every so many tests one is in the sample; primes, so that it does not fall in step with how they are generated.
EVERY = 73
#: The same among the tests of what is removed.
EVERY_REMOVED, REMOVED = 13, ("SharedArrayBuffer", "Atomics")
#: The same among the tests of modules.
EVERY_IMPORT, IMPORTS = 11, ("/module-code/", "/import/", "/export/", "/import.meta/", "/dynamic-import/")
#: The tests of modules in which a worker differs.
DIFFERENT_IMPORTS = (
    "language/expressions/dynamic-import/for-await-resolution-and-error-agen-yield.js",
    "language/expressions/dynamic-import/usage-from-eval.js",
    "language/module-code/top-level-await/async-module-does-not-block-sibling-modules.js",
)
#: What the engine does not have, and thousands of code points one by one.
LEFT_OUT = ("Temporal", "property-escapes/generated")
DIFFERENCES = Path(__file__).parent / "differences.txt"

HARNESS = {
    "assert.js": "function assert(is) { if (is !== true) throw new Test262Error('not true') }",
    "sta.js": "function Test262Error(message) { this.message = message }",
    "more.js": "var more = 7;",
}
TESTS = {
    "passes.js": ("", "assert(1 + 1 === 2)"),
    "fails.js": ("", "assert(1 + 1 === 3)"),
    "throws.js": ("", "missing"),
    "includes.js": ("includes: [more.js]", "assert(more === 7)"),
    "strict.js": ("flags: [onlyStrict]", "assert((function () { return this })() === undefined)"),
    "sloppy.js": ("flags: [noStrict]", "assert((function () { return this })() !== undefined)"),
    "raw.js": (
        "flags: [raw]",
        "if (typeof assert !== 'undefined') throw new Error('a raw test has no harness')",
    ),
    "parse.js": ("negative: {phase: parse, type: SyntaxError}", "var = 1"),
    "other_error.js": ("negative: {phase: runtime, type: RangeError}", "missing"),
    "no_error.js": ("negative: {phase: parse, type: SyntaxError}", "1"),
    "own_error.js": (
        "negative: {phase: runtime, type: Test262Error}",
        "throw new Test262Error('as it should')",
    ),
    "later.js": ("flags: [async]", "Promise.resolve().then(() => $DONE())"),
    "never.js": ("flags: [async]", "new Promise(() => {})"),
    "rejected.js": ("flags: [async]", "Promise.reject(new TypeError('no')).then($DONE, $DONE)"),
    "symbol.js": ("", "Symbol('the value of a test is not what is tested')"),
    "module.js": (
        "flags: [module]",
        """import { one } from './one_FIXTURE.js'; import json from './two_FIXTURE.json' with { type: 'json' };
        assert(one === 1); assert(json.two === 2); assert(this === undefined)""",
    ),
    "module_later.js": (
        "flags: [module, async]",
        "const { one } = await import('./one_FIXTURE.js'); assert(one === 1); $DONE()",
    ),
    "module_never.js": ("flags: [module, async]", "await new Promise(() => {}); $DONE()"),
    "module_fails.js": ("flags: [module]", "import './one_FIXTURE.js'; assert(false)"),
    "module_missing.js": ("flags: [module]", "import './nowhere_FIXTURE.js'"),
    "module_name.js": (
        "flags: [module]\nnegative: {phase: resolution, type: SyntaxError}",
        "import { three } from './one_FIXTURE.js'",
    ),
    "module_error.js": ("flags: [module]\nnegative: {phase: parse, type: SyntaxError}", "import 1"),
    "import.js": (
        "flags: [async]\nfeatures: [dynamic-import]",
        "import('./one_FIXTURE.js').then(({ one }) => assert(one === 1)).then($DONE, $DONE)",
    ),
    "import_fails.js": (
        "flags: [async]\nfeatures: [dynamic-import]",
        "import('./nowhere_FIXTURE.js').then(() => $DONE(), $DONE)",
    ),
    "hook.js": ("", "$262.createRealm()"),
    "shared.js": ("features: [SharedArrayBuffer]", "new SharedArrayBuffer(8)"),
    "detach.js": ("", "const b = new ArrayBuffer(8); $262.detachArrayBuffer(b); assert(b.byteLength === 0)"),
}
PASS = {
    "passes.js", "includes.js", "strict.js", "sloppy.js", "raw.js", "parse.js", "own_error.js", "later.js", "symbol.js",
    "detach.js", "module.js", "module_later.js", "module_name.js", "module_error.js", "import.js",
}  # fmt: skip
FIXTURES = {"one_FIXTURE.js": "export const one = 1", "two_FIXTURE.json": '{"two": 2}'}
BOTH_MODES = {"passes.js (sloppy)", "passes.js (strict)"}
NOT_RUN = {"hook.js": "$262.createRealm"}


@pytest.fixture(scope="module")
def library() -> Iterator[Engine]:
    engine = WithoutPydeno(Library(), Recorded())
    yield engine
    engine.close()


@pytest.fixture
def small(tmp_path: Path) -> Suite:
    """A suite of our own, in the layout of the suite's repository."""
    (tmp_path / "harness").mkdir()
    for name, source in HARNESS.items():
        (tmp_path / "harness" / name).write_text(source, encoding="utf-8")
    folder = tmp_path / "test" / "language"
    folder.mkdir(parents=True)
    for name, (metadata, source) in TESTS.items():
        (folder / name).write_text(
            f"/*---\ndescription: one\n{metadata}\n---*/\n{source}\n", encoding="utf-8"
        )
    for name, source in FIXTURES.items():
        (folder / name).write_text(source, encoding="utf-8")
    return Suite(tmp_path)


def sample(suite: Suite) -> list[str]:
    paths = [path for path in suite.paths() if not any(part in path for part in LEFT_OUT)]
    removed = [path for path in paths if any(part in path for part in REMOVED)]
    imports = [path for path in paths if any(part in path for part in IMPORTS)]
    return sorted({*paths[::EVERY], *removed[::EVERY_REMOVED], *imports[::EVERY_IMPORT], *DIFFERENT_IMPORTS})


def by_name(comparisons: Iterator[Comparison]) -> dict[str, Comparison]:
    return {comparison.scenario.name.removeprefix("language/"): comparison for comparison in comparisons}


@pytest.mark.timeout(600)
def test_a_sample_of_test262_differs_from_the_engine_only_where_something_is_removed(library: Engine) -> None:
    if not DEFAULT_SUITE.exists():
        pytest.fail(
            "there is no copy of test262 here; run 'make test', or scripts/fetch_test262.py .venv/test262"
        )
    suite = Suite(DEFAULT_SUITE)
    tally = Tally()
    for comparison in compare(suite, sample(suite), Worker(suite), library):
        tally.add(comparison)
    found = [f"{difference['reason']}: {difference['scenario']}" for difference in tally.differences]
    assert sorted(found) == DIFFERENCES.read_text(encoding="utf-8").splitlines()
    assert sum(part["worker"] for part in tally.parts.values()) > 1000, "the sample hardly ran"


def test_every_expected_difference_has_a_reason_that_is_written_down() -> None:
    lines = DIFFERENCES.read_text(encoding="utf-8").splitlines()
    assert lines
    assert {line.partition(": ")[0] for line in lines} <= set(REASONS)


def test_each_kind_of_test_is_judged_as_the_suite_says_on_both_sides(small: Suite, library: Engine) -> None:
    results = by_name(compare(small, small.paths(), Worker(small), library))
    assert results.keys() >= BOTH_MODES
    for name, result in results.items():
        test = name.partition(" ")[0]
        if test in NOT_RUN:
            assert result.worker is None
            assert result.scenario.needs == NOT_RUN[test]
        elif result.scenario.imports:
            # There is no shell here, and its record, which has no such tests, excuses nothing.
            assert (result.worker and result.worker.passed, result.reason) == (test in PASS, None), name
            assert result.differs == (test not in PASS)
        elif test == "shared.js":
            assert (result.differs, result.reason) == (True, "shared-memory"), name
        else:
            assert result.worker is not None
            assert result.engine is not None
            assert (result.worker.passed, result.engine.passed) == (test in PASS, test in PASS), name


def test_a_worker_that_fails_in_another_way_is_not_excused_by_what_a_test_uses(
    small: Suite, library: Engine
) -> None:
    stopped = Worker(small, bootstrap="globalThis.SharedArrayBuffer = function () { for (;;); }", timeout=0.1)
    results = list(compare(small, ["language/shared.js"], stopped, library))
    assert [(result.differs, result.reason) for result in results] == [(True, None), (True, None)]


def test_a_failure_on_both_sides_that_ends_in_other_words_in_a_worker_is_told(
    small: Suite, library: Engine
) -> None:
    alike = Tally()
    paths = [
        f"language/{name}" for name in ("fails.js", "throws.js", "no_error.js", "never.js", "rejected.js")
    ]
    for comparison in compare(small, paths, Worker(small), library):
        alike.add(comparison)
    assert (len(alike.failures), alike.unlike) == (2 * len(paths), 0)
    renamed = "globalThis.Promise = { reject: () => ({ then() { throw new RangeError('other') } }) }"
    unlike = Tally()
    for comparison in compare(small, ["language/rejected.js"], Worker(small, bootstrap=renamed), library):
        unlike.add(comparison)
    assert (len(unlike.failures), unlike.unlike) == (2, 2)


def test_an_import_that_fails_otherwise_is_not_excused_as_one_in_code_from_text(small: Suite) -> None:
    (scenario,) = small.scenarios("language/module.js")
    evaluates = dataclasses.replace(scenario, source="eval(\"import('./one_FIXTURE.js')\")")
    rejected, other = (
        Verdict(passed=False, ending=ending)
        for ending in ("rejected: Error: Could not import the module './x.js'.", "rejected: TypeError: no")
    )
    passed = Verdict(passed=True, ending="")
    assert reason_for(evaluates, rejected, passed) == "code-from-text"
    assert reason_for(evaluates, other, passed) is None
    assert reason_for(scenario, rejected, passed) is None


def test_something_that_is_missing_in_a_worker_is_a_difference_without_a_reason(
    small: Suite, library: Engine
) -> None:
    reduced = Worker(small, bootstrap="delete ArrayBuffer.prototype.transfer")
    results = by_name(compare(small, ["language/detach.js", "language/passes.js"], reduced, library))
    assert {name for name, result in results.items() if result.differs} == {
        "detach.js (sloppy)",
        "detach.js (strict)",
    }
    assert {result.reason for result in results.values()} == {None}


def test_something_that_a_worker_has_and_the_engine_has_not_is_one_too(small: Suite) -> None:
    class Nothing:
        def run(self, scenario: Scenario) -> Verdict:
            return Verdict(passed=False, ending="nothing works here")

        def close(self) -> None:
            pass

    results = list(compare(small, ["language/passes.js"], Worker(small), Nothing()))
    assert [(result.differs, result.reason) for result in results] == [(True, None), (True, None)]
