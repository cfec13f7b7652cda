"""Calls in the notations of open models, right, broken and cut, and honest answers that quote them.

Usage: ``python -m tests.notations [TIMES [FIRST_SEED]]``; 20,000 answers by default. Prints what
became of them.

An answer that makes calls ends in exactly these calls, or in broken ones that tell of all of them
(TL-18); one that only speaks of calls stays an answer.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.state.calls import ToolTask
from daruma.tools.calls import VisibleTools, read_answer

Made = tuple[str, dict[str, Any]]
Quote = Callable[[Any], str]

OFFER: Final = VisibleTools(tools=tuple(TOOLS.values()))


def tasks_of(text: str, finish: str = "stop") -> tuple[ToolTask, ...]:
    """Return what becomes of an answer."""
    message = AIMessage(text, response_metadata={"finish_reason": finish})
    return read_answer(message, "m", OFFER)[1]


def runs(task: ToolTask) -> bool:
    """Whether a task runs, at once or when a person says so."""
    return task.status in ("ready", "awaiting")


# --- Three quotings.


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    """A call whose arguments are JSON inside of a string, as OpenAI's protocol has them."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_text, value))}]"
    if "function" in value:
        return as_json({**value, "function": json.loads(as_text(value["function"]))})
    key = next((k for k in value if isinstance(value[k], dict)), None)
    return as_json({**value, key: as_json(value[key])} if key else as_json(value))


QUOTES: Final[dict[str, Quote]] = {"json": as_json, "python": repr, "in a string": as_text}


# --- Notations: how some calls are written, by a quoting.


def plain(call: Made, arguments: str = "arguments") -> dict[str, Any]:
    return {"name": call[0], arguments: call[1]}


def each(calls: Sequence[Made], quote: Quote, form: str, between: str = "\n", **more: str) -> str:
    return between.join(form.replace("CALL", quote(plain(call, **more))) for call in calls)


def python(call: Made, quote: Quote) -> str:
    if quote is as_text:
        return f"{call[0]}({as_json(call[1])})"
    return (
        f"{call[0]}({', '.join(f'{key}={python_value(v, quote)}' for key, v in call[1].items())})"
    )


def python_value(value: Any, quote: Quote) -> str:
    return quote(value) if isinstance(value, str) else repr(value)


def named(call: Made, quote: Quote, form: str) -> str:
    arguments = as_json(as_json(call[1])) if quote is as_text else quote(call[1])
    return form.replace("«NAME»", call[0]).replace("«ARGS»", arguments)


def in_tags(call: Made, form: Sequence[str]) -> str:
    opening, argument, closing = form
    given = "".join(
        argument.replace("KEY", key).replace("VALUE", v if isinstance(v, str) else as_json(v))
        for key, v in call[1].items()
    )
    return f"{opening.replace('NAME', call[0])}{given}{closing}"


INVOKE: Final = ('<invoke name="NAME">\n', '<parameter name="KEY">VALUE</parameter>\n', "</invoke>")
QWEN: Final = ("<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>")
ANTML: Final = tuple(re.sub(r"(</?)(?=[ip])", r"\1antml:", part) for part in INVOKE)
DSML: Final = tuple(
    re.sub(r"(</?)(?=[ip])", r"\1｜DSML｜", part).replace('KEY"', 'KEY" string="true"')
    for part in INVOKE
)
GLM: Final = ("NAME\n", "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n", "")

