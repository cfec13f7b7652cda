"""``python -m daruma`` and the ``daruma`` command."""

from daruma.graph.cli import main

if __name__ == "__main__":
    main()
