"""Threads that wait for their turn on one runtime: a wait can always be given up."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, final

import pytest

from pydeno import IsolatedRuntime, PydenoError, RuntimeClosed, RuntimeTerminated


@final
class Occupied:
    """A runtime whose host function, on another thread, does not return before it is let."""

    def __init__(self) -> None:
        self.rt = IsolatedRuntime()
        self.inside, self.leave = threading.Event(), threading.Event()
        self.outcome: list[Any] = []
        self.rt.bind_function("stay", self.stay)
        self.thread = threading.Thread(target=self.evaluate)

    def stay(self) -> str:
        self.inside.set()
        self.leave.wait()
        return "left"

    def evaluate(self) -> None:
        try:
            self.outcome.append(self.rt.eval("stay()"))
        except PydenoError as error:
            self.outcome.append(error)

    def __enter__(self) -> Occupied:
        self.thread.start()
        self.inside.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave.set()
        self.thread.join()
        self.rt.close()


def test_ctrl_c_ends_a_wait_for_another_threads_evaluation() -> None:
    with Occupied() as occupied:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            occupied.rt.eval("1")
        timer.join()
        occupied.leave.set()
        occupied.thread.join()
        assert occupied.outcome == ["left"]
        assert occupied.rt.eval("40 + 2") == 42


@pytest.mark.parametrize(("ending", "error"), [("close", RuntimeClosed), ("terminate", RuntimeTerminated)])
def test_the_end_of_a_runtime_ends_every_wait_for_it(ending: str, error: type[PydenoError]) -> None:
    with Occupied() as occupied:
        timer = threading.Timer(0.2, getattr(occupied.rt, ending))
        timer.start()
        with pytest.raises(error):
            occupied.rt.eval("1")
        timer.join()
    assert [type(outcome) for outcome in occupied.outcome] == [error]


def test_a_host_function_that_waits_for_another_threads_evaluation_can_be_ended_from_a_third() -> None:
    """The two wait for each other until somebody ends the runtime."""
    rt = IsolatedRuntime()
    outcomes: list[Any] = []

    def other() -> None:
        try:
            rt.eval("1")
        except RuntimeTerminated as error:
            outcomes.append(error)

    def wait_for_other() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    rt.bind_function("waitForOther", wait_for_other)
    timer = threading.Timer(0.2, rt.terminate)
    timer.start()
    with pytest.raises(RuntimeTerminated):
        rt.eval("waitForOther()")
    timer.join()
    assert [type(outcome) for outcome in outcomes] == [RuntimeTerminated]


def test_while_it_waits_the_runtime_is_anothers() -> None:
    """The control: without an end from outside, the second evaluation comes after the first."""
    with Occupied() as occupied:
        threading.Timer(0.2, occupied.leave.set).start()
        assert occupied.rt.eval("2") == 2
        assert occupied.leave.is_set()
