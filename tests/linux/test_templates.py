"""Workers that begin where a bootstrap script has ended, and what they have of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_worker
import pydeno
from degraded_host import ENOSYS, EPERM, run
from processes import children, fields_of, is_alive, parent_of, python, wait_until, wait_until_ended
from pydeno import (
    AsyncSandboxPool,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    MemoryLimitExceeded,
    PydenoError,
    RuntimeConfig,
    RuntimeTimeout,
    SandboxDegradedWarning,
    SandboxPool,
    WorkerCrashed,
)

#: A library: much source, a heap, functions, a class, a pattern, something kept of the built-ins.
LIBRARY = """
const random = Math.random, now = Date.now;
const table = Array.from({ length: 20000 }, (_, i) => ({ i, text: "row " + i }));
const pattern = /(\\p{L}+)-(?<number>\\d+)/u;
const money = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const weak = new WeakMap([[table, "kept"]]);
class Counter { #n = 0; next() { return ++this.#n } }
const counter = new Counter();
function forever() { for (;;); }
function allocate(megabytes) {
    let sum = 0;
    for (let i = 0; i < megabytes; i++) sum += new Array(131072).fill(i).length;
    return sum;
}
async function later(x) { await null; return x + 1; }
counter.next();
""" + "\n".join(f"function library{i}(x) {{ return x + {i} + ' and some text'; }}" for i in range(3000))


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(RuntimeConfig(bootstrap=LIBRARY, timeout=20), size=2, template=True) as pool:
        yield pool


def template_of(runtime: IsolatedRuntime) -> int:
    return parent_of(runtime.worker_pid)


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_two_hundred_workers_in_a_row_begin_with_the_library_and_nothing_of_each_other(
    pool: SandboxPool,
) -> None:
    parents = set()
    for _ in range(200):
        with pool.checkout() as rt:
            parents.add(template_of(rt))
            assert rt.eval("[counter.next(), table[19999].text, library7(1)]") == [
                2,
                "row 19999",
                "8 and some text",
            ]
            assert rt.eval("[typeof leak, typeof table.leak, typeof [].leak]") == ["undefined"] * 3
            rt.eval("globalThis.leak = table.leak = Array.prototype.leak = 1; counter.next()")
            assert rt.eval("[].leak") == 1, "a control"
    assert len(parents) == 1
    assert parents != {os.getpid()}


def test_everything_of_the_engine_works_after_the_fork(pool: SandboxPool) -> None:
    for _ in range(4):
        with pool.checkout() as rt:
            assert rt.eval("allocate(300)") == 300 * 131072
            assert rt.eval("weak.get(table) + table.length + table[12345].text") == "kept20000row 12345"
            assert rt.eval("pattern.exec('may-2020').groups.number") == "2020"
            assert rt.eval("money.format(1234.5)") == "$1,234.50"
            assert rt.eval("new Intl.DateTimeFormat('de-DE', { month: 'long' }).format(0)") == "Januar"
            assert rt.eval("new Date(0).toISOString()") == "1970-01-01T00:00:00.000Z"
            assert rt.eval("Math.abs(now() - new Date()) < 1000")
            assert rt.eval("await later(41)") == 42
            with pytest.raises(JavaScriptError, match="null is not an object"):
                rt.eval("null.x")
            deep = "(function f() { try { return f() } catch (e) { return e.name } })()"
            assert rt.eval(deep) == "RangeError"
            # The thread that watches deadlines, which the template never had.
            assert threads_of(rt.worker_pid) == 2
            assert threads_of(template_of(rt)) == 1


def test_loops_of_the_library_and_of_the_script_stop_at_the_timeout_and_the_worker_goes_on() -> None:
    config = RuntimeConfig(bootstrap=LIBRARY, timeout=0.2)
    with SandboxPool(config, size=1, template=True) as pool, pool.checkout() as rt:
        for loop in ("forever()", "for (;;);", "while (true) table.length"):
            with pytest.raises(RuntimeTimeout) as caught:
                rt.eval(loop)
            assert caught.value.runtime_survives
            assert rt.eval("counter.next() > 1 && table.length") == 20000


def test_memory_limits_hold_for_each_worker() -> None:
    config = RuntimeConfig(bootstrap=LIBRARY, max_heap_size=64 << 20)
    grow = "globalThis.all = []; for (;;) all.push(new Array(1000).fill(1))"
    with SandboxPool(config, size=1, template=True) as pool, pool.checkout() as rt:
        with pytest.raises(PydenoError) as caught:
            rt.eval(grow)
        assert (caught.value.kind, caught.value.runtime_survives) == ("memory_limit", True)
        assert rt.eval("delete globalThis.all && table.length") == 20000
    with SandboxPool(
        RuntimeConfig(bootstrap=LIBRARY, max_heap_size=1 << 30), size=1, template=True, max_memory=200 << 20
    ) as pool:
        with pool.checkout() as rt, pytest.raises(MemoryLimitExceeded):
            rt.eval("globalThis.all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))")
        assert pool.eval("table.length") == 20000


def test_random_numbers_are_each_workers_own_also_from_a_function_that_the_library_kept(
    pool: SandboxPool,
) -> None:
    drawn = [pool.eval("[random(), Math.random()]") for _ in range(5)]
    assert len({number for pair in drawn for number in pair}) == 10
    seeded = RuntimeConfig(bootstrap="const first = Math.random();")
    numbers = []
    for template in (True, False):
        with SandboxPool(seeded, size=1, template=template, random_seed=7) as other:
            numbers += [other.eval("[first, Math.random(), Math.random()]") for _ in range(2)]
    assert numbers == [numbers[0]] * 4, (
        "with a seed they are the same in every worker, with a template and without"
    )


def test_clocks_strict_eval_functions_and_the_console_are_as_without_a_template() -> None:
    lines: list[str] = []
    config = RuntimeConfig(
        bootstrap="console.log('loading'); const began = Date.now(); const twice = x => double(x);",
        enable_console=True,
        on_console=lambda level, text: lines.append(text),
    )
    with SandboxPool(config, size=1, template=True, clock=1_000_000.5, strict_eval=True) as pool:
        pool.bind_function("double", lambda x: 2 * x)
        for _ in range(2):
            lines.clear()
            with pool.checkout() as rt:
                assert rt.eval("console.log('running'); twice(21)") == 42
                assert rt.eval("[began, Date.now()]") == [1_000_000_500, 1_000_000_500]
                with pytest.raises(JavaScriptError, match="not allowed"):
                    rt.eval("eval('1')")
            assert lines == ["loading", "running"]


def test_the_script_finds_no_function_of_the_host() -> None:
    config = RuntimeConfig(bootstrap="globalThis.found = typeof double; double(1)")
    with SandboxPool(config, size=1, template=True) as pool:
        pool.bind_function("double", lambda x: 2 * x)
        with pytest.raises(JavaScriptError, match="double"):
            pool.eval("1")


def test_every_worker_reports_a_complete_sandbox_of_which_it_says_what_is_shared(pool: SandboxPool) -> None:
    with pool.checkout() as rt, IsolatedRuntime() as alone:
        assert rt.sandbox == alone.sandbox
        assert rt.sandbox_extras == alone.sandbox_extras
        assert not rt.sandbox_degraded
        status = Path(f"/proc/{rt.worker_pid}/status").read_text(encoding="ascii")
        template = Path(f"/proc/{template_of(rt)}/status").read_text(encoding="ascii")
        for line in (
            "NoNewPrivs:\t1",
            "Seccomp:\t2",
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
        ):
            if line.startswith("CapBnd") and os.geteuid() != 0:
                continue
            assert line in status
            assert line in template
        # The worker's filter is on top of the template's.
        assert "Seccomp_filters:\t2" in status
        assert "Seccomp_filters:\t1" in template
        assert int(fields_of(rt.worker_pid)[3]) == rt.worker_pid, "a session of its own"
        kept = {link.readlink().name for link in Path(f"/proc/{rt.worker_pid}/fd").iterdir()}
        assert not [name for name in kept if "pidfd" in name or "eventpoll" in name]
        sockets = [
            link for link in Path(f"/proc/{rt.worker_pid}/fd").iterdir() if "socket" in str(link.readlink())
        ]
        assert len(sockets) == 1


def test_the_other_modes_of_the_sandbox_are_as_for_workers() -> None:
    config = RuntimeConfig(bootstrap="const x = 1;")
    with SandboxPool(config, size=1, template=True, sandbox="auto") as pool, pool.checkout() as rt:
        with IsolatedRuntime(sandbox="auto") as alone:
            assert rt.sandbox == alone.sandbox
        assert rt.eval("x") == 1
    with SandboxPool(config, size=1, template=True, sandbox="off") as pool:
        with pytest.warns(SandboxDegradedWarning):
            rt = pool.checkout()
        with rt:
            assert (rt.sandbox, rt.sandbox_degraded) == ("none", True)
            assert rt.eval("x") == 1


#: What a host lacks, and under it what `require` and `auto` make of a template.
DEGRADED = {
    f"refuse('unshare', {EPERM})": ["42 landlock+seccomp False", "42 landlock+seccomp False"],
    f"refuse('landlock_create_ruleset', {ENOSYS})": ["sandbox_unavailable", "42 seccomp True"],
    "refuse('seccomp', 22)": ["sandbox_unavailable", "42 landlock True"],
    f"refuse('kill', {EPERM}); refuse('pidfd_send_signal', {EPERM})": ["sandbox_unavailable"] * 2,
}


@pytest.mark.parametrize("take_away", DEGRADED)
def test_a_host_that_lacks_something_is_told_so_as_with_workers(take_away: str) -> None:
    script = """
warnings.simplefilter("ignore")
from pydeno import SandboxPool, RuntimeConfig, PydenoError
for mode in ("require", "auto"):
    try:
        with SandboxPool(RuntimeConfig(bootstrap="const x = 6;"), size=1, template=True, sandbox=mode) as pool:
            with pool.checkout() as rt:
                print(rt.eval("x * 7"), rt.sandbox, rt.sandbox_degraded)
    except PydenoError as error:
        print(error.kind)
"""
    assert run(f"{take_away}\n{script}").splitlines() == DEGRADED[take_away]


def test_a_script_that_fails_is_an_error_of_the_checkout_and_leaves_no_process() -> None:
    before = len(children(os.getpid()))
    endless = "for (;;);"
    greedy = "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))"
    for config, max_memory, kind in [
        (RuntimeConfig(bootstrap="throw new TypeError('broken')"), 1 << 30, "js_error"),
        (RuntimeConfig(bootstrap=endless, timeout=0.3), 1 << 30, "timeout"),
        (RuntimeConfig(bootstrap=greedy), 200 << 20, "memory_limit"),
    ]:
        with SandboxPool(config, size=2, template=True, max_memory=max_memory) as pool:
            for _ in range(2):
                with pytest.raises(PydenoError) as caught:
                    pool.checkout()
                assert caught.value.kind == kind
    wait_until(lambda: len(children(os.getpid())) <= before, "the end of every template")


def test_a_template_that_is_killed_is_made_again_and_ends_with_its_pool() -> None:
    with SandboxPool(RuntimeConfig(bootstrap="const x = 6;"), size=2, template=True) as pool:
        with pool.checkout() as rt:
            first, worker = template_of(rt), rt.worker_pid
            os.kill(first, signal.SIGKILL)
            wait_until_ended(worker, "its workers")
        wait_until(lambda: pool.stats().ready == 2, "two successors")
        with pool.checkout() as rt:
            second = template_of(rt)
            assert second != first
            assert rt.eval("x * 7") == 42
        del rt
        assert is_alive(second)
    wait_until_ended(second, "the template")


def test_a_runtime_that_was_checked_out_outlives_its_pool_and_the_template_ends_with_the_last() -> None:
    pool = SandboxPool(RuntimeConfig(bootstrap="const x = 6;"), size=1, template=True)
    rt = pool.checkout()
    template = template_of(rt)
    pool.close()
    assert rt.eval("x * 7") == 42
    assert is_alive(template)
    rt.close()
    del rt, pool
    wait_until_ended(template, "the template")


def test_a_template_is_replaced_after_a_number_of_workers() -> None:
    script = """
    import pydeno
    from pathlib import Path
    pydeno.set_zygote_rotation(max_workers=5, max_age=3600)
    config = pydeno.RuntimeConfig(bootstrap="const x = 6;")
    parents, checkouts = set(), 0
    with pydeno.SandboxPool(config, size=1, max_workers=1, template=True) as pool:
        # One that is due goes on until the next is ready, however long that takes.
        while len(parents) < 4:
            checkouts += 1
            with pool.checkout() as rt:
                assert rt.eval("x * 7") == 42
                stat = Path(f"/proc/{rt.worker_pid}/stat").read_text()
                parents.add(stat.rpartition(")")[2].split()[1])
    print(checkouts)
    """
    with python(script) as process:
        out, complaints = process.communicate(timeout=60)
    assert complaints == ""
    assert int(out) > 9, "each has had some workers"


def test_a_host_that_is_killed_takes_its_template_and_its_workers_with_it() -> None:
    script = """
    import pydeno, sys
    pool = pydeno.SandboxPool(pydeno.RuntimeConfig(bootstrap="const x = 6;"), size=2, template=True)
    rt = pool.checkout()
    print(rt.worker_pid, flush=True)
    sys.stdin.read()
    """
    with python(script) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        below = children(process.pid)
        assert worker in below
        process.kill()
        wait_until(lambda: not any(map(is_alive, below)), "the end of all of them")


def test_a_forked_copy_of_the_host_leaves_the_template_alone() -> None:
    script = """
    import os, pydeno
    pool = pydeno.SandboxPool(pydeno.RuntimeConfig(bootstrap="const x = 6;"), size=2, template=True)
    assert pool.eval("x * 7") == 42
    child = os.fork()
    if child == 0:
        try:
            pool.checkout()
        except pydeno.InvalidInput:
            own = pydeno.SandboxPool(pydeno.RuntimeConfig(bootstrap="const x = 7;"), size=1, template=True)
            assert own.eval("x * 6") == 42
            own.close()
            pool.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert [pool.eval("x * 7") for _ in range(5)] == [42] * 5
    pool.close()
    print("fine")
    """
    with python(script) as process:
        out, complaints = process.communicate(timeout=60)
    assert (out, complaints) == ("fine\n", "")


def test_a_pool_on_an_event_loop_has_templates_too() -> None:
    async def main() -> list[object]:
        config = RuntimeConfig(bootstrap="const x = 6; const call = async () => await tool(x);")
        async with AsyncSandboxPool(config, size=2, template=True) as pool:

            async def tool(x: int) -> int:
                await asyncio.sleep(0)
                return x * 7

            pool.bind_function("tool", tool)
            answers: list[object] = await asyncio.gather(*(pool.eval("await call()") for _ in range(6)))
            return answers

    assert asyncio.run(main()) == [42] * 6


@pytest.mark.parametrize(
    ("options", "why"),
    [({"jit": "baseline"}, "jit"), ({"jit": "full"}, "jit"), ({"worker_start": "exec"}, "worker_start")],
)
def test_a_template_is_refused_where_its_forks_would_lose_threads_or_not_be_forks(
    options: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        SandboxPool(template=True, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="template"):
        SandboxPool(template=1)  # type: ignore[arg-type]


#: (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
MODULE = "0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b"
COMPILE = f"""
const bytes = Uint8Array.from("{MODULE}".match(/../g), pair => parseInt(pair, 16));
const compile = () => new WebAssembly.Instance(new WebAssembly.Module(bytes));
"""


def test_a_script_that_makes_the_engine_start_a_thread_is_no_template_and_its_workers_may_do_it() -> None:
    with (
        SandboxPool(
            RuntimeConfig(bootstrap=COMPILE + "compile()"), size=1, template=True, webassembly=True
        ) as pool,
        pytest.raises(WorkerCrashed, match="forks would lose a thread"),
    ):
        pool.eval("1")
    with SandboxPool(RuntimeConfig(bootstrap=COMPILE), size=1, template=True, webassembly=True) as pool:
        for _ in range(3):
            assert pool.eval("compile().exports.add(40, 2)") == 42


#: A host whose template is the executable that it is given; it ends as a pool that nobody uses does.
HOST = """
import json, sys, time
import pydeno, pydeno._pool
pydeno._pool._WORKER = sys.argv[1]
with pydeno.SandboxPool(size=1, max_workers=1, checkout_timeout=20, template=True) as pool:
    try:
        pool.checkout()
        print("ready")
    except pydeno.PydenoError as error:
        print(error.kind, "not its worker" if "not its worker" in str(error) else str(error))
"""


@pytest.mark.parametrize("says", fake_worker.NAMES)
def test_a_template_that_names_another_process_as_its_worker_gets_it_neither_used_nor_killed(
    tmp_path: Path, says: str
) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        try:
            worker = fake_worker.install(tmp_path, says, pydeno.__version__, stranger.pid)
            done = subprocess.run(
                [sys.executable, "-c", HOST, worker], capture_output=True, text=True, check=False, timeout=60
            )
            assert done.stderr == ""
            truth = says == "names its worker"
            assert done.stdout == ("ready\n" if truth else "worker_crashed not its worker\n")
            assert stranger.poll() is None
        finally:
            stranger.kill()
