"""Code mode for Pydantic AI: the model writes programs that call an agent's tools, instead of calling them one by one.

The program runs in a confined worker; the tools are its only way out. Install with `pip install pydeno[pydantic-ai]`.

>>> import asyncio
>>> from pydantic_ai import Agent
>>> from pydantic_ai.models.test import TestModel
>>> agent = Agent(TestModel(call_tools=[]), capabilities=[CodeMode()])
>>> @agent.tool_plain
... def price(item: str) -> int:
...     return {"tea": 3, "cake": 5}[item]
>>> asyncio.run(agent.run("hello")).output
'success (no tool calls)'
"""

# ruff: noqa: SLF001 - it drives sessions, whose part it is
from __future__ import annotations

import base64
import copy
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import (
    AgentRunError,
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    UserError,
)
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import (
    AgentDepsT,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
    ToolSelector,
    matches_tool_selector,
)
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema, to_jsonable_python

from pydeno._agent_loop import Caller
from pydeno._agent_session import PROGRAM
from pydeno._async_agent import AsyncAgentSandbox
from pydeno._config import RuntimeConfig, check_host_function
from pydeno._errors import InvalidInput, JavaScriptError, PydenoError
from pydeno._execution import MAX_OUTPUT, Output
from pydeno._pydeno import undefined
from pydeno._tools import RESERVED, SchemaTool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydeno._agent_steps import ReadyCall

__all__ = ["CodeMode", "CodeModeToolset"]

#: The errors of a program that another program can be written after. Others are the host's.
_PROGRAMS_OWN = frozenset(
    (
        "cpu_limit",
        "gate_denied",
        "host_call_budget",
        "inflight_limit",
        "invalid_input",
        "js_error",
        "max_pause",
        "memory_limit",
        "thread_limit",
        "timeout",
        "tool_budget",
        "tool_failed",
        "tool_not_found",
    )
)
#: How many programs that wait are remembered where the metadata does not come back.
_MOST_WAITING = 1000
_ARGUMENTS = core_schema.typed_dict_schema(
    {"code": core_schema.typed_dict_field(core_schema.str_schema(), required=True)}
)
_PARAMETERS = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The program."}},
    "required": ["code"],
    "additionalProperties": False,
}
_WORDS = """\
Run a TypeScript program in a sandbox and get its value. The program is the body of an async function; its value is \
that of its last expression, or what it returns. Tools are async functions: await them, several at a time with \
Promise.all where they do not depend on each other. Filter and combine what they return in the program and return only \
what is needed. Assign to globalThis what a later program is to find. There are no imports, network, files or timers."""


class Denied(Exception):
    """A person has not let a tool be called."""


class _Left(Exception):
    """A call that waits for something outside of the agent's run."""

    def __init__(self, call: ToolCallPart, reason: ApprovalRequired | CallDeferred) -> None:
        super().__init__()
        self.call = call
        self.reason = reason


class CodeMode(AbstractCapability[AgentDepsT]):
    """Gives the model the one tool `run_code`, whose programs call the agent's tools.

    Args:
        tools: Which tools programs call, as Pydantic AI's selectors say it. The model calls the others itself.
        **options: As for `CodeModeToolset`.
    """

    def __init__(self, *, tools: ToolSelector[AgentDepsT] = "all", **options: Any) -> None:
        """Check the options."""
        self._prototype: CodeModeToolset[AgentDepsT] = CodeModeToolset(_NOTHING, tools=tools, **options)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Wrap the agent's tools."""
        return self._prototype._around(toolset)


