"""``python -m daruma`` and the ``daruma`` command."""

from daruma.graph.command_line.app import main

if __name__ == "__main__":
    main()
