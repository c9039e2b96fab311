"""Scripts that nobody vetted make files that a person can open: a chart, a 3D model, slides, a document.

    make gallery
    python examples/gallery.py [--out FOLDER]

Each script of `examples/gallery/` and its libraries from npm (d3, three, pptxgenjs, pdf-lib) are one text, which runs
in a runtime of its own. It gets the planets and gives a value back; it reaches no disk. What came back is looked
at before it is written. Exit status 1 when a script made something else than it should.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from chart_store import check_picture
from pydeno import WEB_POLYFILLS, IsolatedRuntime, RuntimeConfig

BUNDLES = Path(__file__).parent.parent / ".venv" / "gallery" / "bundles"
MAX_BYTES = 10_000_000

#: Diameter in km, distance from the Sun in astronomical units, year in days, day (noon to noon) in hours.
PLANETS: list[dict[str, object]] = [
    dict(zip(("name", "diameter", "distance", "period", "day", "colour"), row, strict=True))
    for row in (
        ("Mercury", 4_879, 0.387, 88.0, 4_222.6, "#9c8f86"),
        ("Venus", 12_104, 0.723, 224.7, 2_802.0, "#e3b778"),
        ("Earth", 12_756, 1.0, 365.2, 24.0, "#3d7fc4"),
        ("Mars", 6_792, 1.524, 687.0, 24.7, "#c1502e"),
        ("Jupiter", 142_984, 5.203, 4_331.0, 9.9, "#c99b6d"),
        ("Saturn", 120_536, 9.537, 10_747.0, 10.7, "#dcc690"),
        ("Uranus", 51_118, 19.191, 30_589.0, 17.2, "#8fd3d8"),
        ("Neptune", 49_528, 30.069, 59_800.0, 16.1, "#3f66d0"),
    )
]


class NotWhatWasAskedFor(ValueError):
    """A script gave something else back; the message says what."""


@dataclass(frozen=True)
class Work:
    """One script, the file it makes, and how such a file begins."""

    script: str
    file: str
    begins: bytes

    def make(self) -> bytes:
        """Runs the script in a runtime of its own, and looks at what it gives back.

        Raises:
            NotWhatWasAskedFor: It is no such file.
            FileNotFoundError: `make gallery` has not put scripts and libraries together.
            PydenoError: The script failed or passed a limit.
        """
        source = (BUNDLES / f"{self.script}.js").read_text(encoding="utf-8")
        config = RuntimeConfig(bootstrap=WEB_POLYFILLS)
        with IsolatedRuntime(config, max_memory=512 << 20) as runtime:
            runtime.bind_function("planets", lambda: PLANETS)
            runtime.eval(f"{source}\n;0", name=f"{self.script}.js")
            return self.checked(runtime.eval("work.make(planets())"))

    def checked(self, made: object) -> bytes:
        """The bytes of the file.

        Raises:
            NotWhatWasAskedFor: `made` is no such file.
        """
        if isinstance(made, str):
            if self.file.endswith(".svg"):
                check_picture(made)
            made = made.encode("utf-8", "replace")
        if not isinstance(made, bytes):
            raise NotWhatWasAskedFor(f"{self.script}.js gave {type(made).__name__} instead of a file")
        if not made.startswith(self.begins) or len(made) > MAX_BYTES:
            raise NotWhatWasAskedFor(f"{self.script}.js gave {len(made)} bytes that are no {self.file}")
        return made


GALLERY = [
    Work("chart", "planets.svg", b"<svg "),
    Work("model", "planets.glb", b"glTF\x02\x00\x00\x00"),
    Work("slides", "planets.pptx", b"PK\x03\x04"),
    Work("document", "planets.pdf", b"%PDF-1."),
]


def main() -> int:
    """Makes all of them."""
    parser = argparse.ArgumentParser(description="Untrusted scripts make files.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the files")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for work in GALLERY:
        started = time.perf_counter()
        try:
            made = work.make()
        except ValueError as error:
            print(f"{work.script}: {error}")
            return 1
        (out / work.file).write_bytes(made)
        print(f"{out / work.file}: {len(made):,} bytes in {time.perf_counter() - started:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
