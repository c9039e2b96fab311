"""`pydeno.eval` and its kin: one isolated runtime a process, made when it is needed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import pydeno
from pydeno import InvalidInput, JavaScriptError, RuntimeTimeout


@pytest.fixture(autouse=True)
def fresh_default() -> Iterator[None]:
    pydeno.configure_default_runtime()
    yield
    pydeno.configure_default_runtime()


def test_eval_works_without_any_ceremony_and_keeps_state() -> None:
    assert pydeno.eval("let kept = 6; kept * 7") == 42
    assert pydeno.eval("kept") == 6
    assert asyncio.run(pydeno.eval_async("kept + 1")) == 7


def test_bound_functions_are_there_and_outlive_a_lost_worker() -> None:
    pydeno.bind_function("double", lambda x: 2 * x)
    assert pydeno.eval("let kept = 1; double(21)") == 42
    pydeno.configure_default_runtime(timeout=0.3)
    assert pydeno.eval("double(4)") == 8
    with pytest.raises(RuntimeTimeout):
        pydeno.eval("(async () => { for (;;) await 0 })()")
    assert pydeno.eval("double(21) + typeof kept") == "42undefined"


def test_options_that_do_not_exist_change_nothing() -> None:
    pydeno.eval("let kept = 1")
    with pytest.raises(TypeError):
        pydeno.configure_default_runtime(no_such_option=1)
    with pytest.raises(InvalidInput):
        pydeno.configure_default_runtime(timeout=-1)
    with pytest.raises(InvalidInput):
        pydeno.bind_function("not a name", len)
    assert pydeno.eval("kept") == 1


def test_threads_share_the_default_runtime() -> None:
    values: list[int] = []
    threads = [threading.Thread(target=lambda i=i: values.append(pydeno.eval(f"{i} * 2"))) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == [2 * i for i in range(16)]


def test_evaluations_of_the_default_runtime_overlap_on_a_loop() -> None:
    both = asyncio.Event()
    inside = 0

    async def meet(value: int) -> int:
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        await both.wait()
        return value

    async def main() -> list[int]:
        return list(await asyncio.gather(*(pydeno.eval_async(f"meet({i})") for i in range(2))))

    pydeno.bind_function("meet", meet)
    assert asyncio.run(main()) == [0, 1]


def test_a_forked_child_has_a_default_runtime_of_its_own() -> None:
    pydeno.bind_function("who", os.getpid)
    assert pydeno.eval("globalThis.mark = 'parent'; who()") == os.getpid()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            told = f"{pydeno.eval('typeof mark')} {pydeno.eval('who()') == os.getpid()}"
        except BaseException as error:  # noqa: BLE001 - the parent shows it
            told = repr(error)
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    told = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(pid, 0)
    assert told == "undefined True"
    assert pydeno.eval("mark") == "parent"


def test_a_process_that_used_it_ends() -> None:
    code = """
import asyncio, pydeno, threading
async def later(): await asyncio.sleep(0.001); return 1
pydeno.bind_function("later", later)
assert pydeno.eval("later()") == 1
rt = pydeno.IsolatedRuntime(pydeno.RuntimeConfig(enable_console=True, on_console=print))
def forever():
    try: rt.eval("for (;;) {}")
    except pydeno.PydenoError: pass
threading.Thread(target=forever, daemon=True).start()
held = pydeno.IsolatedRuntime().eval("() => 1")
asyncio.run(pydeno.eval_async("later()"))
print("end")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


def test_an_error_is_the_scripts() -> None:
    with pytest.raises(JavaScriptError, match="mine"):
        pydeno.eval("throw new Error('mine')")
