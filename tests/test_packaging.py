"""What an installed pydeno consists of, and that it is one thing: one version, one set of files."""

from __future__ import annotations

import importlib.metadata
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pydeno

PROJECT = Path(__file__).parent.parent
PACKAGE = Path(pydeno.__file__).parent
DISTRIBUTION = importlib.metadata.distribution("pydeno")


def recorded() -> set[str]:
    """The files of the wheel, without the metadata and without bytecode."""
    files = DISTRIBUTION.files
    assert files is not None
    names = {file.as_posix() for file in files if file.suffix != ".pyc"}
    return {name for name in names if ".dist-info/" not in name}


def test_the_wheel_has_the_sources_the_extension_the_worker_the_command_and_nothing_else() -> None:
    sources = {
        path.relative_to(PROJECT / "python").as_posix()
        for path in (PROJECT / "python").rglob("*")
        if path.suffix in {".py", ".pyi"} or path.name == "py.typed"
    }
    files = recorded()
    command = {file for file in files if file.endswith("/bin/pydeno")}
    assert len(command) == 1
    assert files - command == sources | {"pydeno/_pydeno.abi3.so", "pydeno/pydeno-worker"}


def test_the_worker_lies_beside_the_package_and_is_executable() -> None:
    mode = (PACKAGE / "pydeno-worker").stat().st_mode
    assert stat.S_ISREG(mode)
    assert mode & 0o111 == 0o111
    assert not mode & 0o022, "nobody else may write to it"


def test_one_version_everywhere() -> None:
    manifest = (PROJECT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'\[workspace\.package\]\nversion = "(.+)"', manifest)
    assert found
    version = found[1]
    assert DISTRIBUTION.version == version
    assert pydeno.__version__ == version
    assert f"## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_wheel_serves_every_python_from_3_10_on() -> None:
    wheel = DISTRIBUTION.read_text("WHEEL")
    assert wheel is not None
    assert re.search(r"^Tag: cp310-abi3-", wheel, re.MULTILINE)


def test_pydeno_needs_no_other_package() -> None:
    assert [need for need in DISTRIBUTION.requires or () if "extra == " not in need] == []


def test_the_worker_and_the_command_load_nothing_but_the_c_library() -> None:
    allowed = re.compile(r"(linux-vdso|libc|libgcc_s|libm|libdl|libpthread|librt|ld-linux[-\w]*)\.so[.\d]*$")
    for program in [PACKAGE / "pydeno-worker", Path(sys.executable).parent / "pydeno"]:
        lines = subprocess.run(
            ["ldd", str(program)], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        loaded = [Path(line.split()[0]).name for line in lines]
        assert [name for name in loaded if not allowed.match(name)] == []


def test_importing_pydeno_loads_neither_the_engine_nor_the_network() -> None:
    script = (
        "import sys, pydeno\n"
        "maps = open('/proc/self/maps').read()\n"
        "print('javascriptcore' in maps.lower(), 'asyncio' in sys.modules, 'socket' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["False", "False", "False"]


def test_importing_pydeno_starts_no_thread_and_no_process() -> None:
    script = (
        "import os, pydeno\n"
        "children = open(f'/proc/self/task/{os.getpid()}/children').read()\n"
        "print(len(os.listdir('/proc/self/task')), children)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["1"]


def test_without_the_engine_importing_works_and_a_runtime_names_what_to_install() -> None:
    script = (
        "import pydeno\n"
        "try: pydeno.IsolatedRuntime().eval('1')\n"
        "except pydeno.PydenoError as error: print(error.kind, error)"
    )
    environment = {**os.environ, "PYDENO_JSC": "/nowhere/libengine.so"}
    finished = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert finished.stdout.startswith("engine_unavailable ")
    assert "/nowhere/libengine.so" in finished.stdout
