"""Proofs of the sandbox on a machine that is too busy: ``python -m tests.sandbox_under_load [N]``.

N proofs (50) at each share of a processor, and 16 at once: each must prove the level that an idle
machine proves, or end in an error; never in a weaker level (SE-04).
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from daruma.tools.commands._process import members

SHARES: Final = (0.05, 0.10, 0.20)
AT_ONCE: Final = 16
SIDE_BY_SIDE: Final = 4  # each with its own share
PERIOD: Final = 0.1  # seconds, as the kernel's own

PROOF: Final = """
import asyncio
from daruma.tools.sandbox import open_best
from daruma.tools.sandbox import SandboxUnavailable
try:
    print(asyncio.run(open_best()).level)
except SandboxUnavailable as error:
    print("error", error)
"""


def prove(share: float = 1.0) -> str:
    """Return what a proof comes to with that share of a processor: a level, or ``error``.

    It is held by a quota where there is one, else by stopping and continuing the processes.
    """
    with ExitStack() as stack:
        group = None
        if share < 1:
            with suppress(OSError, StopIteration):
                group = stack.enter_context(_quota(share))
        process = _started(f"echo $$ > {group}/cgroup.procs && " if group else "")
        if share < 1 and group is None:
            _stop_and_continue(process, share)
        said = process.communicate()[0]
    return (said.split() or [f"exit {process.returncode}"])[0]


@contextmanager
def _quota(share: float) -> Iterator[Path]:
    places = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
    within = next(each for each in places if os.access(each / "cgroup.procs", os.W_OK))
    group = Path(tempfile.mkdtemp(prefix="daruma-load-", dir=within))
    try:
        quota, period = round(share * PERIOD * 1e6), round(PERIOD * 1e6)
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota} {period}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        yield group
    finally:
        group.rmdir()


def _started(before: str = "") -> "subprocess.Popen[str]":
    script = f'{before}exec "$0" -c "$1"'
    argv = ["/bin/sh", "-c", script, sys.executable, PROOF]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def _stop_and_continue(process: "subprocess.Popen[str]", share: float) -> None:
    ended = threading.Event()

    def cycle() -> None:
        while process.poll() is None:
            for number, seconds in (
                (signal.SIGSTOP, PERIOD * (1 - share)),
                (signal.SIGCONT, PERIOD * share),
            ):
                for pid in members(process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                ended.wait(seconds)

    threading.Thread(target=cycle, daemon=True).start()


def proofs(number: int, at_once: int, share: float = 1.0) -> Counter[str]:
    """Return how often each came of it."""
    with ThreadPoolExecutor(at_once) as pool:
        return Counter(pool.map(prove, [share] * number))


def main(number: int) -> int:
    """Print a line for each load; return 1 if anything but the best level or an error came."""
    best, fell = prove(), False
    for share, at_once in (*((each, SIDE_BY_SIDE) for each in SHARES), (1.0, AT_ONCE)):
        found = proofs(number, at_once, share)
        sys.stdout.write(f"share {share:.0%}, {at_once} at once: {dict(found)}\n")
        sys.stdout.flush()
        fell |= not found.keys() <= {best, "error"}
    return int(fell)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
