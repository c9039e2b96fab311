"""A Python process of its own, from which something that the sandbox needs is really taken away.

The script runs in a new interpreter, after functions that take things away: system calls by a seccomp filter, as a
container's runtime would have put one there; capabilities; a readable `/proc`; namespaces. `examine` then has it tell
what `sandbox_status()` says and what runtimes do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

ROOT = os.geteuid() == 0

ENOSYS, EPERM, PRETEND = 38, 1, 0

_PREAMBLE = '''
import ctypes, json, os, platform, struct, sys, warnings
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {
        "capset": 126, "close_range": 436, "fsopen": 430, "kill": 62, "landlock_create_ruleset": 444,
        "landlock_restrict_self": 446, "pidfd_send_signal": 424, "prctl": 157, "seccomp": 317, "setresuid": 117,
        "unshare": 272,
    },
    "aarch64": {
        "capset": 91, "close_range": 436, "fsopen": 430, "kill": 129, "landlock_create_ruleset": 444,
        "landlock_restrict_self": 446, "pidfd_send_signal": 424, "prctl": 167, "seccomp": 277, "setresuid": 147,
        "unshare": 97,
    },
}[platform.machine()]

def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def refuse(name, error, first_argument=None):
    """The call fails with `error`, or pretends to work when that is 0; with `first_argument`, only that use of it."""
    def instruction(code, yes, no, k):
        return struct.pack("HBBI", code, yes, no, k)
    program = [
        instruction(0x20, 0, 0, 0),                      # load the call's number
        instruction(0x15, 0, 1 if first_argument is None else 3, NUMBERS[name]),
        *([] if first_argument is None else [
            instruction(0x20, 0, 0, 16),                 # load the first argument
            instruction(0x15, 0, 1, first_argument),
        ]),
        instruction(0x06, 0, 0, 0x00050000 | error),     # fail
        instruction(0x06, 0, 0, 0x7FFF0000),             # allow
    ]
    buffer = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    check(libc.prctl(38, 1, 0, 0, 0))                    # no_new_privs, which an ordinary user needs for a filter
    check(libc.prctl(22, 2, header))

def weaken_filters():
    """Every filter that is installed from now on refuses where it was to kill.

    A supervisor, a thread of this process, is asked about each installation and changes the program in the memory of
    the process that installs it. For root, who may.
    """
    import fcntl, queue, threading
    received, answer = 0xC0502100, 0xC0182101            # SECCOMP_IOCTL_NOTIF_RECV and _SEND
    kill, refuse_instead, ret = 0x80000000, 0x00050001, 0x06
    listeners = queue.Queue()
    def supervise():
        listener = listeners.get()
        while True:
            asked = bytearray(80)
            fcntl.ioctl(listener, received, asked)
            call, pid = struct.unpack_from("QI", asked)
            pointer = struct.unpack_from("6Q", asked, 32)[2]
            with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(pointer)
                length, program = struct.unpack("HxxxxxxQ", memory.read(16))
                for at in range(length):
                    memory.seek(program + 8 * at)
                    code, yes, no, k = struct.unpack("HBBI", memory.read(8))
                    if (code, k) == (ret, kill):
                        memory.seek(program + 8 * at)
                        memory.write(struct.pack("HBBI", code, yes, no, refuse_instead))
            fcntl.ioctl(listener, answer, struct.pack("QqiI", call, 0, 0, 1))  # go on with the call
    threading.Thread(target=supervise, daemon=True).start()
    program = [
        struct.pack("HBBI", 0x20, 0, 0, 0),
        struct.pack("HBBI", 0x15, 0, 1, NUMBERS["seccomp"]),
        struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000),     # ask the supervisor
        struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000),
    ]
    buffer = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    check(libc.prctl(38, 1, 0, 0, 0))
    listeners.put(check(libc.syscall(NUMBERS["seccomp"], 1, 8, header)))

def drop_capabilities(keep=(), drop=None):
    """Root without these capabilities, or without all but `keep`; what it executes does not regain them."""
    dropped = [number for number in (range(41) if drop is None else drop) if number not in keep]
    for number in dropped:
        check(libc.prctl(24, number, 0, 0, 0))           # out of the bounding set
    header = struct.pack("Ii", 0x20080522, 0)
    data = ctypes.create_string_buffer(24)
    check(libc.capget(header, data))
    words = list(struct.unpack("6I", data.raw))
    for number in dropped:
        for word in range(3):
            words[number // 32 * 3 + word] &= ~(1 << number % 32)
    check(libc.capset(header, struct.pack("6I", *words)))

NEWNS, NEWUSER, NEWPID = 0x00020000, 0x10000000, 0x20000000

def mount(source, target, kind, flags, options=None):
    check(libc.mount(source, target, kind, flags, options))

def own_mounts():
    check(libc.unshare(NEWNS))
    mount(None, b"/", None, 0x44000)                     # recursively private

def continue_in_child():
    """The rest of the script runs in a child process; this one ends as it ends."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))

