"""Run JavaScript nobody has vetted, from Python, and get the result back.

`IsolatedRuntime` runs it in a worker process that has confined itself and proved it; the functions that you bind
are the script's only way out. `Runtime` runs code that you trust in this process.

>>> from pydeno import IsolatedRuntime
>>> with IsolatedRuntime() as rt:
...     rt.bind_function("price", lambda item: {"tea": 3, "cake": 5}[item])
...     rt.eval("['tea', 'cake'].map(item => price(item)).reduce((a, b) => a + b)")
8
"""

from ._agent_errors import (
    JournalError,
    MaxPauseExceeded,
    ReplayDivergence,
    ToolBudgetExceeded,
    ToolError,
    ToolFailed,
    ToolNotFound,
)
from ._agent_steps import Done, Failed, ToolCall
from ._async_isolated import AsyncIsolatedRuntime
from ._bootstrap import WEB_POLYFILLS
from ._classify import ErrorInfo, classify_error
from ._config import RuntimeConfig
from ._console import ConsoleLine
from ._default import bind_function, configure_default_runtime, eval, eval_async  # noqa: A004 - it is `pydeno.eval`
from ._errors import (
    CheckoutTimeout,
    ConversionError,
    CpuLimitExceeded,
    EngineUnavailable,
    EvaluationCancelled,
    Frame,
    GateDenied,
    GateUnavailable,
    HostCallBudgetExceeded,
    HostWaitExceeded,
    InflightLimitExceeded,
    InvalidInput,
    JavaScriptError,
    LimitsUnmeasurable,
    MemoryLimitExceeded,
    ProtocolViolation,
    PydenoError,
    RuntimeClosed,
    RuntimeTerminated,
    RuntimeTimeout,
    SandboxUnavailable,
    SandboxViolation,
    StreamLimitExceeded,
    ThreadLimitExceeded,
    WorkerCrashed,
)
from ._execution import ExecutionResult
from ._gates import GateContext, Verdict, all_of, any_of, static_gate
from ._in_process import Runtime
from ._isolated import IsolatedRuntime, SandboxDegradedWarning, SandboxLayer, set_zygote_rotation
from ._pool import AsyncSandboxPool, PoolStats, SandboxPool
from ._preflight import Finding, PreflightResult, SourcePolicy, check_source
from ._pydeno import JsFunction, JsStream, UndefinedType, __version__, undefined
from ._status import Layer, SandboxStatus, sandbox_status

__all__ = [
    "WEB_POLYFILLS",
    "AgentSandbox",
    "AsyncAgentSandbox",
    "AsyncIsolatedRuntime",
    "AsyncPooledSession",
    "AsyncSandboxPool",
    "AsyncSessionPool",
    "AsyncSessionStore",
    "CheckoutTimeout",
    "ConsoleLine",
    "ConversionError",
    "CpuLimitExceeded",
    "Done",
    "EngineUnavailable",
    "ErrorInfo",
    "EvaluationCancelled",
    "ExecutionResult",
    "Failed",
    "Finding",
    "Frame",
    "GateContext",
    "GateDenied",
    "GateUnavailable",
    "HostCallBudgetExceeded",
    "HostWaitExceeded",
    "InflightLimitExceeded",
    "InvalidInput",
    "IsolatedRuntime",
    "JavaScriptError",
    "JournalError",
    "JsFunction",
    "JsStream",
    "Layer",
    "LimitsUnmeasurable",
    "MaxPauseExceeded",
    "MemoryLimitExceeded",
    "ModuleSource",
    "PoolStats",
    "PooledSession",
    "PreflightResult",
    "ProtocolViolation",
    "PydenoError",
    "ReplayDivergence",
    "Runtime",
    "RuntimeClosed",
    "RuntimeConfig",
    "RuntimeTerminated",
    "RuntimeTimeout",
    "SQLiteSessionStore",
    "SQLiteVersionCounter",
    "SandboxDegradedWarning",
    "SandboxLayer",
    "SandboxPool",
    "SandboxStatus",
    "SandboxUnavailable",
    "SandboxViolation",
    "SchemaTool",
    "SessionPool",
    "SessionPoolStats",
    "SessionStore",
    "SourcePolicy",
    "StoredSession",
    "StreamLimitExceeded",
    "ThreadLimitExceeded",
    "ToolBudgetExceeded",
    "ToolCall",
    "ToolError",
    "ToolFailed",
    "ToolNotFound",
    "UndefinedType",
    "Verdict",
    "VersionConflict",
    "VersionCounter",
    "WasmModule",
    "WorkerCrashed",
    "__version__",
    "all_of",
    "any_of",
    "bind_function",
    "check_source",
    "classify_error",
    "configure_default_runtime",
    "eval",
    "eval_async",
    "load_session",
    "sandbox_status",
    "save_session",
    "set_zygote_rotation",
    "static_gate",
    "undefined",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._agent import AgentSandbox
    from ._async_agent import AsyncAgentSandbox
    from ._async_session_pool import AsyncPooledSession, AsyncSessionPool
    from ._modules import ModuleSource
    from ._session_pool import PooledSession, SessionPool
    from ._session_shelf import SessionPoolStats, VersionCounter
    from ._session_store import (
        AsyncSessionStore,
        SessionStore,
        StoredSession,
        VersionConflict,
        load_session,
        save_session,
    )
    from ._sqlite_store import SQLiteSessionStore, SQLiteVersionCounter
    from ._tools import SchemaTool
    from ._wasm import WasmModule

#: Where the names are that few programs need.
_LATER = {
    "AgentSandbox": "_agent",
    "AsyncAgentSandbox": "_async_agent",
    "AsyncPooledSession": "_async_session_pool",
    "AsyncSessionPool": "_async_session_pool",
    "AsyncSessionStore": "_session_store",
    "ModuleSource": "_modules",
    "PooledSession": "_session_pool",
    "SQLiteSessionStore": "_sqlite_store",
    "SQLiteVersionCounter": "_sqlite_store",
    "SchemaTool": "_tools",
    "SessionPool": "_session_pool",
    "SessionPoolStats": "_session_shelf",
    "SessionStore": "_session_store",
    "StoredSession": "_session_store",
    "VersionConflict": "_session_store",
    "VersionCounter": "_session_shelf",
    "WasmModule": "_wasm",
    "load_session": "_session_store",
    "save_session": "_session_store",
}


def __getattr__(name: str) -> object:
    """Import what few programs need when it is asked for."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'pydeno' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"pydeno.{module}"), name)
    return value


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
