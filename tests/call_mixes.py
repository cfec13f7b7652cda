"""Calls of one answer, in any mix, with any replies, killed between any two durable steps.

Usage: ``python -m tests.call_mixes [TIMES [FIRST_SEED]]``; 200 mixes by default. Prints one line.

A killed run has to end as one that was not (TL-02, TL-13a, DU-06): every effect comes once, nobody
is asked twice about the same, every call has one result.
"""

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import call, calls, illegal, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage._ledgers import (
    Effects,
    Place,
    ProcessJournal,
    ProcessLedger,
    ProcessReplies,
    Replies,
)
from daruma.state.channels import State
from daruma.state.serializer import STORED_TYPES, StrictSerializer
from daruma.tools.calls import Effect, Journal, JournalEntry, Outcome
from daruma.tools.files import tree_of

KINDS: Final = ("look", "note", "keep", "pay", "put", "run_command")
ASKED: Final = frozenset({"pay", "put", "run_command"})
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Killed(BaseException):
    """Raised at the moment of a death, and by all that would be durable after it."""


@dataclass
class Fate:
    """Counts durable steps. ``at`` are the steps of each life that it does not survive."""

    at: list[int] = field(default_factory=list)
    steps: int = 0
    dead: bool = False

    def step(self) -> None:
        self.steps += 1
        if self.dead or (self.at and self.steps == self.at[0]):
            self.dead = True
            raise Killed

    def revive(self) -> None:
        self.at, self.steps, self.dead = self.at[1:], 0, False


class MortalSaver(InMemorySaver):
    """A saver whose process may die before any of its writes."""

    def __init__(self, fate: Fate) -> None:
        super().__init__(serde=StrictSerializer(STORED_TYPES))
        self.fate = fate
        self.replied = MortalReplies(fate)
        self.daruma_ledger = MortalLedger(fate, self.replied)

    async def aput(self, *given: Any, **named: Any) -> Any:
        self.fate.step()
        return await super().aput(*given, **named)

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        self.fate.step()
        await super().aput_writes(*given, **named)


class MortalReplies(ProcessReplies):
    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self.fate = fate
        self.counted: list[dict[str, Any]] = []

    async def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        self.fate.step()
        first = await super().accept(thread_id, replies)
        if first:
            self.counted += replies.values()
        return first


class MortalLedger(ProcessLedger):
    def __init__(self, fate: Fate, replies: Replies) -> None:
        super().__init__()
        self.fate = fate
        self.replies = replies

    def journal_at(self, place: Place, run: str) -> Journal:
        return MortalJournal(self.fate, self.effects, place, run)


class MortalJournal(ProcessJournal):
    def __init__(self, fate: Fate, effects: Effects, place: Place, run: str) -> None:
        super().__init__(effects, place, run)
        self.fate = fate

    async def begin(self, effect: Effect) -> JournalEntry:
        self.fate.step()
        return await super().begin(effect)

    async def again(self, entry: JournalEntry) -> JournalEntry:
        self.fate.step()
        return await super().again(entry)

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        self.fate.step()
        await super().end(entry, outcome)

    async def forget(self, entry: JournalEntry) -> None:
        self.fate.step()
        await super().forget(entry)


