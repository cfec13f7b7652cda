"""Carries out several ``daruma`` commands in one process, as a person in that folder would.

``python driver.py FILE`` reads a list of commands from a file of JSON, and writes how each ended
behind it. It is started by its path: the folder it is called in is not where Python looks first.
"""

import contextlib
import io
import json
import sys
import traceback
from pathlib import Path

from daruma.graph.command_line.app import main


def call(args: list[str]) -> dict[str, object]:
    """Carry out one command."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(args)
        except SystemExit as end:
            code = end.code or 0
        except BaseException:  # noqa: BLE001 - whatever gets out is what we are looking for
            traceback.print_exc()
    return {"args": args, "code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(json.dumps([call(each) for each in json.loads(file.read_text())]))
