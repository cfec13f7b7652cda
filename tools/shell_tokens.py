"""The tokens of a shell line, each by its kind: the names of the groups."""

import re
from typing import Final

_TICKS = r"(?P<ticks>`(?:[^`\\]|\\.)*`)"
_VARIABLE = r"(?P<variable>\$(?:\{#?|[\w@*#?$!-])?)"
TOKEN: Final = re.compile(
    r"(?P<continued>\\\n)|(?P<escaped>\\.)|(?P<single>'[^']*')|(?P<refused><<|&>|\$')"
    rf"|(?P<opening>\$\(|[<>]\()|{_TICKS}|{_VARIABLE}|(?P<quote>\")|(?P<redirect>[<>][>&|]?)"
    r"|(?P<group>\()|(?P<close>\))|(?P<end>[;&|\n])|(?P<blank>[ \t]+)|(?P<comment>#[^\n]*)"
    r"|(?P<pattern>[*?]|\[(?!\[?(?:[ \t\n]|$))|\{(?![ \t\n}]|$))"
    r"|(?P<plain>[{\[]|[^\\'\"$`<>();&|\n \t*?\[{#][^\\'\"$`<>();&|\n \t*?\[{]*)",
    re.DOTALL,
)
TOKEN_IN_QUOTES: Final = re.compile(
    rf"(?P<continued>\\\n)|(?P<escaped>\\[$`\"\\])|(?P<opening>\$\()|{_TICKS}|{_VARIABLE}"
    r"|(?P<quote>\")|(?P<literal>\\|[^\\\"$`]+)",
    re.DOTALL,
)
