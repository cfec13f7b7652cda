"""Over a database that fails, a run ends as over one that is well, or says so and can be resumed.

A share of what ``python -m tests.database_faults`` tries (DU-04).
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import pytest
from tests.fault_proxy import Fate, FaultProxy, fault_proxy, once, passing
from tests.faulty_runs import (
    Outages,
    at_random,
    config_of,
    graph_of,
    own_server,
    run_to_the_end,
    seen,
    swept,
    terminate_others,
    under,
    untouched,
    when,
)

from daruma.graph.storage import open_postgres
from daruma.graph.storage._database import answers_within
from daruma.state.errors import StorageUnavailable

HELLO: Any = {"messages": [("user", "Note it")]}


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[FaultProxy]:
    """A proxy before a database of its own."""
    with fault_proxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def own() -> Iterator[tuple[str, Outages]]:
    """A server that can be stopped, as nobody else uses it."""
    with TemporaryDirectory(prefix="daruma-tests-") as folder:
        Path(folder).chmod(0o755)
        with own_server(Path(folder) / "server") as server:
            yield server


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cut before", "cut after"])
def test_a_run_that_is_cut_at_a_message_ends_as_if_it_had_not_been(
    proxy: FaultProxy, tmp_path: Path, kind: Fate
) -> None:
    """Lost requests and lost acknowledgements: state, budgets, messages and files are the same.

    Every thirtieth message here, each one in the long form.
    """
    assert swept(proxy, tmp_path, range(7, 200, 30), kind) == []
    assert proxy.faults == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_ends_the_same_where_messages_are_cut_at_random(
    proxy: FaultProxy, tmp_path: Path, seed: int
) -> None:
    """Four of a hundred."""
    meant = untouched(proxy.server, tmp_path / "meant")

    assert under(proxy, tmp_path / "cut", at_random(seed, 0.04)) == meant
    assert proxy.faults > 5


@pytest.mark.long
def test_a_run_goes_on_where_a_connection_falls_silent(proxy: FaultProxy, tmp_path: Path) -> None:
    """No answer comes back, and no error does; the long form has silence all along the run."""
    meant = untouched(proxy.server, tmp_path / "meant")

    with answers_within(0.5):
        assert under(proxy, tmp_path / "silent", once(0, "swallow")) == meant

    assert proxy.faults == 1


@pytest.mark.long
def test_a_slow_database_just_works(proxy: FaultProxy, tmp_path: Path) -> None:
    """10 ms for each piece that is sent; 50 in the long form."""
    meant = untouched(proxy.server, tmp_path / "meant")
    proxy.delay = 0.01

    assert under(proxy, tmp_path / "slow", passing) == meant


@pytest.mark.long
def test_ten_runs_at_once_go_on_while_all_backends_are_terminated(
    postgres_url: str, tmp_path: Path
) -> None:
    """By an administrator, again and again: in each call of a model and of a tool."""
    meant, ended = untouched(postgres_url, tmp_path / "meant"), list[int]()

    with open_postgres(postgres_url) as pg, ThreadPoolExecutor(10) as pool:

        def one(number: int) -> dict[str, Any]:
            folder = tmp_path / f"run-{number}"
            folder.mkdir()
            graph = graph_of(pg, folder, lambda _: ended.append(terminate_others(postgres_url)))
            return seen(run_to_the_end(graph, folder), folder)

        found = list(pool.map(one, range(10)))

    assert [each for each in found if each != meant] == []
    assert sum(ended) > 10


@pytest.mark.sampled(1)
@pytest.mark.parametrize("at", ["model 2", "five"])
def test_a_run_rides_out_a_server_that_is_stopped_and_started(
    own: tuple[str, Outages], tmp_path: Path, at: str
) -> None:
    """As by a crash, while the model or a tool is at work: nothing is done twice."""
    server, outages = own
    meant = untouched(server, tmp_path / "meant")
    (tmp_path / "run").mkdir()

    with open_postgres(server) as pg:
        graph = graph_of(pg, tmp_path / "run", when(at, lambda: outages.stop_for(0.5)))
        found = seen(run_to_the_end(graph, tmp_path / "run"), tmp_path / "run")
    outages.over()

    assert found == meant
    assert outages.took >= 0.5


@pytest.mark.long
def test_a_run_is_resumable_after_an_outage_that_was_too_long(
    own: tuple[str, Outages], tmp_path: Path
) -> None:
    """Storage_unavailable within a bound; then it goes on as if nothing had happened."""
    server, outages = own
    meant, run = untouched(server, tmp_path / "meant"), tmp_path / "run"
    run.mkdir()

    with open_postgres(server, outage_seconds=0.5) as pg:
        graph, began = graph_of(pg, run, when("model 2", outages.stop)), monotonic()
        with pytest.raises(StorageUnavailable, match="did not come back"):
            run_to_the_end(graph, run)
        took = monotonic() - began
        outages.start()
        graph.invoke(None, config_of(run))
        found = seen(run_to_the_end(graph, run), run)

    assert found == meant
    assert took < 15  # 0.5 s of patience, 1 s for a connection, 5 s at most for the lease


def invoked(graph: Any, config: Any) -> None:
    graph.invoke(HELLO, config)


def streamed(graph: Any, config: Any) -> None:
    list(graph.stream(HELLO, config, stream_mode=["updates", "custom"]))


def ainvoked(graph: Any, config: Any) -> None:
    asyncio.run(graph.ainvoke(HELLO, config))


def astreamed(graph: Any, config: Any) -> None:
    async def all_parts() -> None:
        async for _ in graph.astream(HELLO, config, stream_mode=["updates", "custom"]):
            pass

    asyncio.run(all_parts())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [invoked, streamed, ainvoked, astreamed])
def test_a_lost_database_comes_out_of_every_way_to_run_as_what_it_is(
    proxy: FaultProxy, tmp_path: Path, way: Callable[[Any, Any], None]
) -> None:
    """No group, no error of psycopg, no task that failed; the thread stays before its node."""
    with open_postgres(proxy.url, outage_seconds=0) as pg:
        graph = graph_of(pg, tmp_path, when("model 2", proxy.refuse))
        with pytest.raises(StorageUnavailable) as raised:
            way(graph, config_of(tmp_path))
        proxy.mend()

        assert raised.value.code == "storage_unavailable"
        state = graph.get_state(config_of(tmp_path))
        assert state.next == ("main",)
        assert (state.values.get("failure"), state.values.get("result")) == (None, None)
        assert seen(run_to_the_end(graph, tmp_path), tmp_path)["status"] == "completed"
