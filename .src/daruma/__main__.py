"""``python -m daruma`` and the ``daruma`` command."""

import gc

# A command makes many objects that stay, and looked for garbage among them a seventh of its time.
gc.set_threshold(50_000, 20, 20)

from daruma.graph.command_line.app import main  # noqa: E402  # from here on it counts

if __name__ == "__main__":
    main()
