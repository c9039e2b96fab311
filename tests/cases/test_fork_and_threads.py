"""Hosts that fork, start threads, take signals or end in the middle: pydeno works or says so, and they end.

Every host is a process of its own with a patience, so that one that hangs is a failure. `tests/linux/test_lifecycle.py`
has what becomes of the workers.
"""

from __future__ import annotations

import sys

import pytest

from own_process import run

# https://github.com/rubyjs/mini_racer/issues/170, https://github.com/rubyjs/mini_racer/issues/175,
# https://github.com/Qwant/idunn/pull/156, https://github.com/PetterS/quickjs/issues/7,
# https://github.com/rubyjs/mini_racer/issues/111

IMPORTS = "import os, sys, threading, pydeno\nfrom pydeno import IsolatedRuntime, Runtime, PydenoError\n"


def test_a_host_that_forks_after_use_goes_on_in_every_child() -> None:
    printed = run(
        IMPORTS
        + """
import warnings
with IsolatedRuntime() as before:
    assert before.eval("let kept = 20; kept") == 20
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            with IsolatedRuntime() as own:
                assert own.eval("21 * 2") == 42
            try:
                before.eval("kept")
            except PydenoError as error:
                assert error.kind == "invalid_input", error
                sys.exit(7)
            sys.exit(8)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(codes, before.eval("kept + 1"))
"""
    )
    assert printed == "[7, 7, 7, 7] 21\n"


