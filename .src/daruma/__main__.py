"""``python -m daruma`` and the ``daruma`` command."""

import atexit
import gc
import os
import sys

# A command makes many objects that stay, and looked for garbage among them a seventh of its time.
gc.set_threshold(200_000, 20, 20)
# At the end they all go at once: to take them apart one by one took a fifth of its time (FA-13).
atexit.register(gc.freeze)

# `python -m` would import from the current folder first, where a task may have written (SE-01).
if __name__ == "__main__" and sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109 - quick
    del sys.path[0]

from daruma.graph.command_line import main  # noqa: E402  # from here on it counts

if __name__ == "__main__":
    main()
