"""Puts a copy of test262, the conformance tests of ECMAScript, into a folder.

    scripts/fetch_test262.py .venv/test262

The suite is published as a repository and in no package of its own; the sources of SpiderMonkey ship all of it, and
Debian has those as a source package. They are fetched through apt, from the mirror that this machine uses, into folders
of their own: the machine's package lists stay as they are, and no privilege is needed. Elsewhere, set `PYDENO_TEST262`
to the folder `js/src/tests/test262` of those sources, unpacked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE, RELEASE = "mozjs128", "trixie"
#: The suite's commit that these sources ship; the sample's expectations are of it.
COMMIT = "79e9b39f3a576154b1bc39f9dbd95d25addc4ebf"
INSIDE = "/js/src/tests/test262/"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ADVICE = "set PYDENO_TEST262 to the folder js/src/tests/test262 of the sources of SpiderMonkey 128"


def options(folder: Path) -> list[str]:
    """What keeps apt to folders of our own."""
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    lists, cache = f"Dir::State::Lists={folder / 'lists'}", f"Dir::Cache={folder / 'cache'}"
    return ["-o", lists, "-o", cache, "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "-qq"]


def mirror(apt: list[str]) -> str | None:
    """The mirror of Debian that this machine installs from, if the package lists tell."""
    command = [*apt, "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        origin, _, address = line.partition(" ")
        if origin == "Debian" and "security" not in address:
            return address
    return None


def download(folder: Path) -> Path:
    """The archive of the source package, which apt has verified."""
    if shutil.which("apt-get") is None:
        raise SystemExit(f"fetch_test262: there is no apt here; {ADVICE}")
    apt = ["apt-get", *options(folder)]
    address = mirror(["apt-get"])
    if address is None:  # A fresh image has no package lists.
        subprocess.run([*apt, "update"], check=True)
        address = mirror(apt)
    if address is None:
        raise SystemExit(f"fetch_test262: apt here uses no mirror of Debian; {ADVICE}")
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    (folder / "sources.list").write_text(f"deb-src {signed}{address} {RELEASE} main\n", encoding="ascii")
    sources = [
        "-o", f"Dir::Etc::SourceList={folder / 'sources.list'}", "-o", "Dir::Etc::SourceParts=/dev/null"
    ]  # fmt: skip
    subprocess.run([*apt, *sources, "update"], check=True)
    command = [*apt, *sources, "source", "--download-only", "--tar-only", PACKAGE]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob(f"{PACKAGE}_*.orig.tar.xz")
    return archive


def unpack(archive: Path, target: Path) -> None:
    """The suite alone, out of the sources."""
    with tarfile.open(archive, "r|xz") as members:
        found = False
        for member in members:
            _, inside, path = member.name.partition(INSIDE)
            if inside and member.isfile():
                found = True
                content = members.extractfile(member)
                destination = (target / path).resolve()
                if content is None or not destination.is_relative_to(target.resolve()):
                    raise SystemExit(f"fetch_test262: {member.name} is no file of the suite")
                destination.parent.mkdir(parents=True, exist_ok=True)
                with content, destination.open("wb") as file:
                    shutil.copyfileobj(content, file)
            elif found and not (member.name + "/").partition(INSIDE)[1]:
                break  # What belongs together stands together; the rest need not be unpacked.


def main() -> None:
    """Do what the command line asks for."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    if given := os.environ.get("PYDENO_TEST262"):
        if not Path(given, "GIT-INFO").is_file():
            raise SystemExit(f"fetch_test262: PYDENO_TEST262 is {given!r}, where no such copy is; {ADVICE}")
        shutil.copytree(given, target)
    else:
        with tempfile.TemporaryDirectory(prefix="pydeno-test262-") as folder:
            unpack(download(Path(folder)), target)
    commit = (target / "GIT-INFO").read_text(encoding="utf-8").split()[1]
    if commit != COMMIT:
        raise SystemExit(f"fetch_test262: this is test262 at {commit}, and not at {COMMIT}; {ADVICE}")


if __name__ == "__main__":
    main()
