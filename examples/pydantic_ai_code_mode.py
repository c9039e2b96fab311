"""A Pydantic AI agent in code mode: `python examples/pydantic_ai_code_mode.py`.

The model (here a function: no network) writes one program instead of a dozen calls of tools. It looks up what is short,
asks what it costs, and orders, which a person has to approve. The program stops there and goes on with the approval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from pydeno.integrations.pydantic_ai import CodeMode

PROGRAM = """
type Line = { item: string; missing: number; cost: number };
const items = await items_in({ shelf: "kitchen" });
const lines: Line[] = await Promise.all(items.map(async item => {
  const [have, cost] = await Promise.all([stock({ item }), price({ item })]);
  return { item, missing: Math.max(0, 10 - have), cost };
}));
const short = lines.filter(line => line.missing > 0);
const total = short.reduce((sum, line) => sum + line.missing * line.cost, 0);
const receipt = await order({ lines: short.map(({ item, missing }) => ({ item, count: missing })), total });
({ total, receipt })
"""


@dataclass
class Shop:
    """What the tools need and the program never sees."""

    user: str
    stock: dict[str, int]
    prices: dict[str, int]


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Write the program, and then say what came of it."""
    told = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if told:
        return ModelResponse(parts=[TextPart(f"The program returned {told[0].content}.")])
    print("the model has these tools:", [tool.name for tool in info.function_tools])
    return ModelResponse(parts=[ToolCallPart("run_code", {"code": PROGRAM})])


agent: Agent[Shop, str | DeferredToolRequests] = Agent(
    FunctionModel(model),
    deps_type=Shop,
    output_type=[str, DeferredToolRequests],
    capabilities=[CodeMode(timeout=5, max_tool_calls=100)],
)


@agent.tool
def items_in(ctx: RunContext[Shop], shelf: str) -> list[str]:
    """What should be on a shelf."""
    print(f"  tool: items_in({shelf!r})")
    return list(ctx.deps.stock)


@agent.tool
def stock(ctx: RunContext[Shop], item: str) -> int:
    """How many of an item there are."""
    return ctx.deps.stock[item]


@agent.tool
def price(ctx: RunContext[Shop], item: str) -> int:
    """What one of an item costs, in cents."""
    return ctx.deps.prices[item]


@agent.tool(requires_approval=True)
def order(ctx: RunContext[Shop], lines: list[dict[str, Any]], total: int) -> str:
    """Order items."""
    print(f"  tool: order({lines}, {total}) for {ctx.deps.user}")
    return f"order of {len(lines)} lines"


def main() -> None:
    """Ask, approve, and go on."""
    shop = Shop("ada", {"tea": 3, "cake": 12, "milk": 0}, {"tea": 250, "cake": 300, "milk": 120})
    result = agent.run_sync("Fill up the kitchen.", deps=shop)
    requests = result.output
    if not isinstance(requests, DeferredToolRequests):
        raise TypeError("the order was not held back")
    (call,) = requests.approvals
    for waiting in requests.metadata[call.tool_call_id]["calls"]:
        print(f"to approve: {waiting['tool']}({waiting['arguments']})")
    approved = DeferredToolResults(approvals={call.tool_call_id: True}, metadata=requests.metadata)
    result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=approved, deps=shop)
    print(result.output)


if __name__ == "__main__":
    main()
