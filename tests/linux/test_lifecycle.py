"""Workers live exactly as long as they should, whatever becomes of the process that uses them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from conftest import fresh_runtime_answers
from processes import PATIENCE, children, is_alive, python, wait_until, wait_until_ended
from pydeno import (
    InvalidInput,
    IsolatedRuntime,
    Runtime,
    RuntimeClosed,
    RuntimeTerminated,
    WorkerCrashed,
    set_zygote_rotation,
)


def is_confined(pid: int) -> bool:
    """Whether the worker has its filter and waits for something to do."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return "\nSeccomp:\t2\n" in status and "\nState:\tS" in status


def test_a_killed_host_takes_its_zygote_and_every_worker_with_it() -> None:
    with python(
        """
        import os, time
        from pydeno import IsolatedRuntime
        runtimes = [IsolatedRuntime() for _ in range(3)]
        print(*[rt.worker_pid for rt in runtimes], flush=True)
        time.sleep(600)
        """
    ) as host:
        assert host.stdout is not None
        workers = [int(pid) for pid in host.stdout.readline().split()]
        below = children(host.pid)
        assert set(workers) < set(below)
        assert all(map(is_alive, below))
        host.kill()
        host.wait()
        wait_until(lambda: not any(map(is_alive, below)), "the end of the workers")


def test_a_worker_in_an_endless_loop_dies_with_its_host() -> None:
    with python(
        """
        from pydeno import IsolatedRuntime
        rt = IsolatedRuntime(timeout=600, request_timeout=600)
        print(rt.worker_pid, flush=True)
        rt.eval("for (;;);")
        """
    ) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        host.kill()
        host.wait()
        wait_until_ended(worker, "the worker")


def test_a_host_that_exits_with_live_runtimes_ends_at_once_and_leaves_nothing() -> None:
    host = python(
        """
        import threading
        from pydeno import IsolatedRuntime, PydenoError
        kept = [IsolatedRuntime() for _ in range(3)]
        busy = IsolatedRuntime(timeout=600, request_timeout=600)
        def run():
            try:
                busy.eval("for (;;);")
            except PydenoError:
                pass
        threading.Thread(target=run, daemon=True).start()
        print(*[rt.worker_pid for rt in [*kept, busy]], flush=True)
        """
    )
    out, err = host.communicate(timeout=PATIENCE)
    assert host.returncode == 0
    assert err == ""
    workers = [int(pid) for pid in out.split()]
    assert len(workers) == 4
    # Waited for by their zygote, so that not even a zombie is left to init.
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_worker_outlives_the_thread_that_started_it() -> None:
    made: list[IsolatedRuntime] = []
    thread = threading.Thread(target=lambda: made.append(IsolatedRuntime()))
    thread.start()
    thread.join()
    with made[0] as rt:
        assert rt.eval("6 * 7") == 42


def test_a_zygote_outlives_the_thread_that_was_the_first_to_need_it() -> None:
    host = python(
        """
        import threading
        from pydeno import IsolatedRuntime
        made = []
        thread = threading.Thread(target=lambda: made.append(IsolatedRuntime()))
        thread.start(); thread.join()
        print(made[0].eval("1"), IsolatedRuntime().eval("2"))
        """
    )
    out, err = host.communicate(timeout=PATIENCE)
    assert (out, err) == ("1 2\n", "")


def test_a_worker_killed_from_outside_is_its_own_error() -> None:
    with IsolatedRuntime() as rt:
        os.kill(rt.worker_pid, signal.SIGKILL)
        with pytest.raises(WorkerCrashed, match="killed from outside") as caught:
            rt.eval("1")
        assert caught.value.kind == "worker_crashed"
        assert not caught.value.runtime_survives
        assert rt.is_closed()
        with pytest.raises(RuntimeClosed):
            rt.eval("1")
    assert fresh_runtime_answers()


def test_a_worker_killed_while_it_evaluates_is_the_same_error() -> None:
    with IsolatedRuntime() as rt:
        rt.bind_function("kill", lambda: os.kill(rt.worker_pid, signal.SIGABRT))
        with pytest.raises(WorkerCrashed, match="signal"):
            rt.eval("kill(); for (;;);")
    assert fresh_runtime_answers()


def test_a_killed_zygote_is_replaced() -> None:
    with IsolatedRuntime() as rt:
        zygote = parent_of(rt.worker_pid)
        os.kill(zygote, signal.SIGKILL)
        wait_until_ended(rt.worker_pid, "the worker")
        with pytest.raises(WorkerCrashed):
            rt.eval("1")
    assert fresh_runtime_answers()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def test_terminate_from_another_thread_ends_the_evaluation() -> None:
    rt = IsolatedRuntime(timeout=600, request_timeout=600)
    running = threading.Event()
    rt.bind_function("started", running.set)

    def end() -> None:
        running.wait()
        rt.terminate()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(RuntimeTerminated) as caught:
        rt.eval("started(); for (;;);")
    thread.join()
    assert caught.value.kind == "terminated"


