"""Options of commands, what Tab offers, names of threads, and whose experience is meant."""

import asyncio
import os
import re
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, LiteralString

import typer

from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from daruma.graph.storage import Postgres
    from daruma.state.settings import Evolution


# --- Names for threads that people can read aloud, remember for a minute and type.

_MANNERS = (
    "able bold brave brisk calm clear deft eager fair fine fond frank glad grand hardy keen kind "
    "lively lucky mild neat nimble proud quick quiet ready sharp steady stout swift warm wise"
)
_ANIMALS = (
    "badger bear beaver crane crow deer dove eagle falcon finch fox goose hare hawk heron horse "
    "ibex jay lark lynx marten mole otter owl panda raven robin seal stork swan tiger wolf"
)
_CHARACTERS = "23456789abcdefghjkmnpqrstuvwxyz"


_COMPARED: Final = 1000
"""Threads that a name that none has is compared with."""


class ThreadRefused(DarumaError):
    """Raised for a thread's name that can not be used, or that names no thread."""


async def no_such(postgres: "Postgres", name: str, checkpoint: str | None = None) -> ThreadRefused:
    """Return the error for a name that no thread has, or a checkpoint that this one has not."""
    if checkpoint:
        return ThreadRefused(f"thread {name!r} has no checkpoint {checkpoint!r}")
    names = [each.thread_id for each in await postgres.athreads(_COMPARED)]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "see `daruma threads`"
    return ThreadRefused(f"there is no thread {name!r}: {hint}")


def new_thread_name() -> str:
    """Return a fresh name such as ``brave-otter-7k2f``: one of about 900 million."""
    tail = "".join(secrets.choice(_CHARACTERS) for _ in range(4))
    return f"{secrets.choice(_MANNERS.split())}-{secrets.choice(_ANIMALS.split())}-{tail}"


def checked_thread_name(name: str) -> str:
    """Return a name that a person chose. Raises :class:`ThreadRefused` if it can not be typed."""
    if not name.strip() or not name.isprintable() or name.startswith("-"):
        raise ThreadRefused(f"the thread name {name!r} can not be used: take letters and digits")
    return name


# --- What a shell offers when Tab is pressed: names that are known at once, and nothing else.
#
# Nothing is started for it, nobody waits long for it, and what goes wrong is not told.

SECONDS: Final = 1.0
"""How long the database may take."""

_SCENARIOS: Final = Path(__file__).parents[1] / "scenarios"
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
    from daruma.state.settings import SETTINGS_FILE, SettingsFile

    llm = SettingsFile.of(Path(SETTINGS_FILE)).values.get("llm") or {}
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
    from daruma.graph.storage import Server
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


# --- Options and arguments that several commands have.

COMMANDS: Final = "daruma-commands"
"""The queue of the command line, whose workers make the graph that the command named."""


ThreadName = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="Name of the thread.",
        autocompletion=threads,
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Agree to plans and optional approvals, not to required ones.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="End standard output with the result as one JSON object.")
]
Submit = Annotated[
    bool,
    typer.Option("--submit", help="Leave it to a `daruma worker`, and print the thread's name."),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="openai:NAME, scripted:FILE or an alias; else the settings' or the thread's own.",
        show_default=False,
        autocompletion=models,
    ),
]


# --- Whose experience a command is about, and the store that it is kept in.

Workspace = Annotated[
    str | None,
    typer.Option("--workspace", metavar="DIR", help="Whose experience: this workspace's."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Or that of this evolution.namespace."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON on standard output.")]


@dataclass(frozen=True)
class Learned:
    """What an owner's experience is kept in, and the settings of the folder that is asked in."""

    store: "BaseStore"
    owner: str
    settings: "Evolution"


@asynccontextmanager
async def of_owner(workspace: str | None, namespace: str | None) -> AsyncIterator[Learned]:
    """Open the database on the experience of a workspace, of a namespace, or of the settings'.

    Where the settings of the current folder say whose, they also say whether it is shared: marks
    of an earlier sharing are taken off, before anything is shown.
    """
    from daruma.graph.storage import aopen_postgres
    from daruma.state.settings import Settings
    from daruma.tools.evolution import Pitfalls
    from daruma.tools.memory import owner_of

    if workspace is not None and namespace is not None:
        raise typer.BadParameter("give one of --workspace and --namespace")
    settings = Settings.load().evolution
    own = workspace is None and namespace is None
    named = settings.namespace if own else namespace
    owner = await asyncio.to_thread(owner_of, named, workspace or ".")
    async with aopen_postgres() as postgres:
        if own and not settings.shared:
            await Pitfalls(postgres.store, owner).settle_sharing()
        yield Learned(postgres.store, owner, settings)
