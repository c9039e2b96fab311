"""An agent's session that outlives its process: `python examples/agent_session.py`.

A model (here a script: no network) writes programs. The first searches the catalog and calls two tools at a time; the
second asks for an approval, which nobody gives at once. The session is dumped while it waits and its process is killed.
Another process loads it, a person approves, and the program goes on where it was.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydeno import AgentSandbox, Done, Failed, SchemaTool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = b"a key of 32 bytes, kept secret!!"
USER = b"user 7"
STOCK = {"tea": 3, "cake": 0, "milk": 12}


def stock(item: str) -> int:
    """How many of an item there are."""
    print(f"  tool: stock({item!r})")
    return STOCK[item]


def order(item: str, count: int) -> str:
    """Order an item from the supplier.

    Args:
        item: What to order.
        count: How many.
    """
    print(f"  tool: order({item!r}, {count})")
    return f"{count} x {item}"


APPROVE = SchemaTool(
    "approve",
    "Ask a person for an approval.",
    {
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    },
)
OPTIONS: dict[str, Any] = {
    "tools_catalog": [stock, order],
    "max_tool_calls": 20,
    "tool_budgets": {"order": 1},
}


def model() -> Iterator[str]:
    """The programs that a model would write, one for each turn of the conversation."""
    yield """```js
        const [found] = await search_tools("how many are there", 1);
        globalThis.counts = {};
        await Promise.all(["tea", "cake"].map(async item => {
          counts[item] = await call_tool(found.name, { item });
        }));
        counts
        ```"""
    yield """
        const missing = Object.keys(counts).filter(item => counts[item] === 0);
        const answer = await approve({ what: `order ${missing.join()}` });
        if (!answer.approved) return "nothing ordered";
        const made = await Promise.all(missing.map(item => call_tool("order", { item, count: 10 })));
        return `ordered ${made.join()}, approved by ${answer.by}`;
        """


def step_through(session: AgentSandbox, step: ToolCall | Done | Failed) -> ToolCall | Done | Failed:
    """Call the tools that need no approval."""
    tools: dict[str, Callable[..., Any]] = {"stock": stock, "order": order}
    while isinstance(step, ToolCall) and step.name in tools:
        step = session.resume(tools[step.name](**step.arguments))
    return step


def first_process(journal: Path) -> None:
    """Run the model's programs until one waits for a person, then die."""
    session = AgentSandbox([APPROVE], **OPTIONS)
    print("tools for the prompt:", session.describe_tools(), sep="\n")
    for program in model():
        step = step_through(session, session.start(program))
        match step:
            case Done(value):
                print("program ended:", value)
            case ToolCall(name, arguments):
                print(f"waiting: {name}({arguments})")
                journal.write_bytes(session.dump(KEY, USER))
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            case Failed(error):
                raise error


def second_process(journal: Path) -> None:
    """Load the session and give the answer."""
    with AgentSandbox.load(
        journal.read_bytes(), KEY, tools=[APPROVE], associated_data=USER, **OPTIONS
    ) as session:
        print("loaded, still waiting:", session.paused)
        step = step_through(session, session.resume({"approved": True, "by": "Ada"}))
        if isinstance(step, Failed):
            raise step.error
        if isinstance(step, Done):
            print("program ended:", step.value)


def main() -> None:
    """Run both processes."""
    if len(sys.argv) == 3:
        {"first": first_process, "second": second_process}[sys.argv[1]](Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "session.journal"
        for part in ("first", "second"):
            finished = subprocess.run([sys.executable, __file__, part, str(journal)], check=False)
            print(f"the {part} process ended with {finished.returncode}", flush=True)
        sys.exit(finished.returncode)


if __name__ == "__main__":
    main()