def test_close_from_another_thread_ends_the_evaluation() -> None:
    rt = IsolatedRuntime(timeout=600, request_timeout=600)
    running = threading.Event()
    rt.bind_function("started", running.set)

    def end() -> None:
        running.wait()
        rt.close()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(RuntimeClosed):
        rt.eval("started(); for (;;);")
    thread.join()


def test_threads_share_a_runtime_one_after_the_other() -> None:
    with IsolatedRuntime() as rt:
        rt.eval("let n = 0")
        errors: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(50):
                    rt.eval("n++")
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert rt.eval("n") == 400


def test_a_host_function_and_its_caller_run_wherever_they_might_before() -> None:
    before = os.sched_getaffinity(0)
    seen: list[set[int]] = []
    with IsolatedRuntime() as rt:
        rt.bind_function("look", lambda: seen.append(os.sched_getaffinity(0)))
        for _ in range(20):
            rt.eval("for (let i = 0; i < 20; i++) look()")
            assert os.sched_getaffinity(0) == before
    assert len(seen) == 400
    assert all(cores == before for cores in seen)


def test_a_thread_may_bind_while_another_evaluates() -> None:
    with IsolatedRuntime() as rt:
        calls = 0
        binding = threading.Event()

        def tick() -> int:
            nonlocal calls
            calls += 1
            if calls == 1:
                thread.start()
                binding.wait()
            return calls

        def bind() -> None:
            binding.set()
            rt.bind_function("late", lambda: "bound")

        thread = threading.Thread(target=bind)
        rt.bind_function("tick", tick)
        assert rt.eval("for (let i = 0; i < 100; i++) tick(); tick()") == 101
        thread.join()
        assert rt.eval("late()") == "bound"


def test_the_interpreter_goes_on_while_a_script_runs() -> None:
    ticks = 0
    with IsolatedRuntime() as rt, Runtime() as local:
        stop = threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        for runtime in (rt, local):
            before = ticks
            runtime.bind_function("ticked", lambda before=before: ticks > before)
            runtime.eval("while (!ticked()) { for (let i = 0; i < 1e5; i++); }")
        stop.set()
        thread.join()


def test_an_in_process_runtime_belongs_to_its_thread() -> None:
    rt = Runtime()
    raised: list[BaseException] = []

    def use() -> None:
        try:
            rt.eval("1")
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "thread" in str(raised[0])
    assert rt.eval("1") == 1


def test_twenty_threads_make_and_close_runtimes_at_once() -> None:
    results: list[object] = []

    def work() -> None:
        with IsolatedRuntime() as rt, Runtime() as local:
            results.append(rt.eval("21") + local.eval("21"))

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [42] * 20


def what_inherited_says(inherited: IsolatedRuntime | Runtime) -> str:
    with pytest.raises(InvalidInput) as caught:
        inherited.eval("1")
    return str(caught.value)


def in_forked_child(rt: IsolatedRuntime, local: Runtime, answers: Connection) -> None:
    said = [what_inherited_says(rt), what_inherited_says(local)]
    rt.close()
    answers.send((*said, fresh_runtime_answers()))


def test_a_forked_child_makes_its_own_and_leaves_its_parents_alone() -> None:
    context = multiprocessing.get_context("fork")
    answers, to_send = context.Pipe(duplex=False)
    with IsolatedRuntime() as rt, Runtime() as local:
        assert rt.eval("let x = 1; x") == 1
        process = context.Process(target=in_forked_child, args=(rt, local, to_send))
        process.start()
        assert answers.poll(PATIENCE)
        inherited, inherited_local, fresh = answers.recv()
        process.join(PATIENCE)
        assert process.exitcode == 0
        assert "forked" in inherited
        assert "forked" in inherited_local
        assert fresh is True
        assert rt.eval("++x") == 2, "the child's close and exit must not reach the parent's worker"
    answers.close()
    to_send.close()


def in_spawned_child(answers: Connection) -> None:
    answers.send(fresh_runtime_answers())


def test_a_spawned_child_works() -> None:
    context = multiprocessing.get_context("spawn")
    answers, to_send = context.Pipe(duplex=False)
    process = context.Process(target=in_spawned_child, args=(to_send,))
    process.start()
    assert answers.poll(PATIENCE)
    assert answers.recv() is True
    process.join(PATIENCE)
    answers.close()
    to_send.close()


def test_ctrl_c_stops_the_script_and_keeps_the_runtime() -> None:
    with python(
        """
        import signal, sys
        from pydeno import IsolatedRuntime, Runtime
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for rt in (IsolatedRuntime(timeout=600, request_timeout=600), Runtime()):
            rt.eval("let kept = 7")
            rt.bind_function("started", lambda: print("started", flush=True))
            try:
                rt.eval("started(); for (;;);")
            except KeyboardInterrupt:
                print("interrupted", rt.eval("kept"), flush=True)
        """
    ) as host:
        assert host.stdout is not None
        for _ in range(2):
            assert host.stdout.readline() == "started\n"
            time.sleep(0.05)
            host.send_signal(signal.SIGINT)
            assert host.stdout.readline() == "interrupted 7\n"
        assert host.wait(PATIENCE) == 0


