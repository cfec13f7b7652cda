"""``python -m tests.chaos`` prints the published table, and why runs failed.

``--tasks`` and ``--rates`` make it shorter, ``--first`` takes other tasks and other faults.
"""

import argparse
import sys

from tests.chaos.measuring import SYSTEMS, measure

HEAD = "| faults | agent | completed | wrong | failed, and said so | raised | requests a task |"


def main() -> None:
    """Measure every system at every rate, in both ways."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--tasks", type=int, default=200)
    given.add_argument("--first", type=int, default=0)
    given.add_argument("--rates", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3])
    given.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    args = given.parse_args()
    tasks = range(args.first, args.first + args.tasks)
    lines, reasons = [HEAD, "| --- " * 7 + "|"], list[str]()
    for rate in args.rates:
        for system in args.systems:
            for way in ("invoke", "stream"):
                found = measure(system, rate, tasks, streaming=way == "stream")
                told = [found.verdicts[name] for name in ("right", "wrong", "failed", "raised")]
                cells = [f"{rate:.0%}", f"{system}, {way}", *told, f"{found.requests:.1f}"]
                lines.append(f"| {' | '.join(map(str, cells))} |")
                sys.stderr.write(f"{lines[-1]} {found.seconds:.0f} s\n")
                reasons += [
                    f"{rate:.0%} {system}, {way}: {n} {why}"
                    for why, n in found.reasons.most_common()
                ]
    sys.stdout.write("\n".join([*lines, "", *reasons, ""]))


if __name__ == "__main__":
    main()
