"""A budget of money needs the price of each model that may be asked, before anything is."""

from typing import Any

import pytest
from tests.parts import settings

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.state.settings import SettingsError

KNOWN = "openai:gpt-4o"
STRANGE = {"strange": {"input": 1.0, "output": 2.0}}


@pytest.fixture(autouse=True)
def _at_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")


@pytest.mark.parametrize(
    ("model", "llm"),
    [
        ("openai:strange", {}),
        (KNOWN, {"fallback_models": ("openai:strange",)}),
        (KNOWN, {"auxiliary_model": "small", "model_aliases": {"small": "openai:strange"}}),
    ],
)
@pytest.mark.parametrize("budgets", [{"usd": 1.0}, {"per_phase": {"usd": 1.0}}])
def test_a_model_without_a_price_is_refused(model: str, llm: Any, budgets: Any) -> None:
    """In one line, with the setting that helps; with it, it is fine."""
    with pytest.raises(SettingsError, match=r"'strange' .*: set llm\.prices") as raised:
        build_graph(model, settings=settings(llm=llm, budgets=budgets))
    assert "\n" not in str(raised.value)

    build_graph(model, settings=settings(llm={**llm, "prices": STRANGE}, budgets=budgets))


def test_models_that_are_known_or_cost_nothing_are_fine(tmp_path: Any) -> None:
    """And without a budget of money nobody asks for prices."""
    given = settings(budgets={"usd": 1.0})

    build_graph(KNOWN, settings=given)
    build_graph(ScriptedChatModel(script={}), settings=given)
    (tmp_path / "some.yaml").write_text("[]")
    build_graph(f"scripted:{tmp_path}/some.yaml", settings=given)
    build_graph("openai:strange", settings=settings(budgets={"tokens": 1}))


def test_an_expert_s_model_needs_a_price_too(tmp_path: Any) -> None:
    """A team's experts may have models of their own."""
    text = "experts: [{name: one, about: all of it, model: 'openai:strange'}]"
    (tmp_path / "small.yaml").write_text(text)
    given = settings(
        mode="team_collab",
        team={"template": "small", "folders": [str(tmp_path)]},
        budgets={"usd": 1.0},
    )

    with pytest.raises(SettingsError, match="expert 'one'"):
        build_graph(KNOWN, settings=given)


def test_a_run_s_own_settings_are_checked(tmp_path: Any) -> None:
    """Before its first call."""
    graph: Any = build_graph("openai:strange", settings=settings())
    request = {"messages": [("user", "hi")], "workspace": str(tmp_path)}

    with pytest.raises(SettingsError, match=r"llm\.prices"):
        graph.invoke(request, context=settings(budgets={"usd": 1.0}))