Notation = Callable[[Sequence[Made], Quote], str]
NOTATIONS: Final[dict[str, Notation]] = {
    "bare": lambda calls, q: each(calls, q, "CALL"),
    "fence": lambda calls, q: each(calls, q, "```json\nCALL\n```"),
    "one fence": lambda calls, q: f"```json\n{each(calls, q, 'CALL')}\n```",
    "list": lambda calls, q: (
        f"[{each(calls, q, 'CALL', ', ')}]" if q is not as_text else q([*map(plain, calls)])
    ),
    "tool_calls": lambda calls, q: f'{{"tool_calls": [{each(calls, q, "CALL", ", ")}]}}',
    "<tool_call>": lambda calls, q: each(calls, q, "<tool_call>\nCALL\n</tool_call>"),
    "<function_call>": lambda calls, q: each(calls, q, "<function_call>CALL</function_call>", ""),
    "<tool_calls>": lambda calls, q: f"<tool_calls>[{each(calls, q, 'CALL', ', ')}]</tool_calls>",
    "[TOOL_CALLS]": lambda calls, q: f"[TOOL_CALLS] [{each(calls, q, 'CALL', ', ')}]",
    "[TOOL_CALLS] name": lambda calls, q: "".join(
        named(call, q, "[TOOL_CALLS]«NAME»[ARGS]«ARGS»") for call in calls
    ),
    "<|python_tag|>": lambda calls, q: (
        f"<|python_tag|>{each(calls, q, 'CALL', '; ', arguments='parameters')}<|eom_id|>"
    ),
    "<|python_tag|> call": lambda calls, q: (
        f"<|python_tag|>{'; '.join(python(call, q) for call in calls)}"
    ),
    "python fence": lambda calls, q: (
        "```python\n" + "\n".join(python(call, q) for call in calls) + "\n```"
    ),
    "pythonic": lambda calls, q: f"[{', '.join(python(call, q) for call in calls)}]",
    "tool_code": lambda calls, q: (
        "```tool_code\n" + "\n".join(f"print({python(call, q)})" for call in calls) + "\n```"
    ),
    "params": lambda calls, q: each(calls, q, "CALL", arguments="params"),
    "args": lambda calls, q: each(calls, q, "<tool_call>CALL</tool_call>", arguments="args"),
    "input": lambda calls, q: each(calls, q, "```json\nCALL\n```", arguments="input"),
    "openai": lambda calls, q: q([{"type": "function", "function": plain(c)} for c in calls]),
    "<function=>": lambda calls, q: "\n".join(
        named(call, q, "<function=«NAME»>«ARGS»</function>") for call in calls
    ),
    "<invoke>": lambda calls, _: "\n".join(
        ["<function_calls>", *(in_tags(call, INVOKE) for call in calls), "</function_calls>"]
    ),
    "qwen coder": lambda calls, _: "\n".join(
        f"<tool_call>\n{in_tags(call, QWEN)}\n</tool_call>" for call in calls
    ),
    "glm": lambda calls, _: "\n".join(
        f"<tool_call>{in_tags(call, GLM)}</tool_call>" for call in calls
    ),
    "antml": lambda calls, _: "\n".join(
        ["<function_calls>", *(in_tags(c, ANTML) for c in calls), "</function_calls>"]
    ),
    "dsml": lambda calls, _: "\n".join(
        [
            "<｜DSML｜function_calls>",
            *(in_tags(c, DSML) for c in calls),
            "</｜DSML｜function_calls>",
        ]
    ),
    "phi": lambda calls, q: f"<|tool_call|>[{each(calls, q, 'CALL', ', ')}]<|/tool_call|>",
    "functools": lambda calls, q: f"functools[{each(calls, q, 'CALL', ', ')}]",
    "nemotron": lambda calls, q: f"<TOOLCALL>[{each(calls, q, 'CALL', ', ')}]</TOOLCALL>",
    "longcat": lambda calls, q: each(calls, q, "<longcat_tool_call>CALL</longcat_tool_call>"),
    "qwen agent": lambda calls, q: "\n".join(
        named(call, q, "✿FUNCTION✿: «NAME»\n✿ARGS✿: «ARGS»") for call in calls
    ),
    "react": lambda calls, q: "\n".join(
        named(call, q, "Action: «NAME»\nAction Input: «ARGS»") for call in calls
    ),
    "command-r": lambda calls, q: (
        f"Action: ```json\n[{each(calls, q, 'CALL', ', ', arguments='parameters')}]\n```"
    ),
    "a message": lambda calls, q: (
        '{"role": "assistant", "content": null, "thought": "hm", "tool_calls": '
        f"[{each(calls, q, 'CALL', ', ')}]}}"
    ),
    "harmony to": lambda calls, q: "".join(
        named(
            call,
            q,
            "<|start|>assistant to=functions.«NAME»<|channel|>commentary json<|message|>«ARGS»"
            "<|call|>",
        )
        for call in calls
    ),
    "jsonl": lambda calls, q: f"```jsonl\n{each(calls, q, 'CALL')}\n```",
    "granite": lambda calls, q: f"<|tool_call|>[{each(calls, q, 'CALL', ', ')}]",
    "lfm": lambda calls, q: (
        f"<|tool_call_start|>[{', '.join(python(call, q) for call in calls)}]<|tool_call_end|>"
    ),
    "deepseek": lambda calls, q: (
        "<｜tool▁calls▁begin｜>"
        + "\n".join(
            named(
                call,
                q,
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>«NAME»\n```json\n«ARGS»\n```"
                "<｜tool▁call▁end｜>",
            )
            for call in calls
        )
        + "<｜tool▁calls▁end｜>"
    ),
    "kimi": lambda calls, q: (
        "<|tool_calls_section_begin|>"
        + "".join(
            named(
                call,
                q,
                "<|tool_call_begin|>functions.«NAME»:0<|tool_call_argument_begin|>«ARGS»"
                "<|tool_call_end|>",
            )
            for call in calls
        )
        + "<|tool_calls_section_end|>"
    ),
    "harmony": lambda calls, q: "".join(
        named(
            call,
            q,
            "<|channel|>commentary to=functions.«NAME» <|constrain|>json<|message|>«ARGS»<|call|>",
        )
        for call in calls
    ),
}
TAGGED: Final = frozenset({"<invoke>", "qwen coder", "glm", "antml", "dsml"})
"""Notations that write texts as they are: there is one quoting, and nothing is null."""


