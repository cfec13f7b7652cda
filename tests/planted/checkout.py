"""A private copy of the checkout, with a Python of its own that imports the copy."""

import os
import re
import shutil
import signal
import sysconfig
import venv
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired, run
from typing import Final

from tests.planted.mistakes import ROOT, Mistake

_PYTEST: Final = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
_NO_TESTS: Final = 5
_TO_END: Final = 20
"""Seconds that tests have to end by themselves once they are interrupted."""


class Checkout:
    """A copy in ``folder`` of what git has or would add: the work tree itself is never changed."""

    def __init__(self, folder: Path) -> None:
        self._root, self._temporary = folder / "checkout", folder / "t"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = run(listed, cwd=ROOT, check=True, stdout=PIPE, text=True).stdout
        for name in filter(None, names.split("\0")):
            if os.path.lexists(ROOT / name):
                (self._root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._root / name, follow_symlinks=False)
        venv.create(self._root / ".venv", symlinks=True)
        self._python = str(self._root / ".venv" / "bin" / "python")
        site = next((self._root / ".venv" / "lib").glob("*/site-packages"))
        others = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
        (site / "checkout.pth").write_text(f"{self._root / '.src'}\n{others}\n")
        # By content: a planted line may have the length and the second of the one before it.
        how = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
        run([self._python, *how], cwd=self._root, check=True)

    def plant(self, mistake: Mistake, tests: Collection[str], most: int, limit: float) -> list[str]:
        """Run tests with a mistake in the copy, until ``most`` of them have failed: return them."""
        file = self._root / mistake.file
        text = file.read_text(encoding="utf-8")
        file.write_text(mistake.planted(text) or text, encoding="utf-8")
        try:
            return self.test(tests, f"--maxfail={most}", limit=limit)
        finally:
            file.write_text(text, encoding="utf-8")

    def test(self, tests: Collection[str], *options: str, limit: float) -> list[str]:
        """Return which tests fail; in the place of a name, how pytest ended if it named none."""
        self._temporary.mkdir(mode=0o755)
        started = Popen(
            [self._python, *_PYTEST, *options, *tests],
            cwd=self._root,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self._temporary)},
            text=True,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except TimeoutExpired:
            return ["out of time"]
        finally:
            self._end(started)
        failed = list(dict.fromkeys(_FAILED.findall(output)))
        code = started.returncode  # without a test that was run, nothing was caught
        return failed or ([f"exit code {code}"] if code not in {0, _NO_TESTS} else [])

    def _end(self, tests: Popen[str]) -> None:
        """End what is left of a run that is out of time, with the servers of its own."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with suppress(TimeoutExpired, ProcessLookupError):
                if tests.poll() is None:
                    os.killpg(tests.pid, number)
                    tests.communicate(timeout=_TO_END)
        for folder, _, names in os.walk(self._temporary):  # past folders too deep to be named
            if "postmaster.pid" in names:
                with suppress(OSError, ValueError):
                    text = Path(folder, "postmaster.pid").read_text(encoding="utf-8")
                    os.kill(int(text.split()[0]), signal.SIGQUIT)
        shutil.rmtree(self._temporary, ignore_errors=True)
