"""What was changed or left out between what the model said and what was run, on record (TL-11)."""

from dataclasses import asdict
from typing import Any, Final, Literal

from daruma.state.failover import Failover
from daruma.state.record import record

MAX_NAMES: Final = 20
"""Changed names of one answer that are kept (TL-04)."""
SAMPLE: Final = 10
"""Names of left-out calls that are kept, each at most ``SAMPLE_BYTES`` of UTF-8 (TL-16)."""
SAMPLE_BYTES: Final = 200


@record
class NameChange:
    """One call whose tool was found under another name than the one requested."""

    tool_call_id: str
    requested_name: str
    name: str
    how: str
    schema_version: int = 1


@record
class ArgumentRepair:
    """One call whose arguments were repaired, by rules or by a model; ``rungs`` says how."""

    tool_call_id: str
    name: str
    repaired_by: Literal["rules", "model"]
    rungs: tuple[str, ...] = ()
    schema_version: int = 1


@record
class LeftOut:
    """Calls beyond the limit of one answer: none of them ran, and the history has none of them."""

    total: int
    executed: int
    omitted: int
    limit: int
    names: tuple[str, ...]
    schema_version: int = 1


@record
class RepairRound:
    """One model call for repair: which calls it was asked about, and what came of them.

    ``attempt`` counts from 1. ``cut`` says that there were more names or calls than fit the limits.
    """

    kind: Literal["names", "arguments"]
    attempt: int
    candidates: tuple[str, ...]
    repaired: tuple[str, ...]
    failed: tuple[str, ...]
    cut: bool = False
    schema_version: int = 1


@record
class Audit:
    """All of that for one answer of the model; ``message_id`` is that answer, empty if none came.

    ``failover`` is there for a call that did not go through at once.
    """

    message_id: str
    names: tuple[NameChange, ...] = ()
    names_cut: bool = False
    arguments: tuple[ArgumentRepair, ...] = ()
    left_out: LeftOut | None = None
    round: RepairRound | None = None
    failover: Failover | None = None
    schema_version: int = 1

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.names or self.arguments or self.left_out or self.round or self.failover)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


_NOT_CHARGED: Final = ("usage", None)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        told = {k: v for k, v in value.items() if k != "schema_version" and (k, v) != _NOT_CHARGED}
        return {key: _plain(each) for key, each in told.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
