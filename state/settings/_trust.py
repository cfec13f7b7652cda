"""What folders may set: which settings anybody may change, which only towards the stricter, which
need trust; and what a person has agreed to: settings, skills and team templates, by their content.

One table serves a file that nobody has trusted yet (SE-02) and a client over HTTP (SE-03): neither
can weaken what holds without it. A record of trust lies in the user's own folder, out of reach of
tasks and their commands. It is about one path with one content, so whatever is changed there, by
whomever, is asked about again (SE-02).
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from daruma.state.data_dir import data_dir, write_private
from daruma.state.settings._sources import (
    SETTINGS_FILE,
    SettingsError,
    SettingsFile,
    merge_settings,
    read_plain,
    sources,
)
from daruma.state.settings._tools import PolicyRule, policy_key
from daruma.state.text import pasted

# --- What a file or a client may change of each setting, in one table.

FREE: Final = "free"
LOWER: Final = "lower"
HIGHER: Final = "higher"
FEWER: Final = "fewer"
POLICY: Final = "policy"
TRUST: Final = "trust"

STRICTNESS: Final[Mapping[str, str | tuple[object, ...]]] = {
    "mode": FREE,
    "llm.model": TRUST,
    "llm.auxiliary_model": TRUST,
    "llm.judge_model": TRUST,
    "llm.fallback_models": TRUST,
    "llm.embedding_model": TRUST,
    "llm.model_aliases": TRUST,
    "llm.prices": TRUST,  # a price of nothing lifts a budget in money
    "llm.context_window_tokens": LOWER,
    **{
        f"llm.options.{role}.{name}": rule
        for role in ("main", "auxiliary", "fallback", "judge")
        for name, rule in {
            "temperature": FREE,
            "effort": TRUST,  # it costs
            "max_tokens": LOWER,
            "base_url": TRUST,
            "extra": TRUST,
        }.items()
    },
    "llm.requests.per_model": LOWER,
    "llm.requests.per_call": LOWER,
    "llm.requests.wait_seconds": LOWER,
    "llm.requests.seconds": LOWER,
    "llm.requests.chunk_seconds": LOWER,
    "llm.requests.total_seconds": LOWER,
    "fallback_chain.enabled": (False, True),
    "fallback_chain.recovery.enabled": (True, False),
    "fallback_chain.recovery.max_retries": LOWER,
    "fallback_chain.recovery.observe_only": (False, True),
    "fallback_chain.recovery.execute_above": HIGHER,
    "fallback_chain.recovery.ask_above": HIGHER,
    "fallback_chain.recovery.wait_seconds": LOWER,
    "fallback_chain.recovery.ask": (True, None, False),  # a yes goes on beyond a budget
    "fallback_chain.emergency.enabled": (False, True),
    "fallback_chain.emergency.language": FREE,
    "fallback_chain.emergency.rules": TRUST,
    "budgets.preset": FREE,  # what it makes of the others is compared by their own keys
    "budgets.think": LOWER,
    "budgets.verify": LOWER,
    "budgets.reflect": LOWER,
    "budgets.max_steps": LOWER,
    "budgets.max_steps_per_turn": LOWER,
    "budgets.look": LOWER,
    "budgets.replan": LOWER,
    "budgets.tokens": LOWER,
    "budgets.usd": LOWER,
    "budgets.seconds": LOWER,
    "budgets.per_phase.tokens": LOWER,
    "budgets.per_phase.usd": LOWER,
    "budgets.per_phase.seconds": LOWER,
    "budgets.when_spent": ("ask", "stop"),
    "verification.enabled": (False, "auto", True),
    "verification.commands": TRUST,
    "verification.rubric": TRUST,  # it costs, and makes work count as checked
    "verification.max_reinjections": LOWER,
    "verification.timeout": LOWER,
    "rollback.default_timeout": LOWER,
    "rollback.snapshots": (False, True),
    "rollback.exclude": TRUST,
    "rollback.keep_days": TRUST,  # fewer days delete snapshots
    "spec_review.enabled": (False, True),
    "spec_review.timeout": LOWER,
    "team.template": FREE,
    "team.folders": TRUST,
    "team.max_parallel": LOWER,
    "team.delegate": (True, False),
    "tools.normalize_names": TRUST,
    "tools.name_aliases": TRUST,
    "tools.name_repair_attempts": LOWER,
    "tools.name_repair_max_visible_names": LOWER,
    "tools.name_repair_max_candidates": LOWER,
    "tools.call_repair_attempts": LOWER,
    "tools.call_repair_max_candidates": LOWER,
    "tools.call_repair_max_schema_bytes": LOWER,
    "tools.max_argument_bytes": LOWER,
    "tools.validate_schema": (False, True),
    "tools.max_calls_per_turn": LOWER,
    "tools.max_result_chars": LOWER,
    "tools.timeout": LOWER,
    "tools.in_doubt": ("tell", "ask"),
    "tools.read_only_first": (True, False),
    "tools.always": ("workspace", "thread", "never"),
    "tools.profile": (None, "read_only"),
    "tools.profiles": TRUST,
    "tools.mcp_servers": TRUST,
    "tools.toolsets": FEWER,
    "tools.time_zone": FREE,
    "tools.policy": POLICY,
    "memory.enabled": (True, False),
    "memory.search_limit": LOWER,
    "memory.namespace": TRUST,
    "skills.folders": TRUST,
    "instructions.files": FEWER,
    "instructions.max_chars": LOWER,
    "prompts": TRUST,
    "sandbox.require": ("none", None, "landlock", "namespace"),
    "sandbox.network": (True, False),
    "sandbox.memory_mb": LOWER,
    "sandbox.processes": LOWER,
    "hooks": TRUST,
    "notify.webhook": TRUST,
    "notify.command": TRUST,
    "notify.timeout": LOWER,
    "evolution.enabled": (True, False),
    "evolution.observe_only": (False, True),
    "evolution.success_sample_rate": LOWER,
    "evolution.min_confidence": HIGHER,
    "evolution.min_similarity": HIGHER,
    "evolution.min_examples": HIGHER,
    "evolution.max_concurrent": LOWER,
    "evolution.auxiliary": (True, False),
    "evolution.namespace": TRUST,
    "evolution.shared": (True, False),
    "evolution.keep_days": TRUST,  # fewer days delete experience
}
"""How each setting may be changed without trust.

