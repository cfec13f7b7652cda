"""``daruma settings`` and ``daruma doctor``."""

import asyncio
import json as json_format
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from daruma.graph.command_line.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from daruma.state.settings.reference import Key


# --- ``daruma settings``: every setting there is, and what is in force here.

_WORD: Final = (
    r"[\w-]*(?:token|secret|passw(?:or)?d|passphrase|pgpass|[_-]pass|api[_-]?key|_key|authorization"
    r"|credentials?|cookie)"
)
_NAME: Final = re.compile(f"-*{_WORD}", re.IGNORECASE)
_AFTER_A_NAME: Final = re.compile(rf"({_WORD})(?:(\s*[=:]\s*)[^&]+|(\s+)\S+)", re.IGNORECASE)
_KEY: Final = "[key]"

Effective = Annotated[
    bool, typer.Option("--effective", help="Show what is in force here, and where it comes from.")
]
Wanted = Annotated[str | None, typer.Argument(metavar="[KEY]", help="A key, or a section of them.")]


def settings(key: Wanted = None, *, effective: Effective = False, json: AsJson = False) -> None:
    """List every setting: its type, default, range, meaning and environment variable."""
    from rich.console import Console

    from daruma.state.settings.reference import schema

    if json and key is None and not effective:
        typer.echo(json_format.dumps(schema()))
        return
    found = _found(key)
    titles: tuple[str, ...]
    rows: list[tuple[str, ...]]
    if effective:
        rows = _in_force(found)
        titles = ("key", "value", "source")
    else:
        rows = [(k.path, k.type, k.default, k.range, k.description, k.variable) for k in found]
        titles = ("key", "type", "default", "range", "what it is", "variable")
    if json:
        typer.echo(json_format.dumps([dict(zip(titles, row, strict=True)) for row in rows]))
    elif key and not effective and len(rows) == 1:
        for title, cell in zip(titles, rows[0], strict=True):
            typer.echo(f"{title + ':':<12}{cell}" if cell else f"{title}:")
    else:
        Console(highlight=False).print(_table(titles, rows) if effective else _listed(found))


def _listed(found: "Sequence[Key]") -> "Table":
    table = _table(("key", "what it is"), [(each.path, _in_short(each)) for each in found])
    table.caption = "as a variable: DARUMA_ and the key in capitals, with __ for each dot"
    return table


def _in_short(key: "Key") -> str:
    kept = ", ".join(part for part in (key.type, key.range, f"default {key.default}") if part)
    return f"{key.description} ({kept})"


def _found(wanted: str | None) -> "list[Key]":
    """Return the keys that are meant: one, or all of a section."""
    from daruma.state.settings.errors import SettingsError
    from daruma.state.settings.reference import keys

    every = keys()
    if wanted is None:
        return every
    found = [each for each in every if f"{each.path}.".startswith(f"{wanted}.")]
    if not found:
        paths = {part for each in every for part in (each.path, each.path.rpartition(".")[0])}
        close = get_close_matches(wanted, paths, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "; `daruma settings` lists them all"
        raise SettingsError(f"unknown setting {wanted!r}{hint}")
    return found


def _in_force(keys: "Sequence[Key]") -> list[tuple[str, ...]]:
    from daruma.state.settings.reference import in_force

    return [(each.key.path, _masked(each.value), each.source) for each in in_force(keys)]


def _masked(value: str) -> str:
    """Leave keys out of a value in JSON, and what follows a word for one, whole."""
    return json_format.dumps(_without_secrets(json_format.loads(value)), ensure_ascii=False)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(each) for name, each in value.items()}
    if isinstance(value, list):
        before = ["", *(each if isinstance(each, str) else "" for each in value)]
        return [
            _KEY if _NAME.fullmatch(name) else _without_secrets(each)
            for name, each in zip(before, value, strict=False)
        ]
    return _text_without_secrets(value) if isinstance(value, str) else value


def _text_without_secrets(text: str) -> str:
    from daruma.tools.text.secrets import without_keys

    return _AFTER_A_NAME.sub(rf"\1\2\3{_KEY}", without_keys(text))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    for column in table.columns[1:]:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    return table


# --- ``daruma doctor``: what is there, what is missing, and what to do about it.


def doctor(*, json: AsJson = False) -> None:
    """Check what Daruma needs: Python, packages, database, model, programs."""
    from rich.console import Console

    from daruma.graph.command_line.diagnosis import diagnose
    from daruma.graph.command_line.output import Line, Mark, Paper

    findings = asyncio.run(diagnose())
    if json:
        rows = [{"name": f.name, "state": f.state, "text": f.text} for f in findings]
        typer.echo(json_format.dumps(rows))
    else:
        paper = Paper(Console(highlight=False))
        marks: dict[str, Mark] = {"ok": "ok", "note": "note", "missing": "bad"}
        width = max(len(each.name) for each in findings)
        for each in findings:
            paper.put(Line(marks[each.state], f"{each.name:<{width}}  {each.text}"))
    raise typer.Exit(1 if any(each.state == "missing" for each in findings) else 0)
