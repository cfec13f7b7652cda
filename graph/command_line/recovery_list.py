"""What was tried against failures: as lines on a terminal, tab-separated elsewhere, or as JSON."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import typer
from rich.console import Console

from daruma.graph.command_line.paper import Line, Mark, Paper
from daruma.graph.command_line.printable import one_line
from daruma.tools.evolution.recoveries import KnownAction, RecoveryPattern, confidence, name_of


def as_json(patterns: Iterable[RecoveryPattern]) -> str:
    """Return the patterns as one JSON array, each action with its confidence of now."""
    return json.dumps([_plain(each) for each in patterns])


def print_recoveries(
    patterns: Sequence[RecoveryPattern], *, mark: Mark = "line", paper: Paper | None = None
) -> None:
    """Print one line for each action: id, what was done, how sure, how often it worked."""
    paper = paper or Paper(Console(highlight=False))
    for pattern in patterns:
        for action in pattern.actions:
            told = _told(pattern, action)
            if paper.terminal:
                about = " · ".join(one_line(text, 100) for text in told[1:-1])
                paper.put(Line(mark, f"{told[0]}  {one_line(told[-1], 400)}", about))
            else:
                line = "\t".join(one_line(text, 4_000) for text in told)
                typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if not patterns:
        paper.put(Line("note", "nothing was tried against failures here"))


def _told(pattern: RecoveryPattern, action: KnownAction) -> tuple[str, ...]:
    tried = action.worked + action.failed
    done = f"{action.strategy} {action.instead}".rstrip()
    sure = f"{confidence(action, time.time()):.2f}"
    often = f"worked {action.worked} of {tried}"
    return _id(pattern), done, pattern.actor, sure, often, pattern.signature


def _plain(pattern: RecoveryPattern) -> dict[str, object]:
    now = time.time()
    actions = [
        {key: value for key, value in asdict(each).items() if key != "schema_version"}
        | {"confidence": confidence(each, now)}
        for each in pattern.actions
    ]
    about = {"actor": pattern.actor, "signature": pattern.signature, "last_at": pattern.last_at}
    return {"id": _id(pattern), **about, "owner": pattern.owner, "actions": actions}


def _id(pattern: RecoveryPattern) -> str:
    return name_of(pattern.actor, pattern.signature)
