"""Code mode of Pydantic AI: programs call an agent's tools, through the real package and without a network."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, ToolReturn
from pydantic_ai.exceptions import (
    CallDeferred,
    ModelRetry,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from pydantic_ai.usage import UsageLimits

import pydeno
from pydeno.integrations.pydantic_ai import CodeMode, CodeModeToolset

KEY = b"k" * 32


@dataclass
class Deps:
    """What tools need and programs do not see."""

    user: str


class Price(BaseModel):
    """What an item costs somebody."""

    cost: int
    buyer: str


class Model:
    """A model that writes these programs, one after the other, and then says that it is done."""

    def __init__(self, *programs: str) -> None:
        self.programs = list(programs)
        self.told: list[Any] = []
        self.tools: list[ToolDefinition] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools = info.function_tools
        parts = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        self.told.extend(part.content for part in parts)
        if self.programs:
            return ModelResponse(parts=[ToolCallPart("run_code", {"code": self.programs.pop(0)})])
        return ModelResponse(parts=[TextPart("done")])


def agent_of(model: Model, **options: Any) -> Agent[Any, Any]:
    capability: CodeMode[Any] = CodeMode(key=KEY, **options.pop("mode", {}))
    return Agent(
        FunctionModel(model),
        capabilities=[capability],
        output_type=[str, DeferredToolRequests],
        **options,
    )


def run(agent: Agent[Any, Any], *prompt: str, **options: Any) -> Any:
    return asyncio.run(agent.run(*prompt, **options))


def one() -> int:
    """A tool that gives 1."""
    return 1


def test_importing_pydeno_imports_no_framework() -> None:
    script = (
        "import sys, pydeno, pydeno.integrations; print([name for name in sys.modules if 'pydantic' in name])"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_a_program_calls_tools_that_have_the_agents_deps() -> None:
    model = Model(
        "const [a, b] = await Promise.all([price({item: 'tea'}), price({item: 'cake'})]); a.cost + b.cost"
    )
    agent = agent_of(model, deps_type=Deps)

    buyers = []

    @agent.tool
    async def price(ctx: RunContext[Deps], item: str) -> Price:
        """What an item costs."""
        buyers.append((ctx.deps.user, ctx.tool_name))
        return Price(cost=len(item), buyer=ctx.deps.user)

    result = run(agent, "go", deps=Deps("ada"))
    assert result.output == "done"
    assert model.told == [7]
    assert buyers == [("ada", "price")] * 2
    assert result.usage.tool_calls == 3, "the program and its two calls"


def test_the_model_sees_one_tool_with_the_declarations_of_all() -> None:
    model = Model()
    agent = agent_of(model)

    @agent.tool_plain
    def rate(currency: str, day: int | None = None) -> float:
        """The rate of a currency."""
        return 1.5

    run(agent, "go")
    (tool,) = model.tools
    assert tool.name == "run_code"
    assert tool.description is not None
    assert (
        "declare function rate(args: { currency: string; day?: number | null }): Promise<number>;"
        in tool.description
    )
    assert "The rate of a currency." in tool.description
    assert tool.parameters_json_schema["required"] == ["code"]


def test_calls_of_one_program_overlap() -> None:
    model = Model("await Promise.all([meet(), meet()])")
    agent = agent_of(model)
    both = []

    @agent.tool_plain
    async def meet() -> int:
        both.append(asyncio.Event())
        if len(both) == 2:
            both[0].set()
            both[1].set()
        await both[-1].wait()
        return len(both)

    run(agent, "go")
    assert model.told == [[2, 2]]


def test_globals_stay_for_the_next_program_of_a_run_and_no_longer() -> None:
    model = Model("globalThis.n = 1", "++n")
    agent = agent_of(model)
    run(agent, "go")
    assert model.told == [1, 2]
    model.programs = ["typeof n"]
    run(agent, "go")
    assert model.told[-1] == "undefined"


def test_an_error_of_a_program_is_a_retry_with_the_place() -> None:
    model = Model("const a = 1;\nconst b: number = a.c.d;", "1 + 1")
    run(agent_of(model), "go")
    assert "TypeError" in model.told[0]
    assert "program.js:2:" in model.told[0]
    assert model.told[1] == 2
    with pytest.raises(UnexpectedModelBehavior, match="max retries"):
        run(agent_of(Model(*["throw 1"] * 9), mode={"max_retries": 2}), "go")


def test_a_program_without_an_end_is_a_retry_too() -> None:
    model = Model("while (true) {}", "1 + 1")
    run(agent_of(model, mode={"timeout": 0.2}), "go")
    assert "RuntimeTimeout" in model.told[0]
    assert model.told[1] == 2


def test_what_tools_refuse_reaches_the_program_in_words() -> None:
    model = Model(
        "const told = [];"
        "for (const n of ['x', 1, 2]) { try { await check({n}) } catch (e) { told.push(e.message) } }"
        "told"
    )
    agent = agent_of(model)

    @agent.tool_plain
    def check(n: int) -> None:
        if n == 1:
            raise ModelRetry("one is too few")
        raise ValueError("a secret of the host")

    run(agent, "go")
    wrong, retry, hidden = model.told[0]
    assert "'x' is not of type 'integer'" in wrong
    assert "one is too few" in retry
    assert "secret" not in hidden


def test_the_agents_limits_end_the_run_whatever_the_program_catches() -> None:
    model = Model("for (;;) { try { await act() } catch { } }")
    agent = agent_of(model)
    calls = []

    @agent.tool_plain
    def act() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise UsageLimitExceeded("enough")

    with pytest.raises(UsageLimitExceeded, match="enough"):
        run(agent, "go", usage_limits=UsageLimits(tool_calls_limit=50))
    assert len(calls) == 3


def test_many_tools_are_searched_and_strange_names_are_called() -> None:
    toolset = FunctionToolset[Any]()
    for at in range(40):
        toolset.add_function(lambda at=at: at, name=f"tool_{at}", description=f"Gives the number {at}.")
    model = Model("const [found] = await search_tools('number 17', 1); await call_tool(found.name, {})")
    run(Agent(FunctionModel(model), toolsets=[CodeModeToolset(toolset)]), "go")
    (tool,) = model.tools
    assert "tool_17" not in (tool.description or "")
    assert "search_tools" in (tool.description or "")
    assert model.told == [17]

    strange = FunctionToolset[Any]()
    strange.add_function(lambda: "yes", name="is-it-so")
    strange.add_function(lambda: "no", name="plain")
    model = Model("await call_tool('is-it-so', {}) + await plain()")
    run(Agent(FunctionModel(model), toolsets=[CodeModeToolset(strange)]), "go")
    assert model.told == ["yesno"]


def test_tools_that_are_not_selected_stay_the_models_own() -> None:
    model = Model("typeof direct + typeof inside")
    agent = agent_of(model, mode={"tools": ["inside"]})
    agent.tool_plain(name="direct")(one)
    agent.tool_plain(name="inside")(one)
    run(agent, "go")
    assert {tool.name for tool in model.tools} == {"run_code", "direct"}
    assert model.told == ["undefinedfunction"]
    taken = agent_of(Model(), mode={"tools": []})
    taken.tool_plain(name="run_code")(one)
    with pytest.raises(UserError, match="another name"):
        run(taken, "go")


def test_values_are_what_json_has_and_the_console_comes_along() -> None:
    model = Model(
        "[undefined, new Map([['a', 1n]]), new Uint8Array([1, 2]), new Date(0), await rich()]",
        "console.log('hi'); 7",
    )
    agent = agent_of(model)

    @agent.tool_plain
    def rich() -> ToolReturn[Any]:
        return ToolReturn({"when": b"ab"}, metadata="not for the program")

    run(agent, "go")
    assert model.told[0] == [None, {"a": 1}, "AQI=", "1970-01-01T00:00:00Z", {"when": "YWI="}]
    assert model.told[1] == {"value": 7, "console": "hi\n"}


PROGRAM = """
const paid = [];
for (const amount of [1, 2]) paid.push(await pay({amount}));
globalThis.paid = paid;
({paid, noted: await note()})
"""


def paying(model: Model, calls: list[Any], **mode: Any) -> Agent[Any, Any]:
    agent = agent_of(model, mode=mode)

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        calls.append(amount)
        return f"paid {amount}"

    @agent.tool_plain
    def note() -> str:
        calls.append("note")
        return "noted"

    return agent


def deferred(result: Any) -> tuple[DeferredToolRequests, str]:
    requests = result.output
    assert isinstance(requests, DeferredToolRequests)
    (call,) = requests.approvals
    assert call.tool_name == "run_code"
    return requests, call.tool_call_id


def test_a_program_waits_for_approvals_and_goes_on_in_the_middle() -> None:
    calls: list[Any] = []
    model = Model(PROGRAM, "paid.length")
    agent = paying(model, calls)
    result = run(agent, "go")
    requests, call_id = deferred(result)
    (waiting,) = requests.metadata[call_id]["calls"]
    assert (waiting["tool"], waiting["arguments"], waiting["kind"]) == ("pay", {"amount": 1}, "approval")
    assert calls == []
    result = run(
        agent,
        message_history=result.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call_id: True}),
    )
    requests, call_id = deferred(result)
    assert requests.metadata[call_id]["calls"][0]["arguments"] == {"amount": 2}
    assert calls == [1]
    # Another process, which has the key and the metadata.
    agent = paying(model, calls)
    result = run(
        agent,
        message_history=result.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call_id: True}, metadata=requests.metadata),
    )
    assert result.output == "done"
    assert calls == [1, 2, "note"]
    assert model.told == [{"paid": ["paid 1", "paid 2"], "noted": "noted"}, 2]


def test_calls_that_wait_together_are_answered_one_by_one() -> None:
    calls: list[Any] = []
    model = Model(
        "(await Promise.allSettled([1, 2, 3].map(amount => pay({amount})))).map(r => r.value ?? r.reason.message)"
    )
    agent = paying(model, calls)
    result = run(agent, "go")
    requests, call_id = deferred(result)
    first, second, third = requests.metadata[call_id]["calls"]
    results = {first["id"]: ToolApproved(override_args={"amount": 9}), second["id"]: ToolDenied("too much")}
    metadata = {call_id: {**requests.metadata[call_id], "results": {**results, third["id"]: "by hand"}}}
    run(
        agent,
        message_history=result.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call_id: True}, metadata=metadata),
    )
    assert calls == [9]
    assert model.told == [["paid 9", "Denied: too much", "by hand"]]


def test_a_program_that_is_denied_calls_nothing() -> None:
    calls: list[Any] = []
    model = Model(PROGRAM)
    agent = paying(model, calls)
    result = run(agent, "go")
    _, call_id = deferred(result)
    run(
        agent,
        message_history=result.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call_id: ToolDenied("no")}),
    )
    assert calls == []
    assert model.told == ["no"]


def test_external_tools_are_answered_from_outside() -> None:
    model = Model("await elsewhere({q: 1}) + await later()")
    later: FunctionToolset[Any] = FunctionToolset()

    @later.tool_plain(name="later")
    def _later() -> str:
        raise CallDeferred(metadata={"ticket": 5})

    schema = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]}
    definition = ToolDefinition(name="elsewhere", parameters_json_schema=schema)
    agent = agent_of(model, toolsets=[ExternalToolset([definition]), later])
    result = run(agent, "go")
    for expected, answer in (("external", "a"), ("external", "b")):
        requests, call_id = deferred(result)
        (waiting,) = requests.metadata[call_id]["calls"]
        assert waiting["kind"] == expected
        metadata = {call_id: {"results": {waiting["id"]: answer}}}
        result = run(
            agent,
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call_id: True}, metadata=metadata),
        )
    assert waiting["metadata"] == {"ticket": 5}
    assert model.told == ["ab"]


def test_a_session_that_was_changed_or_is_unknown_is_not_gone_on_with() -> None:
    calls: list[Any] = []
    model = Model(PROGRAM)
    result = run(paying(model, calls), "go")
    requests, call_id = deferred(result)

    def go_on(agent: Agent[Any, Any], metadata: dict[str, Any]) -> None:
        run(
            agent,
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(
                approvals={call_id: True}, metadata={call_id: metadata}
            ),
        )

    known = requests.metadata[call_id]
    with pytest.raises(UserError, match="does not know"):
        go_on(paying(model, calls), {})
    with pytest.raises(pydeno.JournalError):
        go_on(paying(model, calls), {**known, "session": "A" * 80})
    other = agent_of(model, mode={})
    other.tool_plain(name="something_else")(one)
    with pytest.raises(pydeno.JournalError):
        go_on(other, known)
    assert calls == []


def test_a_second_program_is_not_run_while_the_first_waits() -> None:
    calls: list[Any] = []
    model = Model()
    turns: list[Callable[[], ModelResponse]] = [
        lambda: ModelResponse(
            parts=[
                ToolCallPart("run_code", {"code": "await pay({amount: 1})"}, tool_call_id="one"),
                ToolCallPart("run_code", {"code": "await note()"}, tool_call_id="two"),
            ]
        )
    ]

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return turns.pop()() if turns else model(messages, info)

    agent = paying(model, calls)
    with agent.override(model=FunctionModel(respond)):
        result = run(agent, "go")
        _, call_id = deferred(result)
        assert call_id == "one"
        assert calls == []
        result = run(
            agent,
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call_id: True}),
        )
    assert result.output == "done"
    assert calls == [1]


def test_an_approval_of_the_program_approves_nothing_that_nobody_was_told_of() -> None:
    calls: list[Any] = []
    model = Model("await pay({amount: 1}); await pay({amount: 1000})")
    agent = paying(model, calls)
    result = run(agent, "go")
    _, call_id = deferred(result)
    result = run(
        agent,
        message_history=result.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call_id: True}),
    )
    deferred(result)
    assert calls == [1]


def test_the_packages_own_test_model_can_use_it() -> None:
    agent = Agent(TestModel(custom_output_text="done"), toolsets=[CodeModeToolset(FunctionToolset[Any]())])
    with pytest.raises(UnexpectedModelBehavior):
        # It writes "a", which is no variable, as often as it may.
        run(agent, "go")


def test_options_that_code_mode_decides_itself_are_refused() -> None:
    with pytest.raises(TypeError, match="durable"):
        CodeModeToolset(FunctionToolset[Any](), durable=False)
    with pytest.raises(pydeno.InvalidInput):
        CodeModeToolset(FunctionToolset[Any](), max_tool_calls=0)
