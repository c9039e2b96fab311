"""A layer really taken away from the host: the status tells the truth, and every mode does what it promises."""

from __future__ import annotations

import json

import pytest

from degraded_host import ENOSYS, EPERM, PRETEND, ROOT, examine, run

NO_NEW_PRIVS = 38

#: What is taken away, the required layers that are then missing, and words of the first one's detail.
CASES = {
    "nothing": ("", set(), ""),
    "a kernel without Landlock": (
        f"refuse('landlock_create_ruleset', {ENOSYS})",
        {"landlock"},
        "the kernel has no Landlock",
    ),
    "Landlock that is accepted and not enforced": (
        f"refuse('landlock_restrict_self', {PRETEND})",
        {"landlock"},
        "accepted the ruleset and does not enforce it",
    ),
    "Landlock forbidden by a container": (
        f"refuse('landlock_restrict_self', {EPERM})",
        {"landlock"},
        "did not apply the ruleset",
    ),
    "no seccomp": (
        f"refuse('seccomp', {ENOSYS})",
        {"seccomp", "self_test"},
        "the kernel did not take the filter",
    ),
    "seccomp that is accepted and not enforced": (
        f"refuse('seccomp', {PRETEND})",
        {"seccomp", "self_test"},
        "exec-not-killed",
    ),
    "no_new_privs refused": (
        f"refuse('prctl', {EPERM}, {NO_NEW_PRIVS})",
        {"no_new_privs"},
        "PR_SET_NO_NEW_PRIVS failed",
    ),
    "no way to close descriptors": (
        f"refuse('close_range', {ENOSYS})",
        {
            "process", "privileges", "no_new_privs", "landlock", "seccomp", "self_test",
        },
        "close_range failed",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("take_away", "missing", "words"), CASES.values(), ids=CASES.keys())
def test_the_status_names_what_is_missing(take_away: str, missing: set[str], words: str) -> None:
    found = examine(take_away)
    assert found.missing == missing
    if missing:
        assert any(words in found.status[name]["detail"] for name in missing)
        assert not found.status["hardened"]


def test_without_what_every_mode_needs_no_mode_starts() -> None:
    found = examine(f"refuse('close_range', {ENOSYS})")
    for start in (found.require, found.auto, found.off):
        assert start["kind"] == "sandbox_unavailable"
        assert start["missing"] == ["process"]


def test_a_worker_that_the_host_may_not_kill_starts_in_no_mode() -> None:
    # Asking whether a process may be signalled is refused, and so is signalling it.
    found = examine(f"refuse('kill', {EPERM}); refuse('pidfd_send_signal', {EPERM})")
    assert "termination" in found.missing
    for start in (found.require, found.auto, found.off):
        assert start["kind"] == "sandbox_unavailable"
        assert "termination" in start["missing"]


def test_without_namespaces_the_sandbox_is_complete_and_not_hardened() -> None:
    for take_away in (f"refuse('unshare', {EPERM})", f"refuse('fsopen', {EPERM})"):
        found = examine(take_away)
        assert found.missing == set()
        assert found.status["complete"]
        assert not found.status["hardened"]
        assert "empty_root (a bonus) is not in force" in found.status["warnings"][0]
        assert found.fixes.keys() == {"empty_root"}


# What follows needs root to take something away that an ordinary user does not have. For an ordinary user, the same
# test shows that there was nothing to take.


def test_a_filter_whose_kills_are_dropped_is_found_by_the_call_that_must_kill() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    found = examine("weaken_filters()")
    assert found.missing == {"seccomp", "self_test"}
    for name in found.missing:
        assert "exec-not-killed" in found.status[name]["detail"]
    # What the filter refuses, it still refuses.
    assert "a refused call answered EPERM" in found.status["seccomp"]["detail"]
    assert "exec-not-killed" in found.require["text"]
    assert found.auto["degraded"]


def test_a_sysctl_that_forbids_user_namespaces_is_seen() -> None:
    take_away = """
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child:
        os.read(ready[0], 1)
        for kind in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{kind}", "w") as file:
                file.write("0 0 65536")
        os.write(mapped[1], b"m")
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    check(libc.unshare(NEWUSER))
    os.write(ready[1], b"r")
    os.read(mapped[0], 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    """
    if not ROOT:
        assert examine("").missing == set()
        return
    found = examine(take_away)
    assert found.missing == set()
    assert not found.status["empty_root"]["applied"]
    assert "max_user_namespaces" in found.fixes["empty_root"]


def test_root_without_cap_sys_admin_has_the_whole_sandbox() -> None:
    found = examine("drop_capabilities(drop=[21])" if ROOT else "")
    assert found.status["hardened"]


def test_root_that_cannot_become_another_user_is_refused() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    found = examine("drop_capabilities()")
    assert "privileges" in found.missing
    assert "could not be dropped" in found.status["privileges"]["detail"]
    assert "CAP_SETUID" in found.fixes["privileges"]


def test_root_that_may_not_kill_other_users_processes_is_refused() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    cap_kill = 5
    found = examine(f"drop_capabilities(drop=[{cap_kill}])")
    assert found.missing == {"termination"}
    assert found.auto["kind"] == "sandbox_unavailable"
    assert found.auto["missing"] == ["termination"]
    # Without a sandbox the worker stays root, and root may kill it.
    assert found.off["value"] == 2


def test_a_plain_user_has_the_whole_sandbox() -> None:
    found = examine("become_plain_user()" if ROOT else "")
    assert found.status["hardened"]
    assert "not root" in found.status["privileges"]["detail"]


def test_a_proc_that_hides_other_processes_leaves_limits_unmeasurable() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    found = examine("own_mounts(); mount(b'proc', b'/proc', b'proc', 0, b'hidepid=2'); become_plain_user()")
    assert found.missing == {"resource_probes"}
    assert "hidepid" in found.fixes["resource_probes"]
    assert found.require["missing"] == ["resource_probes"]


def test_a_host_without_proc_starts_nothing() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    out = run(
        """
        import pydeno
        own_mounts()
        mount(b"tmpfs", b"/proc", b"tmpfs", 0)
        print(json.dumps([pydeno.sandbox_status().to_dict(), start("require"), start("auto"), start("off")]))
        """
    )
    status, *starts = json.loads(out)
    assert not status["complete"]
    assert not status["resource_probes"]["applied"]
    assert not status["empty_root"]["applied"]
    assert "mount /proc" in status["resource_probes"]["fix"]
    # The engine itself does not start without one, so nothing does in any mode.
    assert [start["kind"] for start in starts] == ["worker_crashed"] * 3


def test_a_proc_of_another_process_namespace_is_not_believed() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    # The first process of a namespace that still sees the /proc of the outer one, where its numbers are strangers'.
    found = examine("check(libc.unshare(NEWPID)); continue_in_child(); assert os.getpid() == 1")
    assert found.missing == {"resource_probes"}
    assert "another process namespace" in found.status["resource_probes"]["detail"]


def test_the_first_process_of_a_namespace_has_the_whole_sandbox() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    found = examine(
        """
        check(libc.unshare(NEWPID))
        continue_in_child()
        own_mounts()
        mount(b"proc", b"/proc", b"proc", 0)
        assert os.getpid() == 1
        """
    )
    assert found.status["hardened"]


def test_a_read_only_root_takes_nothing_away() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    bind, remount, read_only = 4096, 32, 1
    found = examine(
        f"""
        import pydeno
        own_mounts()
        mount(None, b"/", None, {bind | remount | read_only})
        try:
            open("/pydeno-test", "w")
        except OSError as error:
            assert error.errno == 30
        else:
            raise AssertionError("the root must be read-only for this to show anything")
        """
    )
    assert found.status["hardened"]


def test_limits_that_cannot_be_measured_end_a_long_evaluation_where_nothing_is_required() -> None:
    if not ROOT:
        assert examine("").missing == set()
        return
    out = run(
        """
        own_mounts()
        mount(b"proc", b"/proc", b"proc", 0, b"hidepid=2")
        become_plain_user()
        warnings.simplefilter("ignore")
        import pydeno
        with pydeno.IsolatedRuntime(sandbox="auto") as rt:
            try:
                rt.eval("for (;;);")
            except pydeno.LimitsUnmeasurable as error:
                print(error.kind)
        """
    )
    assert out == "limits_unmeasurable\n"
