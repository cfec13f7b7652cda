"""How a command talks: it runs the work here, or leaves it to a worker."""

from typing import TYPE_CHECKING

from daruma.graph.command_line.conversation import Conversation

if TYPE_CHECKING:
    from daruma.graph.command_line.submitting import Submitting


def talk_of(*, submit: bool, yes: bool, json: bool) -> "Conversation | Submitting":
    """Return how to talk. Raises a usage error for ``--submit`` with ``--yes``."""
    if not submit:
        return Conversation(yes=yes, json=json)
    from daruma.graph.command_line.submitting import submitting  # it takes the extra ``worker``

    return submitting(yes=yes, json=json)