class CodeModeToolset(WrapperToolset[AgentDepsT]):
    """Gives the model one tool, `run_code`, in place of the tools of a toolset; its programs call them.

    The description of `run_code` has the tools as TypeScript declarations; where there are many, programs search
    them. What programs leave in `globalThis` is there for the next of the same agent run, as long as the tools are
    the same. `RunContext` and its `deps` reach the tools, whose calls pass the agent's hooks and count in its usage.
    An error of a program is a `ModelRetry` with what went wrong and where.

    A tool that needs an approval or is executed elsewhere stops the program there. `run_code` then is among the
    `approvals` of `DeferredToolRequests`, and `requests.metadata[id]["calls"]` has what the program waits for. To go
    on, approve it: `DeferredToolResults(approvals={id: True}, metadata=requests.metadata)` approves all of them. For
    single answers put `"results"` into the metadata of the call: `{call["id"]: True, ToolApproved(...),
    ToolDenied(...), a ToolReturn, or the value that the tool returns}`. No tool is called twice: the session was
    written down, signed, and is replayed.

    Args:
        wrapped: The toolset.
        tools: Which of its tools programs call, as Pydantic AI's selectors say it. The model calls the others itself.
        name: What the tool is called.
        max_retries: How often the model may correct itself after an error of a program.
        max_described: How many tools are declared. Where there are more, programs find them with `search_tools`. A
            tool whose name is no identifier is always found so.
        key: At least 16 secret bytes that sign a session that waits. Where another process goes on with it, the same
            there; else it is of this object's own.
        **options: As for `AsyncAgentSandbox`, whose limits are the program's.

    Raises:
        InvalidInput: An option is not what it must be.
    """

    def __init__(
        self,
        wrapped: AbstractToolset[AgentDepsT],
        *,
        tools: ToolSelector[AgentDepsT] = "all",
        name: str = "run_code",
        max_retries: int = 3,
        max_described: int = 30,
        key: bytes | None = None,
        **options: Any,
    ) -> None:
        """Check the options."""
        super().__init__(wrapped)
        for wrong in ("clock", "durable", "mode", "random_seed"):
            if wrong in options:
                raise TypeError(f"code mode takes no {wrong}")
        options.setdefault("config", RuntimeConfig(enable_console=True))
        options.setdefault("language", "ts")
        seen = (ModelRetry, ToolFailed, ValidationError, Denied)
        options["expose_host_errors"] = (*seen, *options.get("expose_host_errors", ()))
        AsyncAgentSandbox((), **options)
        self._selector = tools
        self._name = name
        self._max_retries = max_retries
        self._max_described = max_described
        self._key = secrets.token_bytes(32) if key is None else key
        self._options = options
        #: What waits for an answer, by the call of the model that began the program.
        self._waiting: dict[str, dict[str, Any]] = {}
        self._run = _Run()

    def _around(self, wrapped: AbstractToolset[AgentDepsT]) -> CodeModeToolset[AgentDepsT]:
        other = copy.copy(self)
        other.wrapped = wrapped
        return other

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """A toolset with a session of its own."""
        other = self._around(await self.wrapped.for_run(ctx))
        other._run = _Run()
        return other

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The same with what the wrapped toolset has for this step."""
        wrapped = await self.wrapped.for_run_step(ctx)
        return self if wrapped is self.wrapped else self._around(wrapped)

    def visit_and_replace(self, visitor: Any) -> AbstractToolset[AgentDepsT]:
        """As `WrapperToolset`."""
        return self._around(self.wrapped.visit_and_replace(visitor))

    async def __aexit__(self, *args: object) -> bool | None:
        """Close the session, and what is wrapped."""
        self._run.close()
        return await super().__aexit__(*args)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """`run_code`, and the tools that programs do not call."""
        inside: dict[str, ToolsetTool[AgentDepsT]] = {}
        outside: dict[str, ToolsetTool[AgentDepsT]] = {}
        for name, tool in (await self.wrapped.get_tools(ctx)).items():
            selected = await matches_tool_selector(self._selector, ctx, tool.tool_def)
            if not selected:
                outside[name] = tool
            elif ctx.is_tool_available(tool.tool_def):
                inside[name] = tool
        if self._name in outside:
            raise UserError(
                f"a tool that programs do not call is named {self._name!r}; give code mode another name"
            )
        stubs = self._run.stubs_of(self._shape(inside), lambda: self._sandbox(inside))
        tool_def = ToolDefinition(
            name=self._name,
            description=f"{_WORDS}\n\n```ts\n{stubs}```" if stubs else _WORDS,
            parameters_json_schema=_PARAMETERS,
            # Programs of one session run one after the other.
            sequential=True,
        )
        code = _RunCode(
            toolset=self,
            tool_def=tool_def,
            max_retries=self._max_retries,
            args_validator=SchemaValidator(_ARGUMENTS),
            inside=inside,
        )
        return {self._name: code, **outside}

    def _sandbox(self, inside: Mapping[str, ToolsetTool[AgentDepsT]], **loaded: Any) -> AsyncAgentSandbox:
        """A session, not started, with these tools."""
        declared: list[SchemaTool] = []
        catalog: list[SchemaTool] = []
        for tool in inside.values():
            is_named = _is_identifier(tool.tool_def.name) and len(inside) <= self._max_described
            (declared if is_named else catalog).append(_schema_tool(tool.tool_def))
        return AsyncAgentSandbox(declared, tools_catalog=catalog or None, **loaded, **self._options)

    def _shape(self, inside: Mapping[str, ToolsetTool[AgentDepsT]]) -> str:
        defs = [tool.tool_def for tool in inside.values()]
        return repr(
            [(each.name, each.description, each.parameters_json_schema, each.return_schema) for each in defs]
        )

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Run a program, or call a tool that programs do not call."""
        if not isinstance(tool, _RunCode):
            return await super().call_tool(name, tool_args, ctx, tool)
        if self._run.is_left:
            raise ToolFailed("not run: an earlier program waits for an approval; run this one after that")
        caller = _ToolCaller(self.wrapped, ctx, tool.inside)
        output = Output(MAX_OUTPUT)
        try:
            session = await (self._load(ctx, tool, caller) if ctx.tool_call_approved else self._session(tool))
            session._options.console.add_sink(output)
            try:
                if ctx.tool_call_approved:
                    ended = await session._go_on(caller)
                else:
                    ended = await session._run(tool_args["code"], PROGRAM, None, caller)
            finally:
                session._options.console.remove_sink(output)
        except PydenoError as error:
            raise _as_retry(error) from error
        if ended is None:
            raise self._leave(session, ctx, caller)
        ok, outcome = ended
        if not ok:
            raise _as_retry(outcome) from outcome
        value = _plain(outcome)
        said = output.stdout + output.stderr
        return {"value": value, "console": said} if said else value

    async def _session(self, tool: _RunCode[AgentDepsT], **loaded: Any) -> AsyncAgentSandbox:
        shape = self._shape(tool.inside)
        session = None if loaded else self._run.session_of(shape)
        if session is not None:
            return session
        session = self._sandbox(tool.inside, **loaded)
        self._run.adopt(session, shape)
        await session.start_worker()
        return session

    async def _load(
        self, ctx: RunContext[AgentDepsT], tool: _RunCode[AgentDepsT], caller: _ToolCaller
    ) -> AsyncAgentSandbox:
        call_id = ctx.tool_call_id or ""
        told = ctx.tool_call_metadata if isinstance(ctx.tool_call_metadata, dict) else {}
        waiting = {**self._waiting.get(call_id, {}), **told}
        if not isinstance(waiting.get("session"), str):
            raise UserError(
                "code mode does not know the program that was approved; pass the metadata of DeferredToolRequests with "
                "DeferredToolResults, and give code mode the same key in every process"
            )
        # Whoever has approved the program was told of these, and has approved them with it.
        told_of = {call["id"]: True for call in waiting.get("calls", ()) if call["kind"] == "approval"}
        caller.results = {**told_of, **waiting.get("results", {})}
        journal = base64.b64decode(waiting["session"])
        sealed = AsyncAgentSandbox._sealed(journal, self._key, call_id.encode(), {})
        session = await self._session(tool, _journal=sealed)
        self._waiting.pop(call_id, None)
        return session

    def _leave(
        self, session: AsyncAgentSandbox, ctx: RunContext[AgentDepsT], caller: _ToolCaller
    ) -> ApprovalRequired:
        """Write the session down with the calls that it waits for."""
        call_id = ctx.tool_call_id or ""
        journal = session.dump(self._key, call_id.encode())
        self._run.leave()
        calls: list[dict[str, Any]] = []
        for ready, left in caller.left:
            assert isinstance(left, _Left)  # noqa: S101 - nothing else is left
            calls.append(
                {
                    "id": str(ready.id),
                    "tool": left.call.tool_name,
                    "arguments": left.call.args,
                    "kind": "approval" if isinstance(left.reason, ApprovalRequired) else "external",
                    "metadata": left.reason.metadata,
                }
            )
        waiting = {"calls": calls, "session": base64.b64encode(journal).decode()}
        self._waiting[call_id] = waiting
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        return ApprovalRequired(dict(waiting))


