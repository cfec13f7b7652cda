"""What was meant: calls as agents make them, with all that makes quoting hard."""

from typing import Any

MODULE = '''"""Doc of it."""

import re  # the comment, with a "quote"

URL = "https://example.org/a//b#c"  // 2
PATH = 'C:\\\\temp\\\\new'


def greet(name: str = "World") -> str:
\tif not name:
\t\treturn ''
    return f"Hello, {name}!\\n"  # {braces}, [brackets]
'''

Call = tuple[str, dict[str, Any]]


def _edit(command: str, path: str, **more: Any) -> Call:
    return "str_replace_editor", {"command": command, "path": path} | more


def _of(name: str, **args: Any) -> Call:
    return name, args


CALLS: list[Call] = [
    _edit("create", "src/app.py", file_text=MODULE),
    _edit("create", "a.txt", file_text="one\r\ntwo, 'x' and three\r\n"),
    _edit("create", "grüße.md", file_text="# Grüße 🎉\n\n- 世界: “so”\n"),
    _edit("str_replace", "src/calc.py", old_str="    return a - b", new_str="    return a + b"),
    _edit(
        "str_replace",
        "x.json",
        old_str='{"a": 1, "b": [2]}',
        new_str='{"a": 1,\n "b": [2, 3]}',
    ),
    _edit("str_replace", "t.py", old_str='print("a")\n', new_str=""),
    _edit("view", "src/app.py", view_range=[1, 40]),
    _edit("view", "."),
    _edit("insert_at_line", "a.py", insert_line=3, insert_text="x = {'k': \"v\"}\n"),
    _edit("undo", "src/app.py"),
    _of("run_command", command="pytest -x -q"),
    _of("run_command", command='grep -rn "TODO" src | head -5', timeout=30.5),
    _of("run_command", command="echo 'it'\\''s' && printf \"%s\\n\" x", cwd="src"),
    _of("run_command", command="python - <<'E'\nprint('hi')\nE\n", timeout=60),
    _of("search", pattern="def greet"),
    _of("search", pattern=r"\d+\.\w+", glob="*.py"),
    _of("search", pattern="it's", literal=True, path="src"),
    _of("search", pattern=None, literal=False, glob="**/*.{ts,tsx}", path="."),
    _of("run_tests"),
    _of(
        "create_event",
        title="Review",
        date="2026-11-21",
        attendees=["ann@example.org", "bob@example.org"],
        duration_minutes=45,
        priority="high",
        location={"city": "Kraków", "room": "3.14"},
        notes='Bring:\n- laptop\n- "the" list',
    ),
    _of("create_event", title="Call", date="2026-12-01T09:30", attendees=["ann"], location=None),
    _of(
        "query_orders",
        customer_id="007",
        status="open",
        limit=5,
        min_total=12.5,
        conditions=[
            {"field": "total", "op": "gt", "value": 10.5},
            {"field": "items", "op": "lt", "value": 3},
        ],
    ),
    _of("query_orders", customer_id="C-1", limit=12345678901234567890),
    _of(
        "send_message",
        to=["ops@example.org"],
        subject="Disk: 95 %",
        body="Hello,\n\nit's full. See https://example.org/#disk\n\nBye",
        urgent=True,
        headers={"X-Trace": "a:b", "Reply-To": "me@example.org"},
    ),
    _of("get_weather", city="Paris", days=3),
    _of("get_weather", days=1, city="Rio de Janeiro"),
]
