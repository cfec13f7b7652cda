"""What ``daruma doctor`` looks at. Keys are looked for, never shown."""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from langgraph.store.base import BaseStore

from daruma.graph.command_line.options import Learned
from daruma.graph.command_line.pitfall_view import listing
from daruma.graph.models.by_role import AUXILIARY, Models
from daruma.graph.models.faults import ModelUnavailable
from daruma.graph.storage.postgres import aopen_postgres
from daruma.state.errors import StorageUnavailable
from daruma.state.settings import Sandbox as SandboxSettings
from daruma.state.settings import Settings
from daruma.state.settings.errors import SettingsError
from daruma.state.settings.sections import Evolution
from daruma.tools.commands.command import command_environment
from daruma.tools.commands.host_programs import find_in, find_program, unsearched
from daruma.tools.memory.memories import owner_of
from daruma.tools.sandbox.mounts import shown_by_path
from daruma.tools.sandbox.opening import open_sandbox
from daruma.tools.sandbox.sandbox import REMEDY, SandboxUnavailable

# --- Whether a folder's tasks are learned from, on one line.


async def learning_text(store: BaseStore, given: Evolution) -> str:
    """Say whether learning is on, and how many pitfalls the current folder has."""
    if not given.enabled:
        return "off, by evolution.enabled"
    owner = await asyncio.to_thread(owner_of, given.namespace, ".")
    found = await listing(Learned(store, owner, given), everything=True)
    high = sum(each.level == "high" for each in found.pitfalls)
    how = "observing, by evolution.observe_only" if given.observe_only else "on"
    return f"{how}; pitfalls of this folder: {len(found.pitfalls)}, of which high: {high}"


# --- What ``daruma doctor`` looks at. Keys are looked for, never shown.

State = Literal["ok", "note", "missing"]

_PACKAGES = ("daruma-agent", "langgraph", "langchain-core", "langchain-openai", "psycopg")
_PROGRAMS = {
    "git": "repositories can not be looked into",
    "pytest": "Python workspaces can not be verified: pip install pytest",
    "ruff": "Python workspaces can not be verified: pip install ruff",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; without what is ``missing`` nothing can be run."""

    name: str
    state: State
    text: str


async def diagnose() -> list[Finding]:
    """Look at everything, whatever is missing."""
    kept = await _postgres()
    return [_python(), *_packages(), *kept, *_models(), await _sandbox(), *_programs(), *_paths()]


def _python() -> Finding:
    text = f"{sys.version.split()[0]} ({sys.executable})"
    fits = sys.version_info >= (3, 11)
    return Finding("Python", "ok" if fits else "missing", text if fits else f"{text}: needs 3.11")


def _packages() -> Iterator[Finding]:
    for name in _PACKAGES:
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "missing", f"not installed: pip install {name}")


async def _postgres() -> list[Finding]:
    try:
        async with aopen_postgres() as postgres:
            kind = "embedded" if postgres.embedded else "by DARUMA_POSTGRES_URL"
            items = await postgres.store.acount()
            kept = f"{items} item{'' if items == 1 else 's'} kept"
            text = f"{postgres.server_version}, {kind}, {postgres.display_url}, {kept}"
            return [Finding("Postgres", "ok", text), *await _learning(postgres.store)]
    except StorageUnavailable as error:
        return [Finding("Postgres", "missing", str(error))]


async def _learning(store: BaseStore) -> list[Finding]:
    try:
        given = Settings.load().evolution
    except SettingsError:  # said with the settings
        return []
    state: State = "ok" if given.enabled else "note"
    return [Finding("learning", state, await learning_text(store, given))]


def _models() -> Iterator[Finding]:
    try:
        settings = Settings.load()
    except SettingsError as error:
        yield Finding("settings", "missing", str(error))
        return
    found = Path("daruma.yaml").is_file()
    yield Finding("settings", "ok", str(Path("daruma.yaml").absolute()) if found else "defaults")
    llm = settings.llm
    models = Models(llm.model, llm.auxiliary_model, llm.model_aliases)
    if llm.model is None:
        yield Finding("model", "note", "none: --model, llm.model or DARUMA_LLM__MODEL names one")
    for role, name in (("main", llm.model), (AUXILIARY, llm.auxiliary_model)):
        if name is not None:
            yield _model("model" if role == "main" else "auxiliary", role, models)
    yield from (_fallback(name, models) for name in llm.fallback_models)
    yield _key()


def _model(label: str, role: str, models: Models) -> Finding:
    try:
        models.get(role)
        return Finding(label, "ok", models.name(role))
    except ModelUnavailable as error:
        return Finding(label, "missing", str(error))


def _fallback(name: str, models: Models) -> Finding:
    try:
        Models(name, aliases=models.aliases).get("main")
        return Finding("fallback", "ok", name)
    except ModelUnavailable as error:  # runs do without it, as long as the others answer
        return Finding("fallback", "note", str(error))


def _key() -> Finding:
    key = "is set" if os.environ.get("OPENAI_API_KEY") else "is not set"
    address = " and OPENAI_BASE_URL is set" if os.environ.get("OPENAI_BASE_URL") else ""
    return Finding("key", "ok" if key == "is set" else "note", f"OPENAI_API_KEY {key}{address}")


async def _sandbox() -> Finding:
    try:
        given = Settings.load().sandbox
    except SettingsError:  # said already
        given = SandboxSettings()
    try:
        sandbox = await open_sandbox(given)
    except SandboxUnavailable as error:
        return Finding("sandbox", "missing", str(error))
    if sandbox.level == "namespace":
        return Finding("sandbox", "ok", sandbox.line)
    return Finding("sandbox", "note", f"{sandbox.line}. Remedy: {REMEDY}")


def _programs() -> Iterator[Finding]:
    places = program_path(Path.cwd())
    for name, without in _PROGRAMS.items():
        found = find_program(name) if name == "git" else find_in(places, name)
        yield Finding(name, "ok" if found else "note", found or f"not found: {without}")


def _paths() -> Iterator[Finding]:
    """Name the places of ``PATH`` that tasks can write, and those that open a folder (SE-01)."""
    for place in unsearched(Path.cwd()):
        risk = "Daruma runs nothing from there, your shell does: take it out, or put it last"
        yield Finding("PATH", "note", f"{place!r} can be written by tasks. {risk}")
    env, here = _environment(Path.cwd()), Path.cwd()
    for place in shown_by_path(env):
        if not place.is_relative_to(here):
            why = "for PATH names it or its bin: put programs where nothing else lies"
            yield Finding("PATH", "note", f"commands can read {place}, {why}")


def program_path(workspace: Path) -> str:
    """Return where commands in a workspace look for programs."""
    return _environment(workspace)["PATH"]


def _environment(workspace: Path) -> dict[str, str]:
    return command_environment(os.environ, workspace, Path(sys.executable).parent)