def _as_retry(error: PydenoError) -> Exception:
    if error.kind not in _PROGRAMS_OWN:
        return error
    words = error.format() if isinstance(error, JavaScriptError) else f"{type(error).__name__}: {error}"
    return ModelRetry(f"the program failed: {words}")


@dataclass(kw_only=True)
class _RunCode(ToolsetTool[AgentDepsT]):
    """`run_code`, with the tools that its programs call."""

    inside: dict[str, ToolsetTool[AgentDepsT]]


class _Run:
    """The session of one run of an agent."""

    def __init__(self) -> None:
        self._session: AsyncAgentSandbox | None = None
        self._shape = ""
        self._described = ("", "")
        self.is_left = False

    def stubs_of(self, shape: str, sandbox: Callable[[], AsyncAgentSandbox]) -> str:
        """The declarations of tools, written once for as long as they are the same."""
        if self._described[0] != shape:
            self._described = (shape, sandbox().typescript_stubs())
        return self._described[1]

    def session_of(self, shape: str) -> AsyncAgentSandbox | None:
        """The session, if it has these tools and can be used."""
        session = self._session
        return session if session is not None and shape == self._shape and not session.is_closed() else None

    def adopt(self, session: AsyncAgentSandbox, shape: str) -> None:
        """Have another session in place of the one before."""
        self.close()
        self._session, self._shape = session, shape

    def leave(self) -> None:
        """End the session: it is written down."""
        self.close()
        self.is_left = True

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()
            self._session = None


