"""Puts the engine's own shell, `jsc`, and the library that it is linked with into a folder.

    scripts/fetch_jsc.py .venv/jsc

The tests of modules of test262 are compared with it, since the C interface of the library loads no modules. apt
downloads and verifies the packages, at the version of the library that this machine has for pydeno; nothing is
installed. Where that cannot be had, the comparison uses a record of what the shell said (tests/test262/).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALLED = "libjavascriptcoregtk-4.1-0"
SHELL, LIBRARY = "libjavascriptcoregtk-4.0-bin", "libjavascriptcoregtk-4.0-18"


def run(*command: str, folder: Path | None = None) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def fetch(target: Path) -> None:
    """Download both packages and take the two files out of them."""
    version = run("dpkg-query", "--show", "--showformat=${Version}", INSTALLED)
    with tempfile.TemporaryDirectory(prefix="pydeno-jsc-") as name:
        folder = Path(name)
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        own = ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder / 'cache'}"]
        apt = ["apt-get", "-qq", *own, "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]
        run(*apt, "update")
        run(*apt, "download", f"{SHELL}={version}", f"{LIBRARY}={version}", folder=folder)
        for package in folder.glob("*.deb"):
            run("dpkg-deb", "--extract", str(package), str(folder / "root"))
        target.mkdir(parents=True)
        shutil.copy(folder / "root" / "usr" / "bin" / "jsc", target)
        (library,) = (folder / "root" / "usr" / "lib").glob("*/libjavascriptcoregtk-4.0.so.18")
        shutil.copy(library, target)


def main() -> None:
    """Do what the command line asks for."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    try:
        fetch(target)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        shutil.rmtree(target, ignore_errors=True)
        reason = getattr(error, "stderr", None) or error
        print(f"fetch_jsc: the engine's shell cannot be had here: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