@dataclass(frozen=True)
class Mix:
    """The calls of one answer, by id, and what is decided on those that are asked about."""

    seed: int
    kinds: dict[str, str]
    shared: frozenset[str]
    decisions: dict[str, str]

    @classmethod
    def of(cls, seed: int) -> "Mix":
        luck = random.Random(seed)  # noqa: S311 - repeatable
        kinds = {f"c{n}": luck.choice(KINDS) for n in range(luck.randint(2, 5))}
        shared = frozenset(id_ for id_ in kinds if luck.random() < 0.5)
        ways = ("approve", "approve", "approve", "deny", "edit")
        return cls(seed, kinds, shared, {id_: luck.choice(ways) for id_ in kinds})

    @property
    def turn(self) -> dict[str, Any]:
        made = (call(kind, id_, **self.args(id_)) for id_, kind in self.kinds.items())
        return calls(*made)

    def args(self, id_: str, *, edited: bool = False) -> dict[str, Any]:
        text, name = id_ + "e" * edited, "shared" if id_ in self.shared else id_
        if self.kinds[id_] == "run_command":
            return {"command": f"echo {text} >> {name}"}
        return {"text": text, "to": name}

    def expected(self) -> dict[str, int]:
        """How often each effect comes in the end."""
        ran = {
            id_: self.decisions[id_] if kind in ASKED else "" for id_, kind in self.kinds.items()
        }
        return {
            id_ + "e" * (how == "edit"): 1
            for id_, how in ran.items()
            if how != "deny" and self.kinds[id_] != "look"
        }

    def denies(self, id_: str) -> bool:
        return self.decisions[id_] == "deny"

    def replies(self, approvals: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Decide on some of them, in some order: the same ones whenever the same are open."""
        ids = [each["approval_id"] for each in approvals]
        luck = random.Random(f"{self.seed} {ids}")  # noqa: S311 - repeatable
        some = luck.sample(approvals, luck.randint(1, len(approvals)))
        return [self.decision(each) for each in some]

    def decision(self, approval: dict[str, Any]) -> dict[str, Any]:
        id_ = approval["approval_id"]
        how = self.decisions[id_]
        args = {"args": self.args(id_, edited=True)} if how == "edit" else {}
        return {"approval_id": id_, "digest": approval["digest"], "decision": how, **args}


@dataclass
class World:
    """One thread from its beginning to its end, through any number of deaths."""

    mix: Mix
    ws: Path
    fate: Fate
    ledger: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    unshown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.saver = MortalSaver(self.fate)

    def tools(self) -> Iterator[StructuredTool]:
        async def look(text: str, to: str) -> str:
            """Look."""
            return f"{text} {to}"

        async def note(text: str, to: str) -> str:
            """Note it elsewhere."""
            return self.append(to and None, text)

        async def keep(text: str, to: str) -> str:
            """Write it down."""
            return self.append(to, text)

        async def put(text: str, to: str) -> str:
            """Write it down, once a person has agreed."""
            self.compare(text.removesuffix("e"))
            return self.append(to, text)

        effects = {"look": (look, "none"), "keep": (keep, "workspace"), "put": (put, "workspace")}
        effects |= {"note": (note, "external"), "pay": (note, "external")}
        for name, (function, effect) in effects.items():
            made = StructuredTool.from_function(coroutine=function, name=name)
            made.metadata = {"daruma": {"effect": effect}}
            yield made

    def compare(self, id_: str) -> None:
        """Note a call that runs on another tree than the one that was agreed to last (TL-13a)."""
        agreed = [each["digest"] for each in self.decided() if each["approval_id"] == id_]
        if self.shown.get(agreed[-1]) != tree_of(self.ws, named=False).id:
            self.unshown.append(id_)

    def decided(self) -> list[dict[str, Any]]:
        replies = self.saver.replied.counted
        return [each for reply in replies for each in reply.get("decisions", ())]

    def append(self, name: str | None, text: str) -> str:
        """Have an effect; the process may die right before it and right after it."""
        self.fate.step()
        if name is None:
            self.ledger.append(text)
        else:
            with (self.ws / name).open("a") as file:
                file.write(f"{text}\n")
        self.fate.step()
        return text

    def graph(self) -> Any:
        given = settings(
            sandbox={"require": "none"},
            verification={"enabled": False},
            evolution={"enabled": False},
            tools={"policy": {"pay": "confirm", "put": "confirm"}},
        )
        model = ScriptedChatModel(script=[self.mix.turn, say()])
        return build_graph(model, self.tools(), given, checkpointer=self.saver)

    async def live(self) -> State:
        """Run to the end, answering whatever is asked, and come back from each death."""
        given: Any = {"messages": [("user", "Do it")], "workspace": str(self.ws)}
        while True:
            graph = self.graph()
            try:
                while True:
                    out = await graph.ainvoke(given, THREAD)
                    if "__interrupt__" not in out:
                        return State(**(await graph.aget_state(THREAD)).values)
                    given = Command(
                        resume={each.id: self.reply(each.value) for each in out["__interrupt__"]}
                    )
            except BaseException:
                if not self.fate.dead:
                    raise
            self.fate.revive()
            given = await self.resumed(graph, given)

    async def resumed(self, graph: Any, given: Any) -> Any:
        """Return what a thread is gone on with after a death: what was accepted stands."""
        past = await graph.aget_state(THREAD)
        if past.created_at is None:
            return given
        open_ones = {each.id: each.value for each in past.interrupts}
        accepted = await self.saver.replied.find("t", list(open_ones))
        if not open_ones or accepted:
            return None
        return Command(resume={id_: self.reply(value) for id_, value in open_ones.items()})

    def reply(self, value: dict[str, Any]) -> dict[str, Any]:
        if value["type"] == "question":
            (text,) = [
                t
                for t in self.mix_texts()
                if f"'{t}'" in value["question"] or f"echo {t} " in value["question"]
            ]
            return {"answer": "happened" if self.effects()[text] else "again"}
        tree = tree_of(self.ws, named=False).id
        self.shown |= {each["digest"]: tree for each in value["approvals"]}
        return {"decisions": self.mix.replies(value["approvals"])}

    def mix_texts(self) -> list[str]:
        return [id_ + end for id_ in self.mix.kinds for end in ("", "e")]

    def effects(self) -> Counter[str]:
        written = (path.read_text().split() for path in self.ws.iterdir() if path.is_file())
        return Counter([*self.ledger, *(line for lines in written for line in lines)])


def problems(mix: Mix, world: World, state: State) -> list[str]:
    """What is wrong with how a thread has ended."""
    found = []
    if world.effects() != Counter(mix.expected()):
        found.append(f"effects {dict(world.effects())}, expected {mix.expected()}")
    results = Counter(m.tool_call_id for m in state.messages if m.type == "tool")
    if results != Counter(dict.fromkeys(mix.kinds, 1)) or illegal(state.messages):
        found.append(f"results {dict(results)}")
    decided = Counter((each["approval_id"], each["digest"]) for each in world.decided())
    found += [f"{id_} ran on what was not shown" for id_ in world.unshown]
    found += [f"asked twice about the same: {each}" for each, n in decided.items() if n > 1]
    denied = {id_ for id_, kind in mix.kinds.items() if kind in ASKED and mix.denies(id_)}
    failed = {m.tool_call_id for m in state.messages if m.type == "tool" and m.status == "error"}
    if failed != denied:
        found.append(f"failed: {failed}, denied: {denied}")
    return found


def lived(mix: Mix, folder: Path, deaths: list[int]) -> tuple[World, list[str]]:
    """Live a mix through with these deaths; return what is wrong with it."""
    folder.mkdir()
    world = World(mix, folder, Fate(deaths))
    state = asyncio.run(world.live())
    return world, problems(mix, world, state)


def checked(seed: int, folder: Path) -> tuple[int, list[str]]:
    """Live a mix once whole, and once with two deaths; return its steps and what is wrong."""
    mix = Mix.of(seed)
    whole, wrong = lived(mix, folder / f"{seed}-whole", [])
    total = whole.fate.steps
    luck = random.Random(seed)  # noqa: S311 - repeatable
    deaths = [luck.randint(1, total), luck.randint(1, total)]
    killed, more = lived(mix, folder / f"{seed}-killed", deaths)
    if killed.effects() != whole.effects():
        more.append("the end is another one than without deaths")
    said = f"seed {seed}, deaths {deaths}, {mix.kinds}, {mix.decisions}"
    return total, [f"{said}: {each}" for each in (*wrong, *more)]


def main(times: int, first: int) -> int:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARUMA_DATA_DIR", f"{folder}/data")
        done = [checked(seed, Path(folder)) for seed in range(first, first + times)]
    wrong = [each for _, found in done for each in found]
    steps = sum(total for total, _ in done)
    said = f"{times} mixes, {steps} durable steps, {2 * times} deaths: {len(wrong)} wrong"
    sys.stdout.write("\n".join([*wrong, said, ""]))
    return bool(wrong)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(given + [200, 0][len(given) :])))
