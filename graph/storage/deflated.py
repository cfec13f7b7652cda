"""Small values made smaller: most of one is names that all others of its kind hold, too.

Postgres compresses nothing that takes less than 2 KB, and knows no value but the one at hand. So a
value is deflated against the names below, which stand for whatever was stored with them: another
choice of names is another form.
"""

import zlib
from typing import Final

from daruma.state.errors import DamagedState

_LEAST: Final = 64
_MOST: Final = 2000
"""Bytes: what is longer, Postgres compresses by itself. Nothing is unpacked to more than this."""

_FAST: Final = 1
_NO_HEADER: Final = -15

_REACH: Final = -13
"""No header either; it looks back from a value's last byte to the first of the names."""

_MEMORY: Final = 6
"""Tables of 64 KB. To get and to clear those of zlib's own choice takes six times as long."""

NAMES: Final = (
    b"\x05\x94\xbflangchain_core.messages.system\xadSystemMessage\xbdlangchain_core.messages.human"
    b"\xacHumanMessage\xa5human\x93\xb2daruma.state.audit\xa5Audit\xaamessage_id\xa5names"
    b"\xacNameChange\xaetool_call_id\xa3how\xa9arguments\xabrepaired_by\xa5rungs\xa8failover"
    b"\x93\xb4daruma.state.failure\xa7Failure\xa4code\xa6detail\xa7message\xa9retryable"
    b"\x93\xb1daruma.state.plan\xa4Plan\xa6phases\xa5Phase\xa8phase_id\xa5title\xa4goal"
    b"\xaacompaction\xacverification\xa7blockers\xa8recovery\xa7counted\xa6failed\xa8required"
    b"\xa6reason\xa9workspace\xa8repaired\xa6exact\xa6search\xa5query\xa5limit\xa4path\xa7command"
    b"\x91\xc8\x02\x01\x93\xaflanggraph.types\xa4Send\x92\xa4tool\xc8\x02\x93\xb6daruma.state.tool_task\xa8Dispatch\x83\xa4task\xc8\x01\x02\x93\xb1daruma.state."
    b"task\xa4Task\x88\xa2id\xd9\xa4goal\xa4mode\xa5react\xa6limits\xc7\x02\x93\xb1daruma.state."
    b"task\xa6Limits\x84\xa5think\xa6verify\xa7reflect\x01\xaeschema_version\x01\xa6review\xc3"
    b"\xaastarted_at\xcbA\xda\xa7request\xd9$\xaeschema_version\x01\xa4call\xc7"
    b"\x91\xc8\x01\x02\x93\xb1daruma.state.step\xa4Step\x88\xa4kind\xa5think\xa7task_id\xd9\xa2ok"
    b"\xc2\xa2at\xcbA\xda\xa7seconds\xcb?\xa9signature\xa5usage\xc7\x02\x93\xb2daruma.state.usage"
    b"\xa5Usage\x86\xa4role\xa4main\xa5model\xacinput_tokens\xadoutput_tokens\xa3usd\xcb\x00\x00"
    b"\x00\x00\x00\x00\x00\x00\xaeschema_version\x01\xa3saw\xb0\xaeschema_version\x01"
    b"\x91\xc8\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xda"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa2id\xd9"
    b"\xactool_call_id\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json"
    b"\x91\xc8\x01\x05\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xa0"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x82\xadfinish_reason\xaatool_calls\xa4stop"
    b"\xaamodel_name\xa4type\xa2ai\xa4name\xc0\xa2id\xd9\xaatool_calls\x91\x84\xa4name\xa4args\x81"
    b"\xa2id\xa5call_\xa4type\xa9tool_call\xb2invalid_tool_calls\x90\xaeusage_metadata\x83"
    b"\xacinput_tokens\xadoutput_tokens\xactotal_tokens\xb3model_validate_json"
    b"\x93\xa4done\x91\xc7\x02\x93\xb6daruma.state.tool_task\xa8ToolTask\x87\xa2id\xa5call_"
    b"\xaamessage_id\xd9:answer:\xa4name\xaerequested_name\xa4args\x81\xa6status\xa4done"
    b"\xaeschema_version\x01"
)
"""As they stand in messages and records; what comes most often comes last."""


def deflated(payload: bytes) -> bytes | None:
    """Return a value in its small form; None for one that is stored as it is."""
    if not _LEAST <= len(payload) <= _MOST:
        return None
    making = zlib.compressobj(_FAST, zlib.DEFLATED, _REACH, _MEMORY, zdict=NAMES)
    made = making.compress(payload) + making.flush()
    return made if len(made) < len(payload) else None


def inflated(made: bytes) -> bytes:
    """Return what was given to ``deflated``. Raises :class:`~daruma.state.errors.DamagedState`."""
    reading = zlib.decompressobj(_NO_HEADER, zdict=NAMES)
    try:
        payload = reading.decompress(made, _MOST)
    except zlib.error as error:
        raise DamagedState(f"a value is not what was stored: {error}") from None
    if not reading.eof or reading.unused_data:
        raise DamagedState("a value is not what was stored")
    return payload
