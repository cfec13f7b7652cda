"""Many who each start a run over HTTP and listen to it, and the one person who reviews them all."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 90.0
"""Seconds without a word, and then a stream counts as wedged; the server says more often that it is
there."""


@dataclass(frozen=True)
class Call:
    """A request that is answered with a stream."""

    method: str
    path: str
    json: dict[str, str] | None = None


@dataclass
class Seen:
    """The id of the last event that somebody has had."""

    id: int = 0


@dataclass
class Crowd:
    """Everybody on one server at a time; ``events`` counts what all of them heard."""

    folder: Path
    url: str = ""
    kill_at: int = 0
    events: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    back: asyncio.Event = field(default_factory=asyncio.Event)
    dead: asyncio.Event = field(default_factory=asyncio.Event)
    to_review: "asyncio.Queue[tuple[str, asyncio.Event]]" = field(default_factory=asyncio.Queue)

    async def run(self, name: str) -> dict[str, Any]:
        """Have a task done, and return its result."""
        (workspace := self.folder / name).mkdir()
        begin = Call("POST", f"/threads/{name}/runs", {"goal": "Note", "workspace": str(workspace)})
        after = {
            "waiting": Call("GET", f"/threads/{name}/events"),
            "lost": Call("GET", f"/threads/{name}/events"),
            "unfinished": Call("POST", f"/threads/{name}/resume"),
            "unknown": begin,
        }
        seen = Seen()
        stop = await self._heard(name, begin, seen)
        while stop["outcome"] != "done":
            assert stop["outcome"] in after, stop
            self.resumed += stop["outcome"] == "unfinished"
            if stop["outcome"] == "waiting":
                await self._reviewed(name)
            stop = await self._heard(name, after[stop["outcome"]], seen)
        return dict(stop["result"])

    async def _heard(self, name: str, call: "Call", seen: "Seen") -> dict[str, Any]:
        """Listen until the run stops; say what became of it where the server is lost."""
        event: dict[str, Any] = {}
        try:
            async for id_, event in self._listen(call, seen.id):
                seen.id = id_
                self._count(event)
        except httpx.HTTPError:
            await self._restarted()
            return {"outcome": await self._known(name)}
        return event

    async def review(self) -> None:
        """Confirm each plan and approve each call, one after the other, and listen to none."""
        while True:
            name, done = await self.to_review.get()
            while not done.is_set():
                try:
                    await self._answer(name)
                    done.set()
                except httpx.HTTPError:
                    await self._restarted()

    async def _answer(self, name: str) -> None:
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client:
            known = (await client.get(f"/threads/{name}")).json()
            replies = {each["id"]: reply_to(each["value"]) for each in known["questions"]}
            if not replies:
                return
            answering = client.stream("POST", f"/threads/{name}/answers", json=replies)
            async with answering as response:  # and is gone: the run goes on
                assert response.status_code in (200, 409), await response.aread()

    async def _reviewed(self, name: str) -> None:
        done = asyncio.Event()
        await self.to_review.put((name, done))
        await done.wait()

    async def _known(self, name: str) -> str:
        """Say what is known of a thread after its server was lost."""
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client:
            response = await client.get(f"/threads/{name}")
        return "unknown" if response.status_code == 404 else "lost"

    async def _listen(self, call: "Call", seen: int) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        headers = {"Last-Event-ID": str(seen)} if seen and call.method == "GET" else {}
        async with (
            httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client,
            client.stream(call.method, call.path, json=call.json, headers=headers) as response,
        ):
            if response.status_code == 409:  # what was sent before the server was lost is queued
                yield seen, {"type": "run_stopped", "outcome": "lost"}
                return
            assert response.status_code == 200, await response.aread()
            async for event in sent(response):
                yield event

    def _count(self, event: dict[str, Any]) -> None:
        self.events[event["type"]] += 1
        if self.kill_at and self.events["tool_started"] == self.kill_at:
            self.kill_at = 0
            self.dead.set()

    async def _restarted(self) -> None:
        self.dead.set()
        await self.back.wait()


async def sent(response: httpx.Response) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Read server-sent events, each with its id, until the server ends them."""
    fields: dict[str, str] = {}
    last: dict[str, Any] = {}
    async for line in response.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            last = json.loads(fields["data"])
            assert last["type"] == fields["event"]
            yield int(fields["id"]), last
            fields = {}
    if last.get("type") != "run_stopped":
        raise httpx.RemoteProtocolError("the stream ended before its run stopped")


def reply_to(value: dict[str, Any]) -> dict[str, Any]:
    """Confirm a plan, approve all calls; of a call in doubt say that it is to be made again."""
    if value["type"] == "spec_review_request":
        return {"decision": "confirm"}
    assert value["type"] == "approval_request", value
    approvals = value["approvals"]
    shown = [{key: each[key] for key in ("approval_id", "digest")} for each in approvals]
    return {"decisions": [each | {"decision": "approve"} for each in shown]}