def become_plain_user():
    """An ordinary user without any privilege, with the worker copied to where it may start it."""
    import shutil, tempfile
    import pydeno._isolated
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    pydeno._isolated._WORKER = shutil.copy(pydeno._isolated._WORKER, folder)
    if os.fork():
        _, status = os.wait()
        shutil.rmtree(folder)
        os._exit(os.waitstatus_to_exitcode(status))
    os.setgroups([])
    os.setresgid(54321, 54321, 54321)
    os.setresuid(54321, 54321, 54321)
    check(libc.prctl(4, 1, 0, 0, 0))                     # dumpable, as a process is that such a user starts

def start(mode):
    import pydeno
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with pydeno.IsolatedRuntime(sandbox=mode) as rt:
                return {
                    "value": rt.eval("1 + 1"), "sandbox": rt.sandbox, "degraded": rt.sandbox_degraded,
                    "warned": [str(warning.message) for warning in caught],
                }
        except pydeno.PydenoError as error:
            layers = getattr(error, "layers", [])
            return {
                "kind": error.kind, "text": str(error),
                "missing": [name for name, applied, *_ in layers if not applied and name != "empty_root"],
            }

def tell():
    import pydeno
    status = pydeno.sandbox_status()
    print(json.dumps({
        "status": status.to_dict(), "fixes": status.fixes,
        "require": start("require"), "auto": start("auto"), "off": start("off"),
    }))
'''


def run(script: str, **env: str) -> str:
    """The standard output of a script, which must end well and complain about nothing."""
    done = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **env},
    )
    assert done.stderr == ""
    assert done.returncode == 0, done.returncode
    return done.stdout


class Found:
    """What a degraded host says of itself, and what runtimes do there."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.status: dict[str, Any] = told["status"]
        self.fixes: dict[str, str] = told["fixes"]
        self.require: dict[str, Any] = told["require"]
        self.auto: dict[str, Any] = told["auto"]
        self.off: dict[str, Any] = told["off"]

    @property
    def missing(self) -> set[str]:
        """The required layers that are not in force."""
        return {name for name in self.status["required"] if not self.status[name]["applied"]}


def examine(take_away: str) -> Found:
    """Take something away, and see that the status and what runtimes do are the same story."""
    found = Found(json.loads(run(textwrap.dedent(take_away) + "\ntell()\n")))
    assert found.status["complete"] == ("value" in found.require), "the status and the start disagree"
    assert found.missing <= found.fixes.keys()
    assert len(found.status["warnings"]) == len(found.fixes)
    if found.status["complete"]:
        assert found.auto["sandbox"] == found.require["sandbox"] == found.status["applied"]
        assert not found.require["degraded"]
        assert not found.auto["degraded"]
        assert found.auto["warned"] == []
    else:
        assert found.require["kind"] == "sandbox_unavailable"
        assert set(found.require["missing"]) & found.missing, "the refusal names a missing layer"
        assert all(name in found.require["text"] for name in found.require["missing"])
        if "value" in found.auto:
            assert found.auto["degraded"]
            assert all(name in found.auto["warned"][0] for name in found.missing)
            assert found.auto["sandbox"] == found.status["applied"]
    return found
