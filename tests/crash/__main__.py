"""Kill each scene before and after every write, and at random moments; print the published table.

``python -m tests.crash [MOMENTS] [SCENE...]``: 100 moments and all scenes if not said, which takes
an hour on two processors.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.crash.scenes import SCENES
from tests.crash.sweep import difference, moments, points, swept, untouched

from daruma.graph.storage._embedded import embedded_postgres

HEAD = (
    "| task | kills at writes | at random moments | asked: outcome unknown | otherwise than never "
    "killed |"
)


def main(number: int, scenes: list[str]) -> None:
    """Print a line for each scene, and each difference to standard error."""
    sys.stdout.write(f"{HEAD}\n| --- | --- | --- | --- | --- |\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder, "home")
        home.mkdir()
        with embedded_postgres(Path(folder)) as url:
            for scene in scenes or SCENES:
                sys.stdout.write(row(url, home, scene, number) + "\n")
                sys.stdout.flush()


def row(url: str, home: Path, scene: str, number: int) -> str:
    """Kill one scene in all these ways, and count."""
    whole = untouched(url, home, scene)
    at_writes, at_random = points(whole), moments(whole, number)
    killed = swept(url, home, scene, [*at_writes, *at_random])
    differing = [(life["when"], found) for life in killed if (found := difference(life, whole))]
    for when, found in differing:
        sys.stderr.write(f"{scene} {when}: {found}\n")
    asked = sum(bool(life["seen"]["doubts"]) for life in killed)
    return f"| {scene} | {len(at_writes)} | {len(at_random)} | {asked} | {len(differing)} |"


def _asked(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("moments", nargs="?", type=int, default=100, metavar="MOMENTS")
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    asked = parser.parse_args(args)
    if unknown := set(asked.scenes) - set(SCENES):
        parser.error(f"no scene {', '.join(sorted(unknown))}: there are {', '.join(SCENES)}")
    return asked


if __name__ == "__main__":
    asked = _asked(sys.argv[1:])
    main(asked.moments, asked.scenes)
