"""What an adapter tells about its package, and the words of the work in its language."""

from __future__ import annotations

import json
import sys
import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MIB = 1 << 20

#: The work that is the same for every package, as JavaScript.
JAVASCRIPT = {
    "objects": "var made = Array.from({length: 50000}, (_, i) => ({id: i, name: 'item ' + i, v: i / 7})); 0",
    "bytes": "var made = new Uint8Array(1048576).fill(7); 0",
    "text": "var made = 'x'.repeat(1048576); 0",
    "tool": "tool()",
    "loop": "for (let i = 0; i < 1000; i += 1) tool(); 0",
}


class Unsupported(Exception):
    """The package has nothing of the kind; the text says what is missing."""


class Sandbox(ABC):
    """One isolate, session or context of the package."""

    @abstractmethod
    def eval(self, code: str) -> Any:
        """The value of the last expression, as Python."""

    @abstractmethod
    def close(self) -> None:
        """Gives everything back."""

    def tools(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Binds a function that returns 1; gives what calls it once and what calls it 1,000 times."""
        self.bind("tool", lambda: 1)
        return lambda: self.eval(JAVASCRIPT["tool"]), lambda: self.eval(JAVASCRIPT["loop"])

    def bind(self, name: str, function: Callable[[], object]) -> None:
        """Makes a Python function a global of the guest."""
        raise Unsupported(f"cannot give the guest {name} = {function}")

    def make(self, what: str) -> None:
        """Makes what `take` is going to fetch."""
        self.eval(JAVASCRIPT[what])

    def take(self) -> Any:
        """Fetches what was made."""
        return self.eval("made")

    def giver(self, value: object) -> Callable[[], object]:
        """Gives what hands the value to the guest, which answers with its length."""
        self.bind("given", lambda: value)
        return lambda: self.eval("given().length")


class Pool(ABC):
    """Sandboxes that are ready before anybody asks."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when a checkout will find one ready."""

    @abstractmethod
    def checkout(self) -> Sandbox:
        """Takes one."""

    @abstractmethod
    def close(self) -> None:
        """Gives everything back."""


class Peer(ABC):
    """A package, with the options of one contender."""

    @abstractmethod
    def open(self) -> Sandbox:
        """A new sandbox."""

    def pool(self) -> Pool:
        """A pool that keeps four ready."""
        raise Unsupported("has no pool")

    def check_source(self, code: str) -> object:
        """Looks through a script without running it."""
        raise Unsupported(f"cannot check {len(code)} characters")

    def sandbox_status(self) -> object:
        """Finds out what this machine can apply."""
        raise Unsupported("has no such report")


def main(variants: Mapping[str, type[Peer]]) -> None:
    """Runs `VARIANT MEASURE`, with what the measure needs as JSON on standard input, and prints the outcome."""
    from . import work  # noqa: PLC0415 - what it needs is there only in the environment of a peer

    variant, measure = sys.argv[1:3]
    needed = json.loads(sys.stdin.read() or "{}")
    samples: dict[str, list[float]] = {}
    outcome: dict[str, Any] = {"samples": samples}
    try:
        # What a peer cannot do does not undo what it has done before.
        samples.update(work.MEASURES[measure](variants[variant](), **needed))
    except Unsupported as reason:
        outcome["unsupported"] = str(reason)
    except Exception as error:  # noqa: BLE001 - whatever a package raises is told on the page
        traceback.print_exc()
        outcome["failed"] = f"{type(error).__name__}: {error}"[:200]
    # Some packages do not let the interpreter end while something of theirs is alive.
    print(json.dumps(outcome), flush=True)
