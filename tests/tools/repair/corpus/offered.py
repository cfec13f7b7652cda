"""The tools that the corpus calls: our own, and an application's, with and without effects."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from tests.parts import WORKSPACE_TOOLS

from daruma.tools.calls import Surroundings, Tool
from daruma.tools.calls._tool import Effect


class Place(BaseModel):
    """Where something happens."""

    city: str
    room: str | None = None


class CreateEvent(BaseModel):
    """Put an event in the calendar."""

    title: str
    date: str
    attendees: list[str]
    duration_minutes: int = 30
    priority: Literal["low", "normal", "high"] = "normal"
    location: Place | None = None
    notes: str | None = None


class Condition(BaseModel):
    """One condition of a query."""

    field: str
    op: Literal["eq", "lt", "gt"]
    value: float


class QueryOrders(BaseModel):
    """Look up orders."""

    customer_id: str
    status: Literal["open", "paid", "all"] = "all"
    limit: int = 20
    min_total: float | None = None
    conditions: list[Condition] = []


class SendMessage(BaseModel):
    """Send a message."""

    model_config = ConfigDict(extra="forbid")

    to: list[str]
    subject: str
    body: str
    urgent: bool = False
    headers: dict[str, str] = {}


class GetWeather(BaseModel):
    """Tell the weather."""

    model_config = ConfigDict(extra="forbid")

    city: str
    days: int


async def never(_: Mapping[str, Any], __: Surroundings) -> str:
    """Fail: nothing of the corpus is run."""
    raise AssertionError("a tool of the corpus was run")


def application_tool(name: str, args: type[BaseModel], effect: Effect) -> Tool:
    """Return a tool with the schema that Pydantic writes for its arguments."""
    return Tool(name, "", args.model_json_schema(), never, effect=effect)


TOOLS = {
    tool.name: tool
    for tool in (
        *WORKSPACE_TOOLS,
        application_tool("create_event", CreateEvent, "external"),
        application_tool("query_orders", QueryOrders, "none"),
        application_tool("send_message", SendMessage, "external"),
        application_tool("get_weather", GetWeather, "none"),
    )
}
