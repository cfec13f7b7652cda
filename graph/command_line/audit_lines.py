"""What was repaired or left out of an answer's calls, and what it took to get it, as lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.printable import one_line


def audit_lines(audit: Mapping[str, Any]) -> list[Line]:
    """Return one line for each thing that an answer's audit tells."""
    return [Line("note", one_line(text)) for text in _texts(audit)]


def _texts(audit: Mapping[str, Any]) -> Iterator[str]:
    for each in audit["names"]:
        yield f"{each['requested_name']} is {each['name']} ({each['how']})"
    for each in audit["arguments"]:
        how = ", ".join(each["rungs"]) or "arguments"
        yield f"{each['name']}: repaired by {each['repaired_by']} ({how})"
    if left := audit["left_out"]:
        yield f"{left['omitted']} of {left['total']} calls left out: {', '.join(left['names'])}"
    if asked := audit["round"]:
        came = f"{len(asked['repaired'])} of {len(asked['candidates'])}"
        yield f"the model was asked to repair {asked['kind']}: {came} repaired"
    if failover := audit.get("failover"):
        yield failover_text(failover)


def failover_text(failover: Mapping[str, Any]) -> str:
    """Say how many requests failed of one call, and which model answered in the end."""
    failed = Counter(each["model"] for each in failover["attempts"])
    tries = ", ".join(f"{number} of {model}" for model, number in failed.items())
    end = f"{failover['used']} answered" if failover["used"] else "no model answered"
    return f"{end}; requests that failed: {tries or 'none'}"
