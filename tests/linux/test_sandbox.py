"""What a worker is confined by, seen from outside, and what happens where a layer is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from degraded_host import ENOSYS, EPERM, ROOT, run
from pydeno import IsolatedRuntime, undefined


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_a_worker_reports_every_layer() -> None:
    with IsolatedRuntime() as rt:
        assert rt.sandbox == "landlock+seccomp"
        assert not rt.sandbox_degraded
        assert {"no_new_privs", "privileges", "self_test"} <= set(rt.sandbox_extras)
        assert all(layer.detail for layer in rt.sandbox_layers)
        assert all(layer.fix == "" for layer in rt.sandbox_layers if layer.applied)


def test_the_kernel_says_the_same_of_a_worker() -> None:
    before = status_of(os.getpid())
    with IsolatedRuntime() as rt:
        status = status_of(rt.worker_pid)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[capabilities], 16) == 0
        assert int(status["Uid"].split()[0]) != 0
        mine = status_of(os.getpid())
        for confinement in ("Seccomp", "Seccomp_filters", "NoNewPrivs", "CapEff"):
            assert mine[confinement] == before[confinement], "the host stays as it was"


@pytest.mark.parametrize("kind", ["user", "mnt", "net", "ipc", "uts"])
def test_a_worker_lives_in_namespaces_of_its_own(kind: str) -> None:
    with IsolatedRuntime() as rt:
        if "empty_root" in rt.sandbox_extras and ROOT:
            # Only root may look: the worker is not dumpable.
            assert (
                Path(f"/proc/{rt.worker_pid}/ns/{kind}").readlink()
                != Path(f"/proc/self/ns/{kind}").readlink()
            )
        else:
            assert not os.access(f"/proc/{rt.worker_pid}/ns/{kind}", os.R_OK) or not ROOT


def test_a_worker_without_the_jit_has_no_executable_memory_but_its_libraries() -> None:
    if not ROOT:
        with IsolatedRuntime() as rt, pytest.raises(PermissionError):
            Path(f"/proc/{rt.worker_pid}/maps").read_text(encoding="utf-8")
        return
    with IsolatedRuntime() as rt, IsolatedRuntime(jit="full") as jit:
        code = "let s = 0; for (let i = 0; i < 1e6; i++) s += i; s"
        assert rt.eval(code) == jit.eval(code)

        def writable_code(pid: int) -> list[str]:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
            return [line for line in maps if "w" in line.split()[1] and "x" in line.split()[1]]

        assert writable_code(rt.worker_pid) == []
        assert writable_code(jit.worker_pid) != [], "the JIT's region must show, or this shows nothing"


def test_workers_of_one_zygote_share_no_wake_up_that_could_carry_a_message() -> None:
    if not ROOT:
        # The worker is not dumpable, so its descriptors are not ours to look at.
        with IsolatedRuntime() as rt, pytest.raises(PermissionError):
            list(Path(f"/proc/{rt.worker_pid}/fd").iterdir())
        return

    def wake_ups(pid: int) -> set[str]:
        infos = [info.read_text(encoding="ascii") for info in Path(f"/proc/{pid}/fdinfo").iterdir()]
        return {line for info in infos for line in info.splitlines() if line.startswith("eventfd-id")}

    with IsolatedRuntime() as one, IsolatedRuntime() as two:
        zygote = int(
            Path(f"/proc/{one.worker_pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1]
        )
        assert wake_ups(one.worker_pid), "there must be one for this to show anything"
        assert not wake_ups(one.worker_pid) & wake_ups(two.worker_pid)
        assert not wake_ups(one.worker_pid) & wake_ups(zygote)


def test_a_guest_finds_the_language_and_nothing_else() -> None:
    absent = [
        "Deno", "process", "require", "module", "fetch", "XMLHttpRequest", "WebSocket", "Worker", "importScripts",
        "SharedArrayBuffer", "Atomics", "WebAssembly", "console", "setTimeout", "queueMicrotask", "print", "load",
        "read", "window", "global", "document", "$vm", "Bun", "std", "os",
    ]  # fmt: skip
    with IsolatedRuntime() as rt:
        assert rt.eval(f"{absent!r}.filter(name => name in globalThis)") == []
        assert rt.eval("import('fs').catch(e => e.name)") in (
            "TypeError",
            "Error",
            "ReferenceError",
            "SyntaxError",
        )
        for name in ("Intl", "Map", "Promise", "Proxy", "Reflect", "BigInt", "Temporal"):
            present = rt.eval(f"typeof {name}")
            assert present != "undefined" or name == "Temporal"


def test_locale_and_zone_are_fixed_whatever_the_hosts_are() -> None:
    out = run(
        """
        from pydeno import IsolatedRuntime
        with IsolatedRuntime() as rt:
            print(rt.eval("[(1234.5).toLocaleString(), new Date(0).toLocaleString(), "
                          "Intl.DateTimeFormat().resolvedOptions().timeZone].join('|')"))
        """,
        LANG="de_DE.UTF-8",
        LC_ALL="de_DE.UTF-8",
        TZ="Asia/Tokyo",
    )
    number, date, zone = out.strip().split("|")
    assert number == "1,234.5"
    assert date.startswith("1/1/1970, 12:00:00")
    assert zone == "UTC"


def test_the_environment_of_the_host_does_not_reach_a_worker() -> None:
    if not ROOT:
        with IsolatedRuntime() as rt, pytest.raises(PermissionError):
            Path(f"/proc/{rt.worker_pid}/environ").read_bytes()
        return
    os.environ["PYDENO_TEST_SECRET"] = "secret-9f3c"
    try:
        # A worker of its own zygote, so that it was started after the secret was there.
        with IsolatedRuntime(worker_start="exec") as rt:
            environment = Path(f"/proc/{rt.worker_pid}/environ").read_bytes()
            assert b"secret" not in environment
            assert b"LANG=en_US" in environment, "it must be readable for this to show anything"
    finally:
        del os.environ["PYDENO_TEST_SECRET"]


def test_require_refuses_without_landlock_and_names_it() -> None:
    out = run(
        f"""
        refuse("landlock_create_ruleset", {ENOSYS})
        from pydeno import IsolatedRuntime, SandboxUnavailable, WorkerCrashed
        try:
            IsolatedRuntime()
        except SandboxUnavailable as error:
            assert isinstance(error, WorkerCrashed)
            print(error.kind, [name for name, applied, *_ in error.layers if not applied])
            print(error)
        """
    )
    kind, message = out.splitlines()
    assert kind == "sandbox_unavailable ['landlock']"
    assert "landlock" in message
    assert "to fix" in message


def test_auto_starts_without_landlock_and_says_so() -> None:
    out = run(
        f"""
        refuse("landlock_create_ruleset", {ENOSYS})
        from pydeno import IsolatedRuntime, SandboxDegradedWarning
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with IsolatedRuntime(sandbox="auto") as rt:
                print(rt.sandbox, rt.sandbox_degraded, rt.eval("1 + 1"))
        print([w.category is SandboxDegradedWarning and "landlock" in str(w.message) for w in caught])
        """
    )
    assert out == "seccomp True 2\n[True]\n"


def test_no_mode_weakens_another_one() -> None:
    out = run(
        f"""
        refuse("landlock_create_ruleset", {ENOSYS})
        warnings.simplefilter("ignore")
        from pydeno import IsolatedRuntime, SandboxUnavailable
        with IsolatedRuntime(sandbox="auto") as rt:
            rt.eval("1")
        try:
            IsolatedRuntime()
        except SandboxUnavailable:
            print("refused")
        """
    )
    assert out == "refused\n"


def test_require_refuses_without_seccomp() -> None:
    out = run(
        f"""
        refuse("seccomp", {ENOSYS})
        from pydeno import IsolatedRuntime, SandboxUnavailable
        try:
            IsolatedRuntime()
        except SandboxUnavailable as error:
            print([name for name, applied, *_ in error.layers if not applied])
        """
    )
    assert "seccomp" in out


def test_a_host_without_namespaces_still_has_the_required_layers() -> None:
    out = run(
        f"""
        refuse("unshare", {EPERM})
        from pydeno import IsolatedRuntime
        with IsolatedRuntime() as rt:
            print(rt.sandbox, rt.sandbox_degraded, "empty_root" in rt.sandbox_extras, rt.eval("1 + 1"))
            print(next(layer.fix != "" for layer in rt.sandbox_layers if layer.name == "empty_root"))
        """
    )
    assert out == "landlock+seccomp False False 2\nTrue\n"


def test_off_is_off_and_says_so() -> None:
    out = run(
        """
        from pydeno import IsolatedRuntime, SandboxDegradedWarning
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with IsolatedRuntime(sandbox="off") as rt:
                print(rt.sandbox, rt.sandbox_degraded, rt.eval("1 + 1"))
        print(len(caught), caught[0].category is SandboxDegradedWarning)
        """
    )
    assert out == "none True 2\n1 True\n"


def test_a_plain_user_gets_the_same_sandbox() -> None:
    if not ROOT:
        with IsolatedRuntime() as rt:
            assert rt.sandbox == "landlock+seccomp"
        return
    # Root's own folders are closed to others, so the worker is copied to where anybody may start it.
    out = run(
        """
        import os, shutil, tempfile
        import pydeno, pydeno._isolated
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            pydeno._isolated._WORKER = shutil.copy(pydeno._isolated._WORKER, folder)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 0)
            with pydeno.IsolatedRuntime() as rt:
                print(os.geteuid(), rt.sandbox, rt.eval("1 + 1"), flush=True)
            os.setresuid(0, 0, 0)
        """
    )
    assert out == "65534 landlock+seccomp 2\n"


def test_a_missing_engine_is_one_clear_error_and_importing_works() -> None:
    out = run(
        """
        import pydeno
        for door in (pydeno.IsolatedRuntime, pydeno.Runtime):
            try:
                door()
            except pydeno.EngineUnavailable as error:
                print(error.kind, "/no/such/library.so" in str(error))
        """,
        PYDENO_JSC="/no/such/library.so",
    )
    assert out == "engine_unavailable True\n" * 2


def test_a_missing_worker_is_one_clear_error() -> None:
    out = run(
        """
        import pydeno, pydeno._isolated
        pydeno._isolated._WORKER = "/no/such/pydeno-worker"
        try:
            pydeno.IsolatedRuntime()
        except pydeno.WorkerCrashed as error:
            print(error.kind, "install pydeno again" in str(error))
        """
    )
    assert out == "worker_crashed True\n"


def test_undefined_is_what_an_absent_global_gives() -> None:
    with IsolatedRuntime() as rt:
        assert rt.eval("globalThis.Deno") is undefined
