"""``daruma settings``, ``daruma trust`` and ``daruma doctor``."""

import asyncio
import json as json_format
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from daruma.graph.command_line._messages import one_line, shown
from daruma.graph.command_line._options import AsJson, paper_of
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.state.settings import SettingsKey


# --- ``daruma settings``: every setting there is, and what is in force here.

_WORD: Final = (
    r"[\w-]*(?:token|secret|passw(?:or)?d|passphrase|pgpass|[_-]pass|api[_-]?key|_key|authorization"
    r"|credentials?|cookie)"
)
_NAME: Final = re.compile(f"-*{_WORD}", re.IGNORECASE)
_AFTER_A_NAME: Final = re.compile(
    rf"({_WORD})(?:(\s*(?:=|:(?!-[^{{}}]*\}}))\s*)[^&]+|(\s+)\S+)", re.IGNORECASE
)
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^{}]*))?\}")
"""What a server's settings name in the place of a value; its default may be a key itself."""

_ALONE: Final = re.compile(rf"(?:(?:bearer|basic|token) +)?{_VARIABLE.pattern}", re.IGNORECASE)
_KEY: Final = "[key]"

Effective = Annotated[
    bool, typer.Option("--effective", help="Show what is in force here, and where it comes from.")
]
Wanted = Annotated[str | None, typer.Argument(metavar="[KEY]", help="A key, or a section of them.")]


def settings(key: Wanted = None, *, effective: Effective = False, json: AsJson = False) -> None:
    """List every setting: its type, default, range, meaning and environment variable."""
    from daruma.graph.command_line._output import Table
    from daruma.state.settings import settings_schema, values_in_force

    if json and key is None and not effective:
        typer.echo(json_format.dumps(settings_schema()))
        return
    found = _found(key)
    if effective:
        values = [(e.key.path, e.source, _masked(e.value)) for e in values_in_force(found)]
        table = Table(("key", "source", "value"), values)
    elif json or (key and len(found) == 1):
        titles = ("key", "type", "default", "range", "what it is", "variable")
        rows = [(k.path, k.type, k.default, k.range, k.description, k.variable) for k in found]
        table = Table(titles, rows)
    else:
        note = "as a variable: DARUMA_ and the key in capitals, with __ for each dot"
        kept = [", ".join(filter(None, (k.type, k.range, f"default {k.default}"))) for k in found]
        told = [(k.path, f"{k.description} ({how})") for k, how in zip(found, kept, strict=True)]
        table = Table(("key", "what it is"), told, note=note)
    if key and len(table.rows) == 1 and not (json or effective):
        for title, cell in zip(table.columns, table.rows[0], strict=True):
            typer.echo(f"{title + ':':<12}{cell}" if cell else f"{title}:")
    else:
        table.show(paper_of(), as_json=json)


def _found(wanted: str | None) -> "list[SettingsKey]":
    """Return the keys that are meant: one, or all of a section."""
    from daruma.state.settings import Settings, SettingsError, settings_keys

    every = settings_keys(Settings)
    if wanted is None:
        return every
    found = [each for each in every if f"{each.path}.".startswith(f"{wanted}.")]
    if not found:
        paths = {part for each in every for part in (each.path, each.path.rpartition(".")[0])}
        close = get_close_matches(wanted, paths - {""}, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "; `daruma settings` lists them all"
        raise SettingsError(f"unknown setting {wanted!r}{hint}")
    return found


def _masked(value: str) -> str:
    """Leave keys out of a value in JSON, and what follows a word for one, whole."""
    return json_format.dumps(_without_secrets(json_format.loads(value)), ensure_ascii=False)


def _without_secrets(value: Any, before: str = "") -> Any:
    """Leave keys out of a value; ``before`` is its name, or what stands before it in a list."""
    if isinstance(value, dict):
        return {name: _without_secrets(each, name) for name, each in value.items()}
    if isinstance(value, list):
        names = ["", *(each if isinstance(each, str) else "" for each in value)]
        return [_without_secrets(*each) for each in zip(value, names, strict=False)]
    secret = _NAME.fullmatch(before)
    if secret and not (isinstance(value, str) and _ALONE.fullmatch(value)):
        return _KEY
    if isinstance(value, str):
        from daruma.tools.text import secrets_in, without_keys

        named = _VARIABLE.findall(value)
        keys = [key for name, text in named for key in secrets_in("KEY" if secret else name, text)]
        return _AFTER_A_NAME.sub(rf"\1\2\3{_KEY}", without_keys(value, keys))
    return value


# --- ``daruma trust``: agreeing to what a folder's settings, skills and templates hold (SE-02).

_ASKED: Final = "Trust exactly this? [y]es, [n]o: "


def trust(
    path: Annotated[
        str, typer.Argument(metavar="[PATH]", help="A folder, a settings file, or skills.")
    ] = ".",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Agree without being asked.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Take back what was agreed to.")] = False,
    every: Annotated[bool, typer.Option("--list", help="List what was agreed to.")] = False,
) -> None:
    """Show what a folder's settings would switch on, and agree to them as they are now."""
    from daruma.state.settings import trust_records, withdraw_trust

    if every:
        for each in trust_records():
            typer.echo(one_line(f"{each.at}  {each.path}  {', '.join(each.keys)}", 300))
        return
    if forget:
        if not withdraw_trust(Path(path)):
            raise DarumaError(f"nothing at {path!r} was agreed to: see `daruma trust --list`")
        return
    if not agreed(Path(path), yes=yes):
        raise DarumaError(f"{path} is not trusted: nobody agreed to it")


def agreed(path: Path, *, yes: bool = False) -> bool:
    """Show what there is at a path, and ask a person; return whether it is trusted then."""
    from daruma.state.settings import Settings, propose_trust

    proposal = propose_trust(Settings, path)
    if not (proposal.changes or proposal.parts or proposal.refused):
        typer.echo(f"nothing in {shown(str(proposal.path))} needs your agreement", err=True)
        return True
    typer.echo(f"{shown(str(proposal.path))}:", err=True)
    for change in proposal.changes:
        value = shown(_masked(json_format.dumps(change.value)))
        typer.echo(f"  {shown(change.key)}: {value}", err=True)
    for record in proposal.parts:
        typer.echo(f"  {shown(record.path)}", err=True)
    for refused in map(str, proposal.refused):
        typer.echo(f"  not to be trusted, for links in it or its size: {shown(refused)}", err=True)
    if not yes and not _says_yes():
        return False
    proposal.agree()
    return not proposal.refused


def _says_yes() -> bool:
    typer.echo(f"  {_ASKED}", err=True, nl=False)
    try:
        return input().strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        typer.echo(err=True)
        return False


# --- ``daruma doctor``: what is there, what is missing, and what to do about it.


def doctor(
    *,
    online: Annotated[
        bool, typer.Option("--online", help="Ask each model one short question; it costs.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check what Daruma needs: Python, packages, database, models, programs."""
    from daruma.graph.command_line._diagnosis import diagnose
    from daruma.graph.command_line._output import Line, Mark

    findings = asyncio.run(diagnose(online=online))
    if json:
        rows = [{"name": f.name, "state": f.state, "text": f.text} for f in findings]
        typer.echo(json_format.dumps(rows))
    else:
        paper = paper_of()
        marks: dict[str, Mark] = {"ok": "ok", "note": "note", "missing": "bad"}
        width = max(len(each.name) for each in findings)
        for each in findings:
            paper.put(Line(marks[each.state], f"{each.name:<{width}}  {each.text}"))
    raise typer.Exit(1 if any(each.state == "missing" for each in findings) else 0)