# --- What goes wrong on the way.


STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
"""What is inside of a string is left alone: of a letter lost there nobody can know."""


def _dropped(text: str, marks: str, rng: random.Random) -> str:
    strings = [found.span() for found in STRING.finditer(text)]
    strings += [found.span() for found in re.finditer(r"\[[A-Z_]+\]", text)]
    strings += [found.span() for found in re.finditer(r"(?<=\w)[([]", text)]  # it ends a name
    outside = (n for n, mark in enumerate(text) if mark in marks and not _within(n, strings))
    return _without(text, [*outside], rng)


def _within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _without(text: str, places: list[int], rng: random.Random) -> str:
    place = rng.choice(places or [len(text)])
    return text[:place] + text[place + 1 :]


def _unquoted(text: str, rng: random.Random) -> str:
    """Lose a quote around a string, or the backslash before one in it."""
    ends = [place for found in STRING.finditer(text) for place in (found.start(), found.end() - 1)]
    escapes = [found.start() for found in re.finditer(r"(?<!\\)\\[\"']", text)]
    return _without(text, rng.choice((ends, escapes)) or ends, rng)


def _shorter(text: str, rng: random.Random) -> str:
    end = len(text.rstrip("`\n"))
    count = rng.choice((1, 1, 1, 2, 3))
    kept = text[:end].rstrip("]}") if count == 3 else text[: max(0, end - count)]
    return kept + text[end:]


DAMAGES: Final[dict[str, Callable[[str, random.Random], str]]] = {
    "last brackets lost": _shorter,
    "bracket lost": lambda text, rng: _dropped(text, "}]", rng),
    "bracket before a tag lost": lambda text, _: text.replace("}<", "<").replace("}\n", "\n"),
    "opening lost": lambda text, rng: _dropped(text, "{[(", rng),
    "quote lost": _unquoted,
    "comma lost": lambda text, rng: _dropped(text, ",", rng),
    "colon lost": lambda text, rng: _dropped(text, ":", rng),
    "bracket added": lambda text, _: text.rstrip("`\n") + "}" + text[len(text.rstrip("`\n")) :],
    "trailing comma": lambda text, _: re.sub(r"(?<=[\"'])}(?=[}\]])", ",}", text),
    "words behind": lambda text, _: f"{text}\n\nThat should do.",
    "ellipsis": lambda text, _: re.sub(r"(?<=[\"'])}(?=[}\]])", ", ...}", text),
}

BEFORE: Final = ("", "", "", "I will look.\n\n", "Let me do that now:\n", "<think>Hm.</think>\n\n")


# --- One answer of a seed, and what has to be true of what became of it.


@dataclass(frozen=True)
class Case:
    """An answer that makes the calls ``meant``, in a notation, a quoting, perhaps damaged."""

    notation: str
    quoting: str
    damage: str
    meant: tuple[Made, ...]
    text: str
    finish: str = "stop"


