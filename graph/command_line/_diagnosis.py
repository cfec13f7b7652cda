"""What ``daruma doctor`` looks at. Keys are looked for, never shown."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from daruma.graph.command_line._memory import read_pitfalls
from daruma.graph.models import (
    AnsweringModel,
    Asker,
    Models,
    ModelUnavailable,
    full_name,
    key_variables,
    misspelt_variable,
    model_address,
)
from daruma.graph.storage import aopen_postgres
from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError, OtherFormat
from daruma.state.failure import ModelFailed, Reason
from daruma.state.settings import LLM, ModelOptions, Requests, RoleOptions, Settings, SettingsError
from daruma.state.settings import Sandbox as SandboxSettings
from daruma.state.text import counted
from daruma.tools.calls import mcp_tools
from daruma.tools.commands import command_environment, find_in, find_program, unsearched_places
from daruma.tools.evolution import Pitfalls
from daruma.tools.memory import owner_of
from daruma.tools.sandbox import REMEDY, SandboxUnavailable, folders_shown_by_path, open_sandbox
from daruma.tools.text import without_keys

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


_QUESTION = "Reply with the word ok."
_SECONDS = 30.0
"""For the answer to it."""
_ADVICE: Mapping[Reason, str] = {
    "connection": "; check the address, and that a server runs there",
    "not_found": "; check the model's name, and the address",
    "quota": "; add credit, or raise the limit at the provider",
}
"""Where the provider's words do not say what to do."""


async def diagnose(*, online: bool = False) -> list[Finding]:
    """Look at everything, whatever is missing; ``online``, ask the models too."""
    kept, models = await _postgres(), await _models(online=online)
    servers = await _servers(online=online)
    own = (*servers, await _sandbox(), *_programs(), *_paths())
    python = Finding("Python", "ok", f"{sys.version.split()[0]} ({sys.executable})")
    return [python, *_packages(), *kept, *models, *own]


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
            about = f"{postgres.server_version}, {kind}, {postgres.display_url}"
            text = f"{about}, {counted(items, 'item')} kept"
            return [Finding("Postgres", "ok", text), *await _learning(postgres.store)]
    except DarumaError as error:
        text = str(error)
        if isinstance(error, OtherFormat) and not os.environ.get("DARUMA_POSTGRES_URL"):
            text = f"{text}: {data_dir() / 'postgres'}"
        return [Finding("Postgres", "missing", text)]


async def _learning(store: BaseStore) -> list[Finding]:
    """Say whether learning is on, and how many pitfalls the current folder has."""
    try:
        given = Settings.load().evolution
    except SettingsError:  # said with the settings
        return []
    if not given.enabled:
        return [Finding("learning", "note", "off, by evolution.enabled")]
    owner = await asyncio.to_thread(owner_of, given.namespace, ".")
    found = await read_pitfalls(Pitfalls(store, owner), given)
    high = sum(each.level == "high" for each in found)
    how = "observing, by evolution.observe_only" if given.observe_only else "on"
    text = f"{how}; pitfalls of this folder: {len(found)}, of which high: {high}"
    return [Finding("learning", "ok", text)]


async def _models(*, online: bool) -> list[Finding]:
    try:
        llm, options = (found := Settings.load().llm), found.options
    except SettingsError as error:
        return [Finding("settings", "missing", str(error))]
    named: list[tuple[str, str | None, ModelOptions]] = [("model", llm.model, options.main)]
    if llm.auxiliary_model:
        named.append(("auxiliary", llm.auxiliary_model, options.auxiliary))
    if llm.judge_model:
        named.append(("judge", llm.judge_model, options.judge))
    named += [("fallback", name, options.fallback) for name in llm.fallback_models]
    asked = (_model(*each, llm, online=online) for each in named)
    return [_settings(), *await asyncio.gather(*asked), *_key(llm)]


def _settings() -> Finding:
    file = Path("daruma.yaml")
    return Finding("settings", "ok", str(file.absolute()) if file.is_file() else "defaults")


async def _model(
    label: str, name: str | None, options: ModelOptions, llm: LLM, *, online: bool
) -> Finding:
    """Make a model, and ask it one short question if that is wanted."""
    if name is None:
        return Finding(label, "note", "none: --model, llm.model or DARUMA_LLM__MODEL names one")
    alone = {
        "options": RoleOptions(main=options),
        "auxiliary_model": None,
        "fallback_models": (),
        "requests": Requests(per_model=1, per_call=1, seconds=_SECONDS, total_seconds=_SECONDS),
    }
    models = Models.of(llm.model_copy(update=alone), name)
    try:
        model = await models.ready("main")
        address = options.base_url or model_address(model)
        full = models.name("main") + (f" at {without_keys(address)}" if address else "")
        if isinstance(model, AnsweringModel):
            return Finding(label, "ok", full)
        if not online:
            return Finding(label, "ok", f"{full}: not asked, `daruma doctor --online` asks it")
        began = time.monotonic()
        await Asker(models)("doctor", [HumanMessage(_QUESTION)], call=0, emit=lambda _: None)
        return Finding(label, "ok", f"{full}: answered in {time.monotonic() - began:.1f} s")
    except ModelUnavailable as error:
        return Finding(label, "missing", str(error))
    except ModelFailed as error:
        advice = "" if str(error).endswith("?") else _ADVICE.get(error.reason, "")
        return Finding(label, "missing", f"{error}{advice}")


def _key(llm: LLM) -> Iterator[Finding]:
    names = (llm.model or "openai:NAME", llm.auxiliary_model, *llm.fallback_models)
    known = dict[tuple[str, ...], tuple[str, ...]]()
    for name in filter(None, names):
        with suppress(ModelUnavailable):  # said already
            keys, found = key_variables(full_name(name, llm.model_aliases))
            known[keys] = found
    for keys, found in known.items():
        address = " and OPENAI_BASE_URL is set" if os.environ.get("OPENAI_BASE_URL") else ""
        address = address if "OPENAI_API_KEY" in keys else ""
        if found:
            yield Finding("key", "ok", f"{found[0]} is set{address}")
        elif keys:
            yield Finding("key", "note", f"{keys[0]} is not set{misspelt_variable(*keys)}{address}")


async def _servers(*, online: bool) -> list[Finding]:
    """Name the configured MCP servers; ``online``, start each and name its tools."""
    found = list[Finding]()
    with suppress(SettingsError):  # said with the settings
        for name, server in Settings.load().tools.mcp_servers.items():
            label, asked = f"MCP {name}", "not started, `daruma doctor --online` lists its tools"
            try:
                tools = await mcp_tools({name: server}, Path.cwd()) if online else []
                named = ", ".join(tool.name for tool in tools)
                found.append(Finding(label, "ok", named if online else asked))
            except DarumaError as error:
                found.append(Finding(label, "missing", str(error)))
    return found


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
    for place in unsearched_places(Path.cwd()):
        risk = "Daruma runs nothing from there, your shell does: take it out, or put it last"
        yield Finding("PATH", "note", f"{place!r} can be written by tasks. {risk}")
    for shown in folders_shown_by_path(_environment(Path.cwd())):
        if not shown.is_relative_to(Path.cwd()):
            why = "for PATH names it or its bin: put programs where nothing else lies"
            yield Finding("PATH", "note", f"commands can read {shown}, {why}")


def program_path(workspace: Path) -> str:
    """Return where commands in a workspace look for programs."""
    return _environment(workspace)["PATH"]


def _environment(workspace: Path) -> dict[str, str]:
    return command_environment(os.environ, workspace, Path(sys.executable).parent)