``FREE`` in any way; ``LOWER`` and ``HIGHER`` as a number, null being no limit; ``FEWER`` by leaving
out; a tuple from the loosest value to the strictest; ``POLICY`` by rules that refuse or ask;
``TRUST`` not at all. A key that is missing here needs trust, and fails a test.
"""


@dataclass(frozen=True)
class Change:
    """A key that would be changed, and what it would be then, as JSON has it."""

    key: str
    value: Any


_MOST: Final = 8


def name_changes(changes: Iterable[Change]) -> str:
    """Return the keys of changes for an error's one line, each once; of many, the first."""
    keys = list(dict.fromkeys(each.key for each in changes))
    more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
    return ", ".join(keys[:_MOST]) + more


def loosening_changes(before: BaseModel, after: BaseModel) -> list[Change]:
    """Return what ``after`` changes of ``before`` and is not free to change, nor stricter.

    Settings are compared by what holds in the end, presets included.
    """
    return [
        change
        for key, old, new in _leaves(before, after)
        if old != new
        for change in _loosened(key, STRICTNESS.get(key, TRUST), old, new)
    ]


def _leaves(before: BaseModel, after: BaseModel, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(new, BaseModel):
            yield from _leaves(old, new, f"{path}{name}.")
        else:
            yield f"{path}{name}", old, new


def _loosened(key: str, rule: object, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(new, Mapping):  # named by the user: each name is looked at by itself
        for name in dict.fromkeys((*old, *new)):
            fits = rule == POLICY and _is_stricter_rule(name, old, new.get(name))
            if old.get(name) != new.get(name) and not fits:
                yield Change(f"{key}.{name}", _plain(new.get(name)))
    elif not _is_stricter(rule, old, new):
        yield Change(key, _plain(new))


def _is_stricter(rule: object, old: Any, new: Any) -> bool:
    if isinstance(rule, tuple):
        return old in rule and new in rule and rule.index(new) >= rule.index(old)
    if rule == LOWER:
        return new is not None and (old is None or new <= old)
    if rule == HIGHER:
        return bool(new >= old)
    if rule == FEWER:
        return set(new) <= set(old)
    return rule == FREE


def _is_stricter_rule(name: str, old: Mapping[str, Any], given: Any) -> bool:
    """Whether a rule of the policy can only refuse or ask where it did not before (SE-03).

    One that denies wins against all others. One that asks takes the place of those that are less
    exact, and these may ask for more: so it is taken for a whole tool, where no pattern of names
    stands beside it.
    """
    if given is None:
        return False
    before, rule = _rule(old.get(name)), _rule(given)
    if before and (before == rule or before.decision == "deny"):
        return bool(before == rule)
    if rule.decision == "deny":
        return True
    if before and (before.required or before.in_doubt == "ask" != rule.in_doubt):
        return False
    key, others = policy_key(name), map(policy_key, old)
    plain = rule.decision == "confirm" and rule.in_doubt != "tell"
    return plain and key.bare and key.exact and all(each.exact for each in others)


def _rule(given: Any) -> Any:
    return PolicyRule.model_validate({"decision": given}) if isinstance(given, str) else given


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


# --- What a folder brought that nobody has agreed to.

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of one skill; one that has more is not trusted."""


class UntrustedSettings(SettingsError):
    """Raised for settings of a folder that nobody has agreed to; ``keys`` are what they change.

    ``path`` is what ``daruma trust`` is to be asked about; ``part`` is the skill or team template
    that it names, where that alone was not agreed to.
    """

    def __init__(self, path: Path, changes: Sequence[Change], part: Path | None = None) -> None:
        self.path, self.keys = path, tuple(dict.fromkeys(each.key for each in changes))
        place = path.parent if path.name == SETTINGS_FILE else path
        what = f"{path} is not trusted, and would change {name_changes(changes)}"
        if part is not None:
            how = "was changed since it was" if _record_of(part) else "is not"
            what = f"{part} {how} trusted ({self.keys[0]} of {path.name} names it)"
        super().__init__(f"{what}: look at it, then `daruma trust {pasted(str(place))}`")


# --- The records: one file each, by the path that it is about.


@dataclass(frozen=True)
class Record:
    """One agreement: ``content`` is what a settings file says, ``at`` the time, in ISO format."""

    path: str
    digest: str
    at: str
    keys: tuple[str, ...] = ()
    content: str = ""


def trust_records() -> list[Record]:
    """Return all agreements, by their paths."""
    found = (_read(file) for file in _folder().glob("*.json"))
    return sorted((each for each in found if each), key=lambda each: each.path)


def withdraw_trust(path: Path) -> bool:
    """Take back what was agreed to about a path and all below it; return whether there was any.

    Skills and team templates that its settings name were agreed to with it, and go with it.
    """
    records, places = trust_records(), [_place(path)]
    for each in records:
        if Path(each.path).is_relative_to(places[0]):
            named = SettingsFile(Path(), each.content.encode())
            places += (_place(folder) for _, folder in _folders(named, Path(each.path).parent))
    gone = [each for each in records if any(Path(each.path).is_relative_to(p) for p in places)]
    for each in gone:
        _file_of(each.path).unlink(missing_ok=True)
    return bool(gone)


def is_trusted(path: Path) -> bool:
    """Whether a person has agreed to what a file or folder holds now. Reads all of it."""
    record = _record_of(path)
    return record is not None and record.digest == digest_of(path)


def is_trusted_text(path: Path, workspace: str | None) -> bool:
    """Whether what stands at a path is no task's own words: out of its reach, or agreed to.

    A task reaches its workspace, and what is in it; a folder around that is not taken for safe.
    """
    if workspace is None:
        return True
    place, root = Path(_place(path)), Path(os.path.realpath(workspace))
    apart = not (place.is_relative_to(root) or root.is_relative_to(place.parent))
    real = Path(os.path.realpath(path))
    return (apart and not real.is_relative_to(root)) or is_trusted(path)


def _record_of(path: Path) -> Record | None:
    return _read(_file_of(_place(path)))


def _read(file: Path) -> Record | None:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Record(**{**kept, "keys": tuple(kept["keys"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _folder() -> Path:
    return data_dir() / "trust"


def _file_of(path: str | Path) -> Path:
    return _folder() / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}.json"


def _place(path: Path) -> str:
    """Return the path by which a thing is known: its folder's real one, a link not followed."""
    path = _absolute(path)
    return str(path.parent.resolve() / path.name)


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


# --- The digest of what a file or a folder holds.


def digest_of(path: Path) -> str | None:
    """Return the digest of a file, or of a folder with the names of its files.

    None for what can not be read as it is: links, special files, and more than a skill has.
    """
    parts, room = hashlib.sha256(), MOST_BYTES
    try:
        if not path.is_dir():
            return hashlib.sha256(read_plain(path, room, os.O_NOFOLLOW)).hexdigest()
        for file in _files(path):
            data = read_plain(file, room, os.O_NOFOLLOW)
            room -= len(data)
            name = os.fsencode(file.relative_to(path))
            parts.update(b"%d %d " % (len(name), len(data)) + name + data)
    except OSError:
        return None
    return parts.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    found, waiting = 0, [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                found += 1
                if found > MOST_FILES:
                    raise OSError(f"{folder} has more than {MOST_FILES} files")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    yield Path(entry.path)


# --- What a settings file would change, and whether that was agreed to.


def refuse_untrusted(
    settings: BaseModel, file: SettingsFile, environment: Mapping[str, Any]
) -> None:
    """Raise :class:`UntrustedSettings` for what a folder's settings may not change by themselves.

    They are held against what holds without the file, or under the content that was agreed to:
    taking that away may weaken, too. Skills and team templates that the file names are part of it.
    """
    record = _record_of(file.path)
    if record is None and not file.data:
        return
    changes: list[Change] = []
    if record is None or record.digest != file.digest:
        changes = loosening_changes(_agreed(type(settings), record, environment), settings)
    parts = [
        (Change(key, str(folder)), each)
        for key, folder in _folders(file)
        for each in _parts(folder)
        if not is_trusted(each)
    ]
    if changes or parts:
        part = None if changes else parts[0][1]
        raise UntrustedSettings(_absolute(file.path), [*changes, *(c for c, _ in parts)], part)


def _agreed(
    model: type[BaseModel], record: Record | None, environment: Mapping[str, Any]
) -> BaseModel:
    """Return the settings that hold by what was agreed to, or without any file."""
    try:
        own = SettingsFile(Path(), record.content.encode()).values if record else {}
        return model.model_validate(merge_settings(own, environment))
    except SettingsError:  # the environment needs the file to make sense
        return model()


def _folders(file: SettingsFile, start: Path = Path()) -> Iterator[tuple[str, Path]]:
    for section in ("skills", "team"):
        given = file.values.get(section) or {}
        for folder in (given.get("folders") or ()) if isinstance(given, Mapping) else ():
            yield f"{section}.folders", start / str(folder)


def _parts(folder: Path) -> list[Path]:
    """Return what is agreed to in a folder one by one: its skills, and its team templates."""
    if (folder / "SKILL.md").is_file():
        return [folder]
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [each for each in found if each.suffix == ".yaml" or os.path.lexists(each / "SKILL.md")]


# --- What a person is asked to agree to.


@dataclass(frozen=True)
class Proposal:
    """What stands at a path now: what it would change, and the records that a yes would keep.

    What is agreed to is what was read here, whatever becomes of the files meanwhile.
    """

    path: Path
    changes: tuple[Change, ...]
    own: tuple[Record, ...]
    parts: tuple[Record, ...]
    """Of the settings file, if there is one; and of the skills and team templates."""
    refused: tuple[Path, ...] = ()
    """What can not be agreed to: links and special files in it, or too much."""

    def agree(self) -> None:
        """Keep it as agreed to."""
        for each in (*self.own, *self.parts):
            write_private(_file_of(each.path), json.dumps(asdict(each)))


def propose_trust(model: type[BaseModel], path: Path | str = ".") -> Proposal:
    """Read what there is to agree to: a folder with ``daruma.yaml``, skills or team templates.

    Raises :class:`~daruma.state.settings.SettingsError` where there is nothing, or what is
    there can not be used.
    """
    path = Path(path)
    if not path.exists():
        raise SettingsError(f"{path} is not there")
    file = path / SETTINGS_FILE if path.is_dir() else path
    if path.is_dir() and not file.exists() and _record_of(file) is None:
        return _proposal(path, (), (), _parts(path))
    if path.is_file() and _record_of(path) is None and "experts" in SettingsFile.of(path).values:
        return _proposal(path, (), (), [path])
    read, environment = sources(model, str(file))
    settings = _alone(model, read, environment)
    changes = {each.key: each for each in loosening_changes(model(), settings)}
    if record := _record_of(file):  # what was agreed to may have been stricter
        agreed = _agreed(model, record, {})
        changes |= {each.key: each for each in loosening_changes(agreed, settings)}
    own = Record(_place(file), read.digest, _now(), tuple(changes), _kept_of(read))
    parts = [part for _, folder in _folders(read, file.parent) for part in _parts(folder)]
    return _proposal(file, changes.values(), (own,), parts)


def _kept_of(file: SettingsFile) -> str:
    """Return what is kept of a file that is agreed to: no MCP servers, which may hold keys (SE-08).

    So these are asked about again, once the file has another content.
    """
    values, tools = file.values, file.values.get("tools")
    if not isinstance(tools, Mapping) or "mcp_servers" not in tools:
        return file.text
    rest = {name: each for name, each in tools.items() if name != "mcp_servers"}
    return json.dumps({**values, "tools": rest}, default=str)


def _alone(model: type[BaseModel], file: SettingsFile, environment: Mapping[str, Any]) -> BaseModel:
    """Return what a file says by itself, which may make sense with the environment only."""
    try:
        return model.model_validate(file.values)
    except SettingsError:
        return model.model_validate(merge_settings(file.values, environment))


def _proposal(
    path: Path, changes: Iterable[Change], own: tuple[Record, ...], parts: list[Path]
) -> Proposal:
    digests = [(each, digest_of(each)) for each in parts]
    known = {each.path for each in own}
    found = [Record(_place(each), digest, _now()) for each, digest in digests if digest]
    if not (own or parts):
        raise SettingsError(
            f"{path} has no {SETTINGS_FILE}, no skills and no team templates: "
            "there is nothing to trust"
        )
    return Proposal(
        _absolute(path),
        tuple(changes),
        own,
        tuple(each for each in found if each.path not in known),
        tuple(each for each, digest in digests if digest is None),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
