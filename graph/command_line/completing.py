"""What a shell offers when Tab is pressed: names that are known at once, and nothing else.

Nothing is started for it, nobody waits long for it, and what goes wrong is not told.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, LiteralString

SECONDS: Final = 1.0
"""How long the database may take."""

_SCENARIOS: Final = Path(__file__).parent / "scenarios"
_MOST: Final = 50
_PLAIN: Final = re.compile(r"[\w@%+=,./][\w@%+=,./:-]*")
"""Names from elsewhere that mean nothing to a shell: it runs what is offered as it stands."""
_THREADS: Final = """
SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' AND starts_with(thread_id, %s)
GROUP BY thread_id ORDER BY max(checkpoint_id) DESC LIMIT %s
"""
_PITFALLS: Final = """
SELECT DISTINCT key FROM store
WHERE prefix LIKE '%%.pitfalls' AND starts_with(key, %s) ORDER BY key LIMIT %s
"""


def threads(incomplete: str) -> list[str]:
    """Return names of threads, the one written last first."""
    return _within(SECONDS, lambda: _found(_THREADS, incomplete))


def pitfalls(incomplete: str) -> list[str]:
    """Return ids of pitfalls."""
    return _within(SECONDS, lambda: _found(_PITFALLS, incomplete))


def modes(incomplete: str) -> list[str]:
    """Return the modes."""
    from daruma.state.mode import MODES

    return _beginning(MODES, incomplete)


def scenarios(incomplete: str) -> list[str]:
    """Return the demo's scenarios."""
    scripts = sorted(_SCENARIOS.glob("*/script.yaml"))
    return _beginning((script.parent.name for script in scripts), incomplete)


def models(incomplete: str) -> list[str]:
    """Return the models that ``daruma.yaml`` and the environment name, aliases too."""
    return _within(SECONDS, lambda: _beginning(_named_models(), incomplete))


def _named_models() -> list[str]:
    import yaml

    file = Path("daruma.yaml")
    known = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    llm = (known or {}).get("llm") or {}
    names = [os.environ.get("DARUMA_LLM__MODEL"), llm.get("model"), llm.get("auxiliary_model")]
    names += [*(llm.get("model_aliases") or {}), *(llm.get("fallback_models") or ())]
    return [*dict.fromkeys(str(name) for name in names if name)]


def _found(query: LiteralString, incomplete: str) -> list[str]:
    import psycopg

    url = os.environ.get("DARUMA_POSTGRES_URL") or _embedded()
    if not url:
        return []
    options = f"-c statement_timeout={int(SECONDS * 1000)}"
    with psycopg.connect(url, connect_timeout=2, options=options, autocommit=True) as connection:
        rows = connection.execute(query, (incomplete, _MOST)).fetchall()
    return [name for (name,) in rows if ":" not in name]  # bash takes a word apart there


def _embedded() -> str:
    """Return where the embedded server listens; empty unless it runs."""
    from daruma.graph.storage.server import Server
    from daruma.state.data_dir import data_dir

    folder = data_dir() / "postgres"
    running = (folder / "data" / "postmaster.pid").is_file()
    return Server(folder).conninfo() if running else ""


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _within(seconds: float, look: Callable[[], list[str]]) -> list[str]:
    """Return what is found in time and can be put on a command line as it is."""
    found: list[str] = []

    def run() -> None:
        try:
            found.extend(look())
        except Exception:  # noqa: BLE001  # a person is typing: there is no place to say it
            return

    looking = threading.Thread(target=run, daemon=True)
    looking.start()
    looking.join(seconds)
    return [name for name in found if _PLAIN.fullmatch(name)]
