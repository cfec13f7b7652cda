"""The ``daruma`` command: its commands, the questions it asks on a terminal, and what it shows of a
run, a thread, or what was learned.

Its modules import the machine only when a command needs it, so that ``--help`` is quick. Nothing
else imports from here but the entry point, ``main``.
"""

from daruma.graph.command_line._app import main

__all__ = ["main"]