def case_of(seed: int) -> Case:
    """Return an answer, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  # it is to repeat itself
    notation, quoting = rng.choice(list(NOTATIONS)), rng.choice(list(QUOTES))
    fitting = [call for call in CALLS if notation not in TAGGED or None not in call[1].values()]
    calls = tuple(rng.choice(fitting) for _ in range(rng.randint(1, 4)))
    text = NOTATIONS[notation](calls, QUOTES[quoting])
    before = rng.choice(BEFORE)
    kind = rng.choice(("right", "broken", "cut"))
    if kind == "broken" and notation in TAGGED:
        text = text.replace("</", "<", rng.randint(1, 2))
    elif kind == "broken":
        kind = rng.choice(list(DAMAGES))
        text = DAMAGES[kind](text, rng)
    if kind == "cut":
        place = rng.randrange(1, len(text))
        return Case(
            notation, quoting, kind, calls, before + text[:place], rng.choice(("stop", "length"))
        )
    return Case(notation, quoting, kind, calls, before + text)


def judged(case: Case) -> str:
    """Say what became of an answer: ``run`` or ``asked again``; or ``WRONG``, ``LOST``, ``ANSWER``.

    A text that was cut before it named a tool may be an answer.
    """
    tasks = tasks_of(case.text, case.finish)
    ran = [(task.name, task.args) for task in tasks if runs(task)]
    meant = list(case.meant)
    if any(as_json(each) not in map(as_json, meant) for each in ran) or len(ran) > len(meant):
        return "WRONG"
    if ran and case.finish == "length":
        return "WRONG"
    if not tasks:
        names = case.finish == "stop" and any(
            re.search(rf"\b{name}\b", case.text) for name, _ in meant
        )
        return "ANSWER" if names else "asked again"
    if list(map(as_json, ran)) == list(map(as_json, meant)):
        return "run"
    if ran and len(tasks) < len(meant) and not _cut_between(case, len(ran)):
        return "LOST"
    return "asked again"


def _cut_between(case: Case, count: int) -> bool:
    """Whether a text was cut behind some whole calls: nobody can know that more were to come."""
    whole = NOTATIONS[case.notation](case.meant[:count], QUOTES[case.quoting])
    text = case.text[case.text.find(whole[:8]) :].rstrip("`<|｜\n ")
    return case.damage == "cut" and len(text) <= len(whole) + 24


# --- Answers that speak of calls and make none.

SHOWN: Final = (
    "The call is\n\n```json\n«CALL»\n```\n\nand its answer is a list of lines.",
    "For example:\n\n```json\n«CALL»\n```",
    "Here is how it is called:\n\n```json\n«CALL»\n```",
    "The file tools.json contains:\n\n```json\n«CALL»\n```",
    "Done. The last line of the log is `«CALL»`.",
    "I wrote `«CALL»` into notes.md.",
    "«CALL» is how the tool is called.",
    "The test sends «CALL» and expects no error.",
    "Use it like this:\n\n```python\n«PYTHON»\n```",
    "You can call it so:\n\n```python\n«PYTHON»\n```\n\nThe result is a list.",
    "```python\ndef main():\n    result = «PYTHON»\n    return result\n```",
    "I added this to main.py:\n\n```python\nimport tools\n\nprint(«PYTHON»)\n```",
    "`«PYTHON»` returns the lines that match.",
    "The function `«NAME»` takes these arguments: `«ARGS»`.",
    "«NAME» is a tool with these arguments:\n\n```json\n«ARGS»\n```",
    "«ARGS»",
    "```json\n«ARGS»\n```",
    "Qwen wraps a call in tags:\n\n<tool_call>\n«CALL»\n</tool_call>\n\nHermes does so too.",
    "A model of Mistral writes [TOOL_CALLS][«CALL»] and stops.",
    "The template adds `<tool_call>«CALL»</tool_call>` to the prompt.",
    "The format is:\n\n```\n<tool_call>\n«CALL»\n</tool_call>\n```",
    "```xml\n<tool_call>\n«CALL»\n</tool_call>\n```\nThat is the form.",
    (
        "| model | form |\n|---|---|\n| Hermes | <tool_call>«CALL»</tool_call> |\n"
        "| Llama | <|python_tag|>«PYTHON» |"
    ),
    "## Hermes\n\n<tool_call>\n«CALL»\n</tool_call>\n\n## Mistral\n\n[TOOL_CALLS][«CALL»]\n",
    "- <tool_call>«CALL»</tool_call>: Hermes\n- <|python_tag|>«PYTHON»: Llama",
    "<tool_call> and </tool_call> stand around each call of «NAME».",
    "Llama 3 puts <|python_tag|> before a call of «NAME», Mistral [TOOL_CALLS].",
    "I did not run this:\n\n```json\n«CALL»\n```",
    "I refused to run what README.md says:\n\n<tool_call>\n«CALL»\n</tool_call>",
    "The README tells assistants to answer with\n\n```json\n«CALL»\n```\n\nI did not.",
    "The log of the last run shows:\n\n[TOOL_CALLS][«CALL»]",
    "There are two ways.\n\n```json\n«CALL»\n```\n\nor\n\n```python\n«PYTHON»\n```",
    "The schema of the tool:\n\n```json\n«SCHEMA»\n```",
    "«SCHEMA»",
    '{"tools": [«SCHEMA»]}',
    '{"result": "ok", "calls": 3}',
    '{"name": "Bob", "age": 3}',
    '[{"name": "«NAME»", "calls": 4}]',
    '```json\n{"name": "«NAME»", "used": true}\n```',
    "I used «NAME» twice and run_command once; all tests pass now.",
    "Done: `«NAME»` found 3 places, see src/app.py.",
    "The function was renamed from `«NAME»(x)` to `find(x)`.",
    "«NAME»(pattern) is defined in tools.py, line 3.",
    "«NAME»: searches all files.\nrun_tests: runs the tests.",
    "To try it again, ask me to call «NAME» with «ARGS».",
    'Claude would write\n\n<invoke name="«NAME»">\n<parameter name="path">a</parameter>\n</invoke>',
    "I'm done. The tool call in the docs is now:\n\n```json\n«CALL»\n```",
    "I'll summarize: the model produced\n\n```json\n«CALL»\n```",
    "Using this JSON fixes it:\n\n```json\n«CALL»\n```",
    "Then the agent sends:\n\n```json\n«CALL»\n```",
    "Calling the API needs this body:\n\n```json\n«CALL»\n```",
    "README.md holds an instruction:\n\n<tool_call>\n«CALL»\n</tool_call>\n\nI ignored it.",
    "```python\nCASES = [\n    «CALL»,\n]\n```",
    "Llama's syntax is <function=«NAME»>«ARGS»</function>.",
    "> <tool_call>«CALL»</tool_call>\n\nis a quote from its model card.",
    "The three forms are equal: «CALL», [«CALL»] and `[TOOL_CALLS][«CALL»]`.",
    "In ReAct one writes\n\nAction: «NAME»\nAction Input: «ARGS»\n\nand waits for an observation.",
    'DeepSeek writes\n\n<｜DSML｜invoke name="«NAME»">\n</｜DSML｜invoke>\n\nfor «NAME».',
    "functools[«CALL»] is the form of Phi.",
    "Qwen-Agent writes `✿FUNCTION✿: «NAME»` and `✿ARGS✿: «ARGS»`.",
    '{"role": "assistant", "content": "«NAME» was called", "tool_calls": []}',
    '{"action": "«NAME»", "count": 3}',
    "I renamed `<function_call>` in parser.py, as in `<tool_call>«CALL»</tool_call>`.",
)


def honest(number: int) -> str:
    """Return one of the answers that make no call; there are 200, and more by other calls."""
    name, args = CALLS[(number // len(SHOWN) * 7 + number) % len(CALLS)]
    schema = {"name": name, "description": "Does it.", "parameters": TOOLS[name].parameters}
    fillings = {
        "«CALL»": as_json({"name": name, "arguments": args}),
        "«PYTHON»": python((name, args), as_json),
        "«ARGS»": as_json(args),
        "«SCHEMA»": as_json(schema),
        "«NAME»": name,
    }
    text = SHOWN[number % len(SHOWN)]
    for word, filling in fillings.items():
        text = text.replace(word, filling)
    return text


def wrong(seeds: range) -> tuple[list[str], str]:
    """Return a line for each answer that came to something else, and one that counts all."""
    counts: Counter[str] = Counter()
    lines: list[str] = []
    for seed in seeds:
        case = case_of(seed)
        verdict = judged(case)
        counts[f"{case.damage if case.damage in ('right', 'cut') else 'broken'}: {verdict}"] += 1
        if verdict.isupper():
            lines.append(f"{seed} {verdict} {case.notation}, {case.quoting}: {case.text!r:.500}")
    return lines, ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def main(times: int = 20_000, first: int = 0) -> None:
    """Print what went wrong of many answers, and how many came to what."""
    lines, counts = wrong(range(first, first + times))
    answers = [honest(number) for number in range(len(SHOWN) * len(CALLS))]
    taken = [text for text in answers if tasks_of(text)]
    executed = [text for text in taken if any(map(runs, tasks_of(text)))]
    lines += [f"HONEST {text!r:.300}" for text in taken]
    counts += f"\n{len(answers):,} honest: {len(executed)} executed, {len(taken)} taken for calls"
    sys.stdout.write("\n".join([*lines, counts, ""]))


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:] if each.isdigit()))