def test_the_hosts_own_signals_reach_its_handlers() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        with Runtime() as local, IsolatedRuntime() as rt:
            rt.bind_function("signal", lambda: os.kill(os.getpid(), signal.SIGUSR1))
            local.bind_function("signal", lambda: os.kill(os.getpid(), signal.SIGUSR1))
            rt.eval("signal(); const a = []; for (let i = 0; i < 1e5; i++) a.push({i}); 0")
            local.eval("signal(); const a = []; for (let i = 0; i < 1e5; i++) a.push({i}); 0")
        assert seen == [signal.SIGUSR1] * 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def settled_children() -> int:
    return len(children(os.getpid()))


def test_thousands_of_starts_and_ends_leak_no_process_and_no_descriptor() -> None:
    with IsolatedRuntime() as rt:
        rt.eval("1")
    gc.collect()
    files, processes = open_files(), settled_children()
    for number in range(2500):
        rt = IsolatedRuntime()
        if number % 50 == 0:
            assert rt.eval("1") == 1
        if number % 3:
            rt.close()
        del rt
    gc.collect()
    # A zygote, the worker ahead, and for a moment those that are just being reaped.
    wait_until(lambda: settled_children() <= max(processes, 2), "the end of the workers")
    assert open_files() <= files + 2


def test_a_descriptor_that_the_host_lets_be_inherited_is_not_kept_open_by_a_zygote() -> None:
    end_to_read, end_to_write = os.pipe()
    os.set_inheritable(end_to_write, True)
    with IsolatedRuntime(worker_start="exec") as rt:
        assert rt.eval("1") == 1
        os.close(end_to_write)
        os.set_blocking(end_to_read, False)
        assert os.read(end_to_read, 1) == b"", "the end of the file, since nobody holds the other end"
    os.close(end_to_read)


def test_a_closed_runtime_that_is_kept_holds_no_socket() -> None:
    before = open_files()
    kept = []
    for _ in range(20):
        rt = IsolatedRuntime()
        rt.eval("1")
        rt.close()
        kept.append(rt)
    assert open_files() <= before + len(kept) + 4


def test_zygotes_are_replaced_after_as_many_workers_as_asked_for() -> None:
    set_zygote_rotation(max_workers=3)
    try:
        zygotes = set()
        runtimes = [IsolatedRuntime() for _ in range(8)]
        for rt in runtimes:
            zygotes.add(parent_of(rt.worker_pid))
            assert rt.eval("1") == 1
        assert len(zygotes) >= 3
        for rt in runtimes:
            rt.close()
    finally:
        set_zygote_rotation()


def test_a_worker_of_its_own_zygote_shares_no_address_space() -> None:
    def engine_at(pid: int) -> str:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        return next(line.split("-")[0] for line in maps.splitlines() if "javascriptcore" in line)

    if os.geteuid() != 0:
        # Another user's memory map is not ours to read, and the worker is not dumpable.
        with IsolatedRuntime(worker_start="exec") as rt:
            assert rt.eval("1") == 1
        return
    with IsolatedRuntime() as one, IsolatedRuntime() as two, IsolatedRuntime(worker_start="exec") as own:
        assert own.eval("1") == 1
        assert engine_at(one.worker_pid) == engine_at(two.worker_pid)
        assert engine_at(own.worker_pid) != engine_at(one.worker_pid)


def test_siblings_do_not_share_their_random_numbers() -> None:
    with IsolatedRuntime() as one, IsolatedRuntime() as two:
        code = "Array.from({length: 8}, Math.random)"
        assert one.eval(code) != two.eval(code)


def test_what_a_script_does_to_its_world_stays_in_its_worker() -> None:
    look = "[typeof left, Object.isFrozen(Array.prototype), Math.max(1, 2), ({}).left ?? null]"
    with IsolatedRuntime() as one, IsolatedRuntime() as two:
        one.eval(
            "var left = 1; Object.prototype.left = 1; Object.freeze(Array.prototype); Math.max = () => 'mine'"
        )
        assert one.eval(look) == ["number", True, "mine", 1]
        # A sibling that was forked before, and one that is forked now.
        assert two.eval(look) == ["undefined", False, 2, None]
        with IsolatedRuntime() as three:
            assert three.eval(look) == ["undefined", False, 2, None]


def test_a_worker_that_was_killed_while_it_waited_to_be_needed_is_replaced() -> None:
    with IsolatedRuntime() as rt:
        stat = Path(f"/proc/{rt.worker_pid}/stat").read_text(encoding="ascii")
        zygote = stat.rpartition(")")[2].split()[1]
        children = Path(f"/proc/{zygote}/task/{zygote}/children")

        def ahead() -> set[int]:
            found = set(map(int, children.read_text(encoding="ascii").split()))
            return {pid for pid in found if pid != rt.worker_pid and is_alive(pid) and is_confined(pid)}

        wait_until(ahead, "a worker made ahead")
        # Those of other runtimes of this process may be among them; theirs is a crash, which they say.
        for pid in ahead():
            os.kill(pid, signal.SIGKILL)
            wait_until_ended(pid, "a killed worker")
        with IsolatedRuntime() as other:
            assert other.eval("1 + 1") == 2
            assert not other.sandbox_degraded
