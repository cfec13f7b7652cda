"""How a bill is split."""


def split(cents: int, people: int) -> list[int]:
    """Return what each person pays, in cents."""
    share = cents // people
    return [share] * people
