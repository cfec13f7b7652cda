"""Reading a person's choice: one letter of those that are offered, or words."""

from collections.abc import Callable, Mapping

Read = Callable[[str], str]


class Later(Exception):
    """Raised when a person leaves a question open; it is no error."""


def choice(offered: Mapping[str, str], read: Read) -> str:
    """Return the letter that is chosen; ``offered`` names each, as in ``{"c": "[c]onfirm"}``.

    Raises :class:`Later` for the letter ``l``.
    """
    while True:
        answer = read(f"  {', '.join(offered.values())}: ").strip().lower()[:1]
        if answer == "l":
            raise Later
        if answer and answer in offered:
            return answer


def words(prompt: str, read: Read) -> str:
    """Return what is typed. Raises :class:`Later` for nothing."""
    text = read(f"  {prompt}: ").strip()
    if not text:
        raise Later
    return text
