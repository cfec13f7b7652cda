"""Live things of one run: found in its config by their kind, and nowhere else."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from daruma.graph.scope import OfARun


class Lamp(OfARun):
    """One kind."""


class Bell(OfARun):
    """Another."""


def test_each_kind_is_found_in_the_config_that_it_was_noted_in() -> None:
    """What else the config holds stays, and the config that was given stays as it was."""
    given = RunnableConfig(configurable={"thread_id": "t"}, tags=["x"])
    lamp, bell = Lamp(), Bell()

    config = bell.noted(lamp.noted(given))

    assert (Lamp.found_in(config), Bell.found_in(config)) == (lamp, bell)
    assert (config["configurable"]["thread_id"], config["tags"]) == ("t", ["x"])
    assert given == {"configurable": {"thread_id": "t"}, "tags": ["x"]}


def test_outside_of_a_run_there_is_none() -> None:
    """Nor where something else stands in its place."""
    config: Any = {"configurable": dict.fromkeys(Lamp().noted(None)["configurable"], "else")}

    assert Lamp.found_in({}) is None
    assert Lamp.found_in(config) is None
