"""The ways in which models break their calls, each as a plain change of the text."""

import json
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Args = dict[str, Any]
Damage = Callable[[str, Args, Random], Iterable[str]]


def dumped(args: Any, **options: Any) -> str:
    """Return the text that was meant."""
    return json.dumps(args, ensure_ascii=False, **options)


def apart(text: str) -> list[str]:
    """Return strings and what is between them, in turn."""
    return re.split(r'("(?:[^"\\]|\\.)*")', text)


def outside(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed outside of its strings."""
    return "".join(part if n % 2 else change(part) for n, part in enumerate(apart(text)))


def inside(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed inside of its strings."""
    return "".join(change(part) if n % 2 else part for n, part in enumerate(apart(text)))


def single_quotes(_: str, args: Args, __: Random) -> Iterable[str]:
    text = dumped(args)
    yield repr(args)
    yield inside(text, lambda s: "'" + s[1:-1] + "'")
    yield inside(text, lambda s: "'" + s[1:-1].replace("'", "\\'") + "'")


def python_literals(_: str, args: Args, __: Random) -> Iterable[str]:
    words = {"true": "True", "false": "False", "null": "None"}
    text = outside(dumped(args), lambda s: re.sub(r"true|false|null", lambda m: words[m[0]], s))
    yield text
    yield outside(text, lambda s: re.sub(r"\[([^\[\]]*,[^\[\]]*)\]", r"(\1)", s))


def comments(_: str, args: Args, __: Random) -> Iterable[str]:
    text = dumped(args, indent=1)
    yield outside(text, lambda s: s.replace(",\n", ', // the "next"\n'))
    yield outside(text, lambda s: s.replace(",\n", ", # don't}\n"))
    yield outside(text, lambda s: s.replace("{", "{/* args, \n 1 */"))


def code_fences(tool: str, args: Args, _: Random) -> Iterable[str]:
    yield f"```json\n{dumped(args, indent=2)}\n```"
    yield f"```\n{dumped(args)}\n```\n"
    yield f"```{tool}\n{dumped(args)}```"
    yield f"```json\n{dumped(args)}"


def trailing_commas(_: str, args: Args, __: Random) -> Iterable[str]:
    yield outside(dumped(args), lambda s: re.sub(r"([\]}])", r",\1", s).replace("{,}", "{}"))
    yield dumped(args, indent=1)[:-1] + ",\n}"


def doubled_encoding(_: str, args: Args, __: Random) -> Iterable[str]:
    yield dumped(dumped(args))
    yield json.dumps(json.dumps(args))
    yield dumped(dumped(dumped(args)))
    yield "not an object: " + dumped(dumped(args))
    yield dumped(args).replace('"', '\\"')


def raw_newlines(_: str, args: Args, __: Random) -> Iterable[str]:
    controls = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}
    text = dumped(args)
    yield inside(text, lambda s: re.sub(r"\\(?:n|r|t|.)", lambda m: controls.get(m[0], m[0]), s))
    yield inside(text, lambda s: re.sub(r"\\.", lambda m: "\n" if m[0] == "\\n" else m[0], s))
    yield inside(
        text, lambda s: re.sub(r"\\.", lambda m: "\n" if m[0] == "\\n" else m[0], s, count=1)
    )


def missing_brackets(_: str, args: Args, __: Random) -> Iterable[str]:
    text = dumped(args)
    yield text[:-1]
    yield dumped(args, indent=2)[:-1].rstrip()
    for place in [n for n, each in enumerate(text) if each in "]}"][:-1][:3]:
        yield text[:place] + text[place + 1 :]


def extra_brackets(_: str, args: Args, __: Random) -> Iterable[str]:
    yield dumped(args) + "}"
    yield dumped(args, indent=1) + "\n}"
    yield dumped(args) + "]"
    yield dumped(args) + "}}"


def prose(tool: str, args: Args, _: Random) -> Iterable[str]:
    yield f"Here you are: {dumped(args)}"
    yield f"I'll do that now.\n\n```json\n{dumped(args, indent=1)}\n```\nLet me know!"
    yield f"{tool}({dumped(args)})"
    yield f"{dumped(args)}</tool_call>"
    yield f"{dumped(args)}<|im_end|>"


def duplicates(_: str, args: Args, __: Random) -> Iterable[str]:
    yield dumped(args) + dumped(args)
    yield dumped(args) + "\n" + dumped(args, indent=1)
    yield dumped(args)[:-1] + (", " if args else "") + dumped(args)[1:]


def unescaped_quotes(_: str, args: Args, __: Random) -> Iterable[str]:
    yield inside(dumped(args), lambda s: s.replace('\\"', '"'))
    yield inside(dumped(args), lambda s: s.replace('\\"', '"', 1))


def lone_backslashes(_: str, args: Args, __: Random) -> Iterable[str]:
    yield inside(dumped(args), lambda s: re.sub(r"\\\\(?![nrtbfu\"\\/])", r"\\", s))


def cut_off(_: str, args: Args, random: Random) -> Iterable[str]:
    text = dumped(args)
    places = [n for n in range(2, len(text)) if text[n] in ',]}"']
    for place in random.sample(places, min(4, len(places))):
        yield text[:place]
    for _n in range(3):
        yield text[: random.randrange(1, len(text))]


def wrappers(tool: str, args: Args, _: Random) -> Iterable[str]:
    yield dumped({"arguments": args})
    yield dumped({"name": tool, "arguments": args})
    yield dumped({"tool": tool, "input": dumped(args)})
    yield dumped([{"type": "function", "name": tool, "parameters": args}])


def missing_commas(_: str, args: Args, __: Random) -> Iterable[str]:
    yield outside(dumped(args, indent=1), lambda s: s.replace(",\n", "\n", 1))
    yield outside(dumped(args), lambda s: s.replace(", ", " "))


def unquoted_keys(_: str, args: Args, __: Random) -> Iterable[str]:
    yield "".join(
        part.strip('"') if n % 2 and rest[n + 1].startswith(":") else part
        for rest in [apart(dumped(args))]
        for n, part in enumerate(rest)
    )


_ALL = (
    *(single_quotes, python_literals, comments, code_fences, trailing_commas, doubled_encoding),
    *(raw_newlines, missing_brackets, extra_brackets, prose, duplicates, unescaped_quotes),
    *(lone_backslashes, cut_off, wrappers, missing_commas, unquoted_keys),
)
DAMAGE: dict[str, Damage] = {each.__name__.replace("_", " "): each for each in _ALL}
"""By its class's name: from what was meant to texts that a model may write instead."""
