"""What happened on a thread, to be looked at: as text, as a picture of the machine, and as a page.

A run is read from its checkpoints and messages into ``Moment`` and ``Superstep`` records, which
are pure data; ``Timeline`` renders them for a terminal, a notebook, or one HTML file.
"""

from daruma.graph.timeline._events import Call, event_moment, first_paths
from daruma.graph.timeline._moments import (
    Moment,
    call_moment,
    call_title,
    chosen_by,
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
    "Call",
    "Moment",
    "Picture",
    "Record",
    "Superstep",
    "Timeline",
    "call_moment",
    "call_title",
    "chosen_by",
    "edges_walked",
    "event_moment",
    "first_paths",
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
