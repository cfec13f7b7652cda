"""Carries out several ``daruma`` commands in one process, as a person in that folder would.

``python driver.py FILE SECONDS`` reads a list of commands from a file of JSON, and writes over it
how each ended. It is started by its path: the folder it is called in is not where Python looks
first. What still runs after SECONDS says on standard error where it is.
"""

import contextlib
import faulthandler
import io
import json
import sys
import time
import traceback
from pathlib import Path

from daruma.graph.command_line import main


def call(args: list[str]) -> dict[str, object]:
    """Carry out one command."""
    out, err, start = io.StringIO(), io.StringIO(), time.process_time()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(args)
        except SystemExit as end:
            code = end.code or 0
        except BaseException:  # noqa: BLE001 - whatever gets out is what we are looking for
            traceback.print_exc()
    own = time.process_time() - start
    said = {"out": out.getvalue(), "err": err.getvalue()}
    return {"args": args, "code": code, "own_seconds": own, **said}


if __name__ == "__main__":
    file = Path(sys.argv[1])
    faulthandler.dump_traceback_later(float(sys.argv[2]))
    file.write_text(json.dumps([call(each) for each in json.loads(file.read_text())]))