def test_a_host_that_forks_after_using_an_engine_of_its_own_is_told_at_once_in_the_child() -> None:
    printed = run(
        IMPORTS
        + """
with Runtime() as before:
    assert before.eval("20") == 20
    child = os.fork()
    if child == 0:
        kinds = []
        for use in (lambda: before.eval("1"), lambda: Runtime()):
            try:
                use()
            except PydenoError as error:
                kinds.append(error.kind)
        with IsolatedRuntime() as own:
            assert own.eval("21 * 2") == 42
        sys.exit(7 if kinds == ["invalid_input", "engine_unavailable"] else 8)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), before.eval("20 + 1"))
"""
    )
    assert printed == "7 21\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_work(method: str, tmp_path: object) -> None:
    program = tmp_path / "pool.py"  # type: ignore[operator]
    program.write_text(
        IMPORTS
        + f"""
import multiprocessing

def double(number):
    with IsolatedRuntime() as rt:
        return rt.eval(f"{{number}} * 2")

if __name__ == "__main__":
    assert double(1) == 2
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(double, range(6)))
"""
    )
    assert (
        run(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')") == "[0, 2, 4, 6, 8, 10]\n"
    )


def test_a_runtime_made_in_one_thread_works_in_another() -> None:
    printed = run(
        IMPORTS
        + """
made, told = [], []
def make():
    made.append(IsolatedRuntime())
    made[0].eval("let n = 41")
def use():
    # A thread with a small stack has as much of the engine's as any other.
    told.append(made[0].eval("(function f(i) { return i ? f(i - 1) : n + 1 })(5000)"))
for action in (make, use, lambda: made[0].close()):
    threading.stack_size(256 << 10)
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()
print(told, made[0].is_closed())
"""
    )
    assert printed == "[42] True\n"


def test_a_runtime_in_this_process_tells_a_foreign_thread_and_works_on_in_its_own() -> None:
    printed = run(
        IMPORTS
        + """
rt = Runtime()
told = []
def use():
    try:
        rt.eval("1")
    except RuntimeError as error:
        told.append(str(error))
thread = threading.Thread(target=use)
thread.start()
thread.join()
print(len(told), "thread that made it" in told[0], rt.eval("1 + 1"))
"""
    )
    assert printed == "1 True 2\n"


def test_twenty_threads_make_use_and_close_runtimes_of_both_kinds() -> None:
    printed = run(
        IMPORTS
        + """
told = []
def work(number):
    for door in (Runtime, IsolatedRuntime):
        with door() as rt:
            told.append(rt.eval(f"(function f(i) {{ return i ? f(i - 1) : {number} }})(100)") == number)
threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(told), all(told))
"""
    )
    assert printed == "40 True\n"


def test_the_last_reference_may_go_in_another_thread_and_at_the_end_of_the_interpreter() -> None:
    printed = run(
        IMPORTS
        + """
import gc
held = [IsolatedRuntime(), Runtime()]
for rt in held:
    rt.eval("1")
    rt.bind_function("f", lambda rt=rt: rt)  # a cycle
del rt
def drop():
    held.clear()
    gc.collect()
thread = threading.Thread(target=drop)
thread.start()
thread.join()
kept_open = [IsolatedRuntime(), Runtime()]
module = sys.modules["__main__"]
module.itself = [kept_open, module]
print("end", flush=True)
"""
    )
    assert printed == "end\n"


@pytest.mark.parametrize("door", ["Runtime", "IsolatedRuntime"])
def test_a_daemon_thread_in_the_middle_of_a_script_does_not_keep_the_process(door: str) -> None:
    printed = run(
        IMPORTS
        + f"""
running = threading.Event()
def loop():
    rt = {door}(pydeno.RuntimeConfig(timeout=3600))
    rt.bind_function("running", running.set)
    try:
        rt.eval("running(); for (;;);")
    except PydenoError:
        pass
threading.Thread(target=loop, daemon=True).start()
running.wait()
print("end", flush=True)
"""
    )
    assert printed == "end\n"


@pytest.mark.parametrize("door", ["Runtime", "IsolatedRuntime"])
def test_ctrl_c_during_a_script_is_a_keyboard_interrupt_and_the_runtime_stays(door: str) -> None:
    printed = run(
        IMPORTS
        + f"""
import signal
with {door}(pydeno.RuntimeConfig(timeout=3600)) as rt:
    rt.bind_function("interrupt", lambda: threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start())
    try:
        rt.eval("let kept = 20; interrupt(); for (;;);")
    except KeyboardInterrupt as error:
        print(pydeno.classify_error(error).kind, rt.eval("kept + 1"))
"""
    )
    assert printed == "cancelled 21\n"


def test_runtimes_work_in_executors_of_asyncio() -> None:
    printed = run(
        IMPORTS
        + """
import asyncio

def double(number):
    with IsolatedRuntime() as rt:
        return rt.eval(f"{number} * 2")

async def main():
    shared = IsolatedRuntime()
    loop = asyncio.get_running_loop()
    own = [loop.run_in_executor(None, double, number) for number in range(8)]
    same = [loop.run_in_executor(None, shared.eval, f"{number} + 1") for number in range(8)]
    print(await asyncio.gather(*own), await asyncio.gather(*same))
    shared.close()

asyncio.run(main())
"""
    )
    assert printed == "[0, 2, 4, 6, 8, 10, 12, 14] [1, 2, 3, 4, 5, 6, 7, 8]\n"


@pytest.mark.parametrize("door", ["Runtime", "IsolatedRuntime"])
def test_a_host_with_its_own_signals_and_alternate_stacks_is_left_alone(door: str) -> None:
    printed = run(
        IMPORTS
        + f"""
import faulthandler, gc, signal
faulthandler.enable()  # which runs on an alternate signal stack
taken = []
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, _: taken.append(number))
with {door}() as rt:
    rt.bind_function("signal", lambda: os.kill(os.getpid(), signal.SIGUSR1))
    code = "signal(); let a = []; for (let i = 0; i < 2e5; i++) a.push({{i, text: `${{i}}`}}); a.length"
    print([rt.eval(code.replace("let a = []", "var a = []")) for _ in range(5)])
    os.kill(os.getpid(), signal.SIGUSR2)
print(taken.count(signal.SIGUSR1), taken.count(signal.SIGUSR2), faulthandler.is_enabled())
"""
    )
    assert printed == "[200000, 200000, 200000, 200000, 200000]\n5 1 True\n"


def test_a_subinterpreter_is_told_that_it_cannot_have_pydeno() -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    printed = run(
        IMPORTS
        + f"""
import {module} as interpreters
with IsolatedRuntime() as rt:
    other = interpreters.create()
    code = '''
try:
    import pydeno
except ImportError as error:
    print("refused", "subinterpreter" in str(error), flush=True)
'''
    interpreters.run_string(other, code)
    interpreters.destroy(other)
    print(rt.eval("1 + 1"))
"""
    )
    assert printed == "refused True\n2\n"
