"""A worker that misbehaves: it speaks pydeno's protocol just far enough to be believed, and then does not.

`install` writes an executable that a host starts in place of `pydeno-worker`. As a zygote it forks processes that
report a complete sandbox, whatever is true, and answer their first evaluation with one of `BEHAVIOURS`. It stands for a
worker whose engine a script has taken over.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

# Majors of CBOR, and the numbers of the protocol's messages.
UNSIGNED, TEXT, ARRAY = 0, 3, 4
LISTENING, SPAWNED, EXITED, TEMPLATE_READY = 0, 2, 4, 5
BECOME_TEMPLATE, EVAL = 2, 2
READY, CALL, CONSOLE, DONE, WAITING, CONSOLE_DROPPED = 0, 2, 3, 4, 5, 6
# The function by which streams of the host are asked, and the outcome of a stream that has ended.
STREAMS, STREAM_ENDED = (1 << 32) - 1, 9
# What the host has bound: a function that returns at once, and one that returns when the worker is gone.
NOTHING, WAIT = 0, 1


def install(folder: Path, behaviour: str, build: str, stranger: int | None = None) -> str:
    """Write the executable and return its path. With a stranger it is a template, and behaves as in `NAMES`."""
    main = "main" if stranger is None else "main_as_template"
    arguments = ", ".join(repr(value) for value in (behaviour, build, stranger) if value is not None)
    path = folder / "pydeno-worker"
    path.write_text(
        f"#!{sys.executable} -ES\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import fake_worker; fake_worker.{main}({arguments})\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


def head(major: int, value: int) -> bytes:
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 24:
            return bytes([major << 5 | value])
        if value < 1 << 8 * size:
            return bytes([major << 5 | extra]) + value.to_bytes(size, "big")
    raise ValueError(value)


def cbor(value: object) -> bytes:
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(UNSIGNED, value)
    if isinstance(value, str):
        return head(TEXT, len(value.encode())) + value.encode()
    assert isinstance(value, list)
    return head(ARRAY, len(value)) + b"".join(map(cbor, value))


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "little") + payload


def message(number: int, *fields: object) -> bytes:
    return frame(cbor([number, *fields]))


Behaviour = Callable[[socket.socket], None]


def idle(_: socket.socket) -> None:
    time.sleep(600)


def sends(payload: bytes, then: Behaviour = idle) -> Behaviour:
    """Send something once."""

    def behaviour(link: socket.socket) -> None:
        link.sendall(payload)
        then(link)

    return behaviour


def floods(payload: bytes, pause: float = 0) -> Behaviour:
    """Send something again and again."""

    def behaviour(link: socket.socket) -> None:
        while True:
            link.sendall(payload)
            time.sleep(pause)

    return behaviour


def ignore_signals(link: socket.socket) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    idle(link)


def eat_memory(_: socket.socket) -> None:
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 20))


def start_threads(link: socket.socket) -> None:
    for _ in range(100):
        threading.Thread(target=idle, args=(link,), daemon=True).start()
    idle(link)


def burn(_: socket.socket) -> None:
    while True:
        pass


def leave(_: socket.socket) -> None:
    os._exit(7)


#: The beginning of a result whose value comes next.
RESULT = b"\x84" + cbor(DONE) + cbor(1) + b"\x82\x00"

BEHAVIOURS: dict[str, Behaviour] = {
    "says nothing": idle,
    "says nothing and ignores signals": ignore_signals,
    "writes garbage": floods(bytes(range(256)) * 256),
    "announces more than it may send": sends(b"\xff\xff\xff\xff"),
    "floods within an announced frame": sends((7 << 20).to_bytes(4, "little"), floods(b"\0" * 65536)),
    "sends a value that is too deep": sends(frame(RESULT + b"\x81" * (1 << 20) + b"\x00")),
    "sends a value that promises too much": sends(frame(RESULT + head(ARRAY, 1 << 62))),
    "answers twice": sends(message(DONE, 1, [0, 1], []) * 2),
    "answers another request": sends(message(DONE, 7, [0, 1], [])),
    "calls what nobody bound": sends(message(CALL, 1, 1, 99, [])),
    "calls for another request": sends(message(CALL, 1, 7, NOTHING, [])),
    "waits for nothing": sends(message(WAITING, 1)),
    "waits again and again": floods(message(WAITING, 0) * 1000),
    "calls without an end": floods(message(CALL, 1, 1, NOTHING, []) * 1000),
    "asks for streams that nobody gave": sends(message(CALL, 1, 1, STREAMS, [1, 0])),
    "ends a stream that nobody asked": sends(message(DONE, 1, [STREAM_ENDED], [])),
    "floods the notes on its console": floods(message(CONSOLE_DROPPED, 1, 1) * 1000),
    "floods the console": floods(message(CONSOLE, 1, "x" * 1000) * 100),
    "dribbles": sends((1 << 20).to_bytes(4, "little"), floods(b"\x80", pause=0.001)),
    "hangs up in a word": sends(b"\x10\0", leave),
    "eats memory": eat_memory,
    "starts threads": start_threads,
    "burns processor time while the host waits": sends(message(CALL, 1, 1, WAIT, []), burn),
}


#: What a template says of a worker that it has forked, given that and a stranger: a process and a descriptor.
NAMES: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "names its worker": lambda worker, _: (worker, os.pidfd_open(worker)),
    "names a stranger": lambda _, stranger: (stranger, os.pidfd_open(stranger)),
    "names its worker and a stranger": lambda worker, stranger: (worker, os.pidfd_open(stranger)),
    "names a stranger and its worker": lambda worker, stranger: (stranger, os.pidfd_open(worker)),
    "names no process": lambda worker, _: (worker, os.open("/dev/null", os.O_RDONLY)),
}


def receive_frame(link: socket.socket) -> bytes:
    length = int.from_bytes(link.recv(4, socket.MSG_WAITALL), "little")
    return link.recv(length, socket.MSG_WAITALL)


def introduce(link: socket.socket, build: str) -> None:
    """Say that this process is confined, and wait for something to evaluate."""
    layers = ("process", "privileges", "no_new_privs", "landlock", "seccomp", "self_test")
    link.sendall(message(READY, build, "none", [[1, name, "so it says", ""] for name in layers]))
    while receive_frame(link)[1] != EVAL:
        pass


def work(link: socket.socket, behaviour: str, build: str) -> None:
    """A worker."""
    introduce(link, build)
    BEHAVIOURS[behaviour](link)


def main_as_template(behaviour: str, build: str, stranger: int) -> None:
    """A template whose workers are as good as any, and what it says of them is not."""
    control = socket.socket(fileno=0)
    control.send(cbor([LISTENING, build, "none"]))
    request, (descriptor,), _, _ = socket.recv_fds(control, 4096, 1)
    assert request[1] == BECOME_TEMPLATE
    link = socket.socket(fileno=descriptor)
    introduce(link, build)
    link.sendall(message(DONE, 1, [0, 1], []))
    assert link.recv(1) == b""
    link.close()
    control.send(cbor([TEMPLATE_READY]))
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        if not request:
            os._exit(0)
        if not descriptors:
            control.send(cbor([EXITED, 1, [2]]))
            continue
        child = os.fork()
        if child == 0:
            control.close()
            link = socket.socket(fileno=descriptors[0])
            introduce(link, build)
            link.sendall(message(DONE, 1, [0, 1], []))
            idle(link)
        os.close(descriptors[0])
        pid, descriptor = NAMES[behaviour](child, stranger)
        socket.send_fds(control, [cbor([SPAWNED, pid])], [descriptor])


def main(behaviour: str, build: str) -> None:
    """A zygote that forks such workers."""
    control = socket.socket(fileno=0)
    control.send(cbor([LISTENING, build, "none"]))
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        if not request:
            os._exit(0)
        if not descriptors:
            # How a worker ended: the request and its number, in the bytes that CBOR gave the number.
            pid = request[2:]
            number = int.from_bytes(pid[1:], "big") if len(pid) > 1 else pid[0]
            _, status = os.waitpid(number, 0)
            code = os.waitstatus_to_exitcode(status)
            control.send(cbor([EXITED, number, [0, code] if code >= 0 else [1, -code]]))
            continue
        child = os.fork()
        if child == 0:
            control.close()
            work(socket.socket(fileno=descriptors[0]), behaviour, build)
            os._exit(0)
        os.close(descriptors[0])
        socket.send_fds(control, [cbor([SPAWNED, child])], [os.pidfd_open(child)])
