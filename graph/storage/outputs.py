"""Large outputs in Postgres: one row each, by thread and digest."""

from typing import Final

from daruma.graph.storage.fence import FENCE, Statement
from daruma.graph.storage.sealing import Sealing
from daruma.state.errors import DamagedState

_KEEP: Final = f"""
WITH {FENCE}
INSERT INTO daruma_outputs (thread_id, id, kind, output)
SELECT %(thread)s, %(id)s, %(kind)s, %(output)s FROM fence
ON CONFLICT (thread_id, id) DO NOTHING
"""  # noqa: S608 - of constants alone
_READ: Final = """
SELECT kind, output FROM daruma_outputs WHERE thread_id = %(thread)s AND id = %(id)s
"""


class PostgresOutputs:
    """The outputs beside a saver's checkpoints; ``statement`` says who may write there."""

    def __init__(self, statement: Statement, sealing: Sealing) -> None:
        self._do = statement
        self._sealing = sealing

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        kind, output = self._sealing.seal(("text", text.encode()), (thread_id, "output", id_))
        values = {"thread": thread_id, "id": id_, "kind": kind, "output": output}
        await self._do(_KEEP, values)

    async def read(self, thread_id: str, id_: str) -> str | None:
        """Return an output. Raises :class:`~daruma.state.errors.DamagedState`."""
        found = await self._do(_READ, {"thread": thread_id, "id": id_})
        if not found:
            return None
        row = found[0]
        try:
            place = thread_id, "output", id_
            return self._sealing.open((row["kind"], row["output"]), place)[1].decode()
        except DamagedState as error:
            raise DamagedState(f"the output {id_} of thread {thread_id!r}: {error}") from error
