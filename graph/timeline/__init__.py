"""What happened on a thread, to be looked at: as text, as a picture of the machine, and as a page.

A run is read from its checkpoints and messages into ``Moment`` and ``Superstep`` records, which
are pure data; ``Timeline`` renders them for a terminal, a notebook, or one HTML file.
"""

from daruma.graph.timeline._moments import (
    Moment,
    audit_notes,
    call_title,
    compaction_moment,
    render_duration,
    render_duration_if_any,
    todo_line,
)
from daruma.graph.timeline._record import Record, member_record, members_in, record_of
from daruma.graph.timeline._timeline import (
    Picture,
    Timeline,
    read_timeline,
    show_in_notebooks,
    timeline_of,
)
from daruma.graph.timeline._walk import (
    Superstep,
    edges_walked,
    nodes_walked,
    read_snapshot,
    read_supersteps,
    supersteps_of,
)

__all__ = [
    "Moment",
    "Picture",
    "Record",
    "Superstep",
    "Timeline",
    "audit_notes",
    "call_title",
    "compaction_moment",
    "edges_walked",
    "member_record",
    "members_in",
    "nodes_walked",
    "read_snapshot",
    "read_supersteps",
    "read_timeline",
    "record_of",
    "render_duration",
    "render_duration_if_any",
    "show_in_notebooks",
    "supersteps_of",
    "timeline_of",
    "todo_line",
]
