"""The long form: ``python -m tests.snapshot_fuzz --restores 10000 [--first SEED]``."""

import argparse
import os
import sys
import time
from collections import Counter

from tests.snapshot_fuzz.rounds import in_memory, rounds

KINDS = ("exact", "declared", "needlessly declared", "refused", "silently wrong")


def main() -> int:
    """Restore random workspaces, print what came of it, and every fault."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--restores", type=int, default=1000)
    asked.add_argument("--first", type=int, default=0, help="the first seed")
    options = asked.parse_args()
    counted: Counter[str] = Counter()
    faults, seed, begun = 0, options.first, time.monotonic()
    with in_memory() as folder:
        os.environ["DARUMA_DATA_DIR"] = str(folder / "data")
        while sum(counted[each] for each in ("exact", "declared", "refused")) < options.restores:
            more, found = rounds(folder, range(seed, seed + 20))
            counted, seed, faults = counted + more, seed + 20, faults + len(found)
            for fault in found:
                print(fault, flush=True)  # noqa: T201 - the report of a command
    number = sum(counted[each] for each in ("exact", "declared", "refused"))
    took = time.monotonic() - begun
    print(f"restores {number} (seeds {options.first} to {seed - 1}, {took:.0f} s)")  # noqa: T201
    for kind in KINDS:
        print(f"{kind} {counted[kind]}")  # noqa: T201
    for kind in sorted(counted.keys() - {*KINDS}):
        print(f"  {kind} {counted[kind]}")  # noqa: T201
    print(f"faults {faults}")  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
