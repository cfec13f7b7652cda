"""A crowd on one server, which is killed in the middle of it all and started again."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.embedding.crowd import Crowd
from tests.embedding.serving import SECONDS, app_of_the_docs, serving


@dataclass(frozen=True)
class Came:
    """What came of it: how the runs ended, how often each had its effect, what was heard."""

    statuses: Counter[str]
    effects: Counter[int]
    events: Counter[str]
    resumed: int
    seconds: float
    away: float
    """Seconds between the kill and the first event from the server that came after."""


async def come_of(folder: Path, database: str, streams: int, kill_at: int) -> Came:
    """Have so many runs at once; the server is killed at that tool call, 0 for never."""
    app_of_the_docs(folder)
    began = time.monotonic()
    crowd = Crowd(folder, kill_at=kill_at)
    away = 0.0
    with ExitStack() as servers:
        server = await asyncio.to_thread(servers.enter_context, serving(folder, database))
        crowd.url = server.url
        reviewing = asyncio.create_task(crowd.review())
        names = [f"t{number:02}" for number in range(streams)]
        runs = [asyncio.create_task(crowd.run(name)) for name in names]
        if kill_at:
            await asyncio.wait(
                [asyncio.create_task(crowd.dead.wait()), *runs], return_when="FIRST_COMPLETED"
            )
            server.kill()
            at = time.monotonic()
            server = await asyncio.to_thread(servers.enter_context, serving(folder, database))
            crowd.url, away = server.url, time.monotonic() - at
            crowd.back.set()
        async with asyncio.timeout(SECONDS):
            results = await asyncio.gather(*runs)
        reviewing.cancel()
        await asyncio.to_thread(server.stop)
    effects = [(folder / name / "effects").read_text().split().count("noted") for name in names]
    return Came(
        Counter(each["status"] for each in results),
        Counter(effects),
        crowd.events,
        crowd.resumed,
        time.monotonic() - began,
        away,
    )
