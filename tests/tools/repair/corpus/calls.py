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

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("str_replace_editor", {"command": "create", "path": "src/app.py", "file_text": MODULE}),
    (
        "str_replace_editor",
        {"command": "create", "path": "a.txt", "file_text": "one\r\ntwo, 'x' and three\r\n"},
    ),
    (
        "str_replace_editor",
        {"command": "create", "path": "grüße.md", "file_text": "# Grüße 🎉\n\n- 世界: “so”\n"},
    ),
    (
        "str_replace_editor",
        {
            "command": "str_replace",
            "path": "src/calc.py",
            "old_str": "    return a - b",
            "new_str": "    return a + b",
        },
    ),
    (
        "str_replace_editor",
        {
            "command": "str_replace",
            "path": "x.json",
            "old_str": '{"a": 1, "b": [2]}',
            "new_str": '{"a": 1,\n "b": [2, 3]}',
        },
    ),
    (
        "str_replace_editor",
        {"command": "str_replace", "path": "t.py", "old_str": 'print("a")\n', "new_str": ""},
    ),
    ("str_replace_editor", {"command": "view", "path": "src/app.py", "view_range": [1, 40]}),
    ("str_replace_editor", {"command": "view", "path": "."}),
    (
        "str_replace_editor",
        {
            "command": "insert_at_line",
            "path": "a.py",
            "insert_line": 3,
            "insert_text": "x = {'k': \"v\"}\n",
        },
    ),
    ("str_replace_editor", {"command": "undo", "path": "src/app.py"}),
    ("run_command", {"command": "pytest -x -q"}),
    ("run_command", {"command": 'grep -rn "TODO" src | head -5', "timeout": 30.5}),
    ("run_command", {"command": "echo 'it'\\''s' && printf \"%s\\n\" x", "cwd": "src"}),
    ("run_command", {"command": "python - <<'E'\nprint('hi')\nE\n", "timeout": 60}),
    ("search", {"pattern": "def greet"}),
    ("search", {"pattern": r"\d+\.\w+", "glob": "*.py"}),
    ("search", {"pattern": "it's", "literal": True, "path": "src"}),
    ("search", {"pattern": None, "literal": False, "glob": "**/*.{ts,tsx}", "path": "."}),
    ("run_tests", {}),
    (
        "create_event",
        {
            "title": "Review",
            "date": "2026-11-21",
            "attendees": ["ann@example.org", "bob@example.org"],
            "duration_minutes": 45,
            "priority": "high",
            "location": {"city": "Kraków", "room": "3.14"},
            "notes": 'Bring:\n- laptop\n- "the" list',
        },
    ),
    (
        "create_event",
        {"title": "Call", "date": "2026-12-01T09:30", "attendees": ["ann"], "location": None},
    ),
    (
        "query_orders",
        {
            "customer_id": "007",
            "status": "open",
            "limit": 5,
            "min_total": 12.5,
            "conditions": [
                {"field": "total", "op": "gt", "value": 10.5},
                {"field": "items", "op": "lt", "value": 3},
            ],
        },
    ),
    ("query_orders", {"customer_id": "C-1", "limit": 12345678901234567890}),
    (
        "send_message",
        {
            "to": ["ops@example.org"],
            "subject": "Disk: 95 %",
            "body": "Hello,\n\nit's full. See https://example.org/#disk\n\nBye",
            "urgent": True,
            "headers": {"X-Trace": "a:b", "Reply-To": "me@example.org"},
        },
    ),
    ("get_weather", {"city": "Paris", "days": 3}),
    ("get_weather", {"days": 1, "city": "Rio de Janeiro"}),
]