class _ToolCaller(Caller):
    """Has Pydantic AI call tools, as if the model had called them."""

    leaves = (_Left,)
    escapes = (AgentRunError, UserError)

    def __init__(
        self, toolset: AbstractToolset[Any], ctx: RunContext[Any], tools: dict[str, ToolsetTool[Any]]
    ) -> None:
        super().__init__()
        #: What somebody has said of the calls that were left, by their number.
        self.results: dict[str, Any] = {}
        self._ctx = ctx
        # What approved the program approves none of its calls.
        plain = replace(ctx, tool_call_approved=False, tool_call_metadata=None)
        self._manager = ToolManager(
            toolset=toolset, root_capability=ctx.root_capability, ctx=plain, tools=tools
        )

    async def invoke(self, call: ReadyCall) -> Any:
        """Call a tool, or use what somebody has said of the call."""
        part = ToolCallPart(
            tool_name=call.tool.name,
            args=call.arguments,
            tool_call_id=f"{self._ctx.tool_call_id}:{call.id}",
        )
        number = str(call.id)
        said = self.results.get(number)
        approved = said is True or isinstance(said, ToolApproved)
        if said is False or isinstance(said, ToolDenied):
            raise Denied(said.message if isinstance(said, ToolDenied) else ToolDenied().message)
        if isinstance(said, Exception):
            raise said
        if number in self.results and not approved:
            return _plain(said)
        if isinstance(said, ToolApproved) and said.override_args is not None:
            part = replace(part, args=said.override_args)
        try:
            value = await self._manager.handle_call(part, approved=approved, wrap_validation_errors=False)
        except (ApprovalRequired, CallDeferred) as reason:
            raise _Left(part, reason) from reason
        if isinstance(value, ToolDenied):
            raise Denied(value.message)
        return _plain(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it, which is what models and the schemas of tools know."""
    if isinstance(value, ToolReturn):
        value = value.return_value
    return to_jsonable_python(
        value, bytes_mode="base64", fallback=lambda other: None if other is undefined else str(other)
    )


def _is_identifier(name: str) -> bool:
    try:
        check_host_function(name, _plain)
    except InvalidInput:
        return False
    return name not in RESERVED


async def _nobody(arguments: dict[str, Any]) -> Any:
    raise NotImplementedError("code mode calls tools itself")


def _schema_tool(tool: ToolDefinition) -> SchemaTool:
    return SchemaTool(
        tool.name,
        tool.description or "",
        tool.parameters_json_schema,
        _nobody,
        output_schema=tool.return_schema,
    )


class _Nothing(AbstractToolset[Any]):
    """No tools, until there are some to wrap."""

    @property
    def id(self) -> None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002
        return {}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        raise NotImplementedError


_NOTHING = _Nothing()
