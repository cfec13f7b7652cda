"""``daruma doctor``: what is there, what is missing, and what to do about it."""

import asyncio
import json as json_format

import typer

from daruma.graph.command_line.options import AsJson


def doctor(*, json: AsJson = False) -> None:
    """Check what Daruma needs: Python, packages, database, model, programs."""
    from rich.console import Console

    from daruma.graph.command_line.diagnosis import diagnose
    from daruma.graph.command_line.paper import Line, Mark, Paper

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
