"""What a task would have been given, had learning not only been observing."""

from daruma.state.lessons import Lessons
from daruma.state.record import record


@record
class WouldHave:
    """The lessons that a task would have been given, and what would have been tried for it.

    ``actions`` are the learned actions against failures that the task had, one line each.
    """

    lessons: Lessons
    actions: tuple[str, ...] = ()
    schema_version: int = 1

    @property
    def anything(self) -> bool:
        """Whether anything would have been fed back."""
        return self.lessons.given or bool(self.actions)
