"""MCP servers as they are started: what they are given, and one of each for a run (FA-11).

A server is started by the first call of a run that needs it, serves all calls of that run, those of
a team and those that run side by side too, and is ended with the run.
"""

import asyncio
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

from daruma.state.errors import DarumaError
from daruma.state.settings import McpServer
from daruma.state.text import printable_line
from daruma.tools.commands import find_program, search_path
from daruma.tools.files import add_own
from daruma.tools.sandbox import SUPERVISOR
from daruma.tools.text import note_secrets, secrets_in, without_keys
from daruma.tools.threads import to_thread

if TYPE_CHECKING:
    from mcp import ClientSession

T = TypeVar("T")

START_SECONDS = 120.0
"""For a server to start, and to say which tools it has; `npx` may have to fetch it first."""

# --- What a server is given: variables of the environment, looked up as late as can be (SE-08).

_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_NAME: Final = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)
_NO_SECRETS: Final = re.compile(
    r"HOME|USER|LOGNAME|USERNAME|PWD|PATH|SHELL|LANG|LC_\w+|TZ|TERM|TMPDIR|HOSTNAME|XDG_\w+"
)
"""Variables that every process has, by name."""

_OPEN_HEADERS: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_ASSIGNED: Final = re.compile(r"(-*[\w-]+)(?:=|:\s*)(.+)", re.DOTALL)


class VariableUnset(LookupError):
    """Raised for a variable that a server's settings name, and that there is none of."""


def expand_variables(text: str, where: str) -> str:
    """Return a text with its variables' values, which count as keys from then on.

    Raises :class:`VariableUnset`, naming the variable and ``where`` it stands.
    """

    def value(found: re.Match[str]) -> str:
        named = _NAME.fullmatch(found[1])
        if named is None:
            raise VariableUnset(
                f"its {where} has {found[0]}: only ${{NAME}} of a variable is known"
            )
        name, default = named.groups()
        held = os.environ.get(name, "") or default
        if held is None:
            raise VariableUnset(f"the variable {name} of its {where} is not set")
        if held is not default and not _NO_SECRETS.fullmatch(name):
            note_secrets(secrets_in("SECRET" if "://" not in held else "", held))
        return held

    return _VARIABLE.sub(value, text)


def literal_secrets(server: McpServer) -> list[str]:
    """Return what stands in a server's settings itself and is a key, by its name or its look."""
    return [
        secret
        for name, value in _named_values(server)
        for part in (value, *value.split()[1:])  # Bearer KEY
        if not _VARIABLE.search(part)
        for secret in secrets_in(name, part, random=True)
    ]


def _named_values(server: McpServer) -> Iterator[tuple[str, str]]:
    """Yield all that a server is given, each with what says by its name what it is."""
    yield from server.env.items()
    for name, value in server.headers.items():
        yield ("" if name.lower() in _OPEN_HEADERS else "SECRET"), value
    before = ""
    for word in server.argv[1:]:
        assigned = _ASSIGNED.fullmatch(word)
        yield (assigned[1], assigned[2]) if assigned else (before, word)
        yield "", word
        before = word if word.startswith("-") else ""
    if server.url:
        address = urlsplit(server.url)
        yield "", server.url
        yield from parse_qsl(address.query)
        yield from (("", each) for each in address.path.split("/"))


# --- What a server runs from: nothing of it can be written by tasks (SE-01, SE-05).

_PROGRAM_ENDS: Final = (
    ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".sh", ".rb", ".pl",
    ".php", ".lua", ".jar", ".exs", ".dll", ".wasm",
)  # fmt: skip
_NAMES_FOLDER: Final = frozenset({
    "--directory", "--project", "--prefix", "--cwd", "--package-dir", "-C",
})  # fmt: skip
"""Options of ``uv``, ``npm`` and their kin behind which the folder of a program stands."""

_OF_MODULES: Final = ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "CLASSPATH")
"""Variables that name folders which programs are taken from."""


def server_places(
    command: Sequence[str], folder: Path, env: "dict[str, str] | None" = None
) -> set[Path]:
    """Return what a server runs from: the folders of its program and scripts, as far as named.

    What it works on, such as a database, is not among them.
    """
    listed = [word for name in _OF_MODULES for word in (env or {}).get(name, "").split(os.pathsep)]
    found = {folder / each for each in listed if each}
    before = ""
    for number, word in enumerate(command):
        option, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
        path = folder / (value or word)
        if (option or before) in _NAMES_FOLDER and value and os.path.isdir(path):  # noqa: PTH112 - no error for a long word
            found.add(path)
        elif os.path.isfile(path) and (  # noqa: PTH113 - as above
            number == 0 or (path.name.lower().endswith(_PROGRAM_ENDS) or os.access(path, os.X_OK))
        ):
            found |= {path.parent, Path(os.path.realpath(path)).parent}
        before = word
    return found - {Path("/")}


def protect_places(
    argv: Sequence[str], folder: Path, workspace: Path, what: str, env: "dict[str, str] | None"
) -> None:
    """Have nobody write what a program is run from (SE-05).

    Raises PermissionError where they are around the workspace.
    """
    places = server_places(argv, folder, env)
    if inside := [each for each in places if workspace.is_relative_to(each)]:
        where = f"the workspace's own folder {inside[0]}"
        raise PermissionError(f"it lies in {where}: move it to another")
    add_own(places | {Path(os.path.realpath(each)) for each in places}, what)


def resolve_program(argv: Sequence[str], workspace: str | None, what: str) -> list[str]:
    """Return a program of trusted settings by its whole path, with its arguments (SE-01, SE-05).

    Files among the arguments have to be named by whole paths. Raises DarumaError for a program
    that the workspace could have put there.
    """
    here = Path(os.path.realpath(workspace or Path.cwd()))
    program = find_program(argv[0], here)
    if program is None:
        raise DarumaError(f"{what}: there is no program {argv[0]!r} outside of the workspace")
    found = [program, *argv[1:]]
    try:
        protect_places(found, Path("/"), here, what, None)
    except PermissionError as error:
        raise DarumaError(f"{what}: {error}") from None
    return found


# --- A server of the settings, and how it is spoken to.


@dataclass(frozen=True, eq=False)
class Server:
    """A server by its name in the settings, and the workspace that it is none of."""

    name: str
    setting: McpServer
    workspace: Path | None = None

    @property
    def where(self) -> str:
        """Its program or its host, for people."""
        host = re.match(r"[^/]*//(?:[^/@]*@)?([^/:?#]+)", self.setting.url or "")
        return host[1] if host else without_keys((*self.setting.argv, "url")[0])

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the server, or its address, as written: what is agreed to, without keys."""
        words = self.setting.argv or (self.setting.url or "",)
        secrets = literal_secrets(self.setting)
        return tuple(without_keys(word, secrets) for word in words)

    @property
    def rest(self) -> tuple[str, ...]:
        """What else is agreed to: the way to it, its folder, the names of what it is given."""
        given = self.setting
        names = sorted(given.env), sorted(each.lower() for each in given.headers)
        return (given.transport, given.cwd or "", *names[0], "", *names[1])

    @asynccontextmanager
    async def connected(self, stderr: "Stderr") -> AsyncIterator["ClientSession"]:
        """Start it, or connect to it, until the end. Raises what can not be used of it."""
        mask_logs()
        note_secrets(literal_secrets(self.setting))
        if self.setting.url:
            from langchain_mcp_adapters.sessions import create_session

            async with create_session(self._address()) as session:
                yield session
            return
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        program = await to_thread(self._program)
        how = StdioServerParameters(**program, encoding_error_handler="replace")
        async with (
            stdio_client(how, errlog=stderr.file) as (read, write),
            ClientSession(read, write) as session,
        ):
            yield session

    def _address(self) -> Any:
        given = self.setting
        return {
            "transport": "sse" if given.transport == "sse" else "streamable_http",
            "url": expand_variables(given.url or "", "url"),
            "headers": {
                name: expand_variables(value, f"header {name}")
                for name, value in given.headers.items()
            },
        }

    def _program(self) -> dict[str, Any]:
        given = self.setting
        program, *rest = given.argv
        command = expand_variables(program, "command")
        args = [expand_variables(word, "args") for word in rest]
        env = {name: expand_variables(value, f"env {name}") for name, value in given.env.items()}
        here = Path(os.path.realpath(self.workspace or Path.cwd()))
        folder = Path(expand_variables(given.cwd or "/", "cwd"))
        if not folder.is_absolute():
            raise ValueError(f"its cwd has to be a whole path, and is {folder}")
        paths = env.get("PATH")
        found = find_program(command, here, paths)
        if found is None:
            said = "No such program outside of the workspace"
            words = ": its arguments belong in args" if " " in command and not args else ""
            raise FileNotFoundError(said + words)
        what = f"the MCP server {self.name!r}"
        protect_places([found, *args], folder, here, what, env)
        env["PATH"] = os.pathsep.join(search_path(here, paths))
        if here.is_relative_to(folder) and folder != Path("/"):
            env["PYTHONSAFEPATH"] = "1"  # asked for by name: but no module is taken from there
        elif given.cwd:
            add_own({folder, Path(os.path.realpath(folder))}, what)
        argv = [*_supervisor(), found, *args]
        return {"command": argv[0], "args": argv[1:], "cwd": folder, "env": env}


@cache
def _supervisor() -> tuple[str, ...]:
    """Return what starts a server whose every process ends with it, and with this process."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # no Linux, or an old one: a server has to end by itself
        return ()
    return (sys.executable, "-I", "-S", SUPERVISOR, "serve")


class Stderr:
    """The end of what a server says beside its answers: it is read, and kept from the terminal."""

    _MOST: Final = 4000

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.file = os.fdopen(write, "w")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read, self._take)
        self._end = b""

    def _take(self) -> bool:
        with suppress(BlockingIOError):
            new = os.read(self._read, 65536)
            self._end = (self._end + new)[-self._MOST :]
            return bool(new)
        return False

    def text(self) -> str:
        """Return its last lines as one, without keys."""
        while not self.file.closed and self._take():
            continue
        plain = re.sub(r"\x1b\[[\d;]*[a-zA-Z]", "", self._end.decode("utf-8", "replace"))
        return printable_line(" ".join(without_keys(plain).split())[-300:], 300)

    def close(self) -> None:
        """Read what there is, and no more."""
        self.text()
        self._loop.remove_reader(self._read)
        self.file.close()
        os.close(self._read)


@cache
def mask_logs() -> None:
    """Have keys masked in what the libraries below log: they quote what servers say (SE-08)."""
    names = ("stdio", "sse", "streamable_http")
    for name in ("", "httpx", *(f"mcp.client.{each}" for each in names)):
        logging.getLogger(name).addFilter(_masked_record)


def _masked_record(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    if (plain := without_keys(said)) != said:
        record.msg, record.args = plain, ()
    if record.exc_info:
        text = logging.Formatter().formatException(record.exc_info)
        if (plain := without_keys(text)) != text:
            record.exc_info, record.exc_text = None, plain
    return True


# --- A server that runs, and those of one run.


class StartFailed(Exception):
    """Raised where a server could not be started: nothing was asked of it."""


class Running:
    """A server from its start to its end; many tasks of one loop ask it at once."""

    def __init__(self, server: Server) -> None:
        self.loop = asyncio.get_running_loop()
        self._session: asyncio.Future[ClientSession] = self.loop.create_future()
        self._end = asyncio.Event()
        self._asking = 0
        self._left = False
        self._stderr = Stderr()
        self.life = self.loop.create_task(self._live(server))
        self.life.add_done_callback(lambda life: life.cancelled() or life.exception())  # seen

    async def _live(self, server: Server) -> None:
        """Hold the session in a task of its own: who opens it has to close it."""
        connected = server.connected(self._stderr)
        try:
            async with asyncio.timeout(START_SECONDS) as limit, connected as session:
                await session.initialize()
                limit.reschedule(None)
                self._session.set_result(session)
                await self._end.wait()
        finally:
            self._stderr.close()

    async def ask(self, work: "Callable[[ClientSession], Awaitable[T]]") -> T:
        """Ask it. Raises :class:`StartFailed` where it does not start, and what ``work`` does."""
        self._asking += 1
        try:
            request = asyncio.ensure_future(work(await self._started()))
            try:
                either: set[asyncio.Future[Any]] = {request, self.life}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if request.done():
                    return await request
            finally:
                request.cancel()
            raise ConnectionError(self.reason(ConnectionError("Connection closed")))
        finally:
            self._asking -= 1
            if self._left and not self._asking:
                self.end()

    async def _started(self) -> "ClientSession":
        if not self._session.done():
            either: set[asyncio.Future[Any]] = {self._session, self.life}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._session.done() and not self.life.done():
            return self._session.result()
        error = None if self.life.cancelled() else self.life.exception()
        raise StartFailed(self.reason(error or ConnectionError("Connection closed"))) from error

    def reason(self, error: BaseException) -> str:
        """Say in one line why it failed, with its own last words."""
        said = self._stderr.text()
        return reason_of(error) + (f" (it said: {said})" if said else "")

    @property
    def over(self) -> bool:
        """Whether nobody can ask it any more, or should."""
        return self._left or self.life.done()

    def leave(self) -> None:
        """Ask nothing more of it: it ends with the last of those who do now."""
        self._left = True
        if not self._asking:
            self.end()

    def end(self) -> None:
        """End it; from any thread."""
        with suppress(RuntimeError):  # its loop is closed, and has ended it
            self.loop.call_soon_threadsafe(self._end.set)


class McpServers:
    """The servers of one run, or of as long as somebody keeps them: each is started once."""

    def __init__(self) -> None:
        self._running: dict[tuple[Server, asyncio.AbstractEventLoop], Running] = {}
        self._all: list[Running] = []

    async def ask(
        self, server: Server, work: "Callable[[ClientSession], Awaitable[T]]", *, again: bool = True
    ) -> T:
        """Ask a server, which is started if nobody did; one that broke off is not asked again.

        Raises :class:`StartFailed` where it does not start, and what ``work`` does.
        """
        from anyio import ClosedResourceError
        from mcp import McpError

        running = self.start(server)
        try:
            return await running.ask(work)
        except BaseException as error:
            # what does not fit the server's own schema is no sign that it is gone
            if not (is_refusal(error) or isinstance(error, RuntimeError | ValueError)):
                running.leave()
            if again and isinstance(error, ClosedResourceError):  # it ended before, unseen
                return await self.ask(server, work, again=False)
            if isinstance(error, McpError) and not is_refusal(error):
                raise ConnectionError(running.reason(error)) from None
            raise

    def start(self, server: Server) -> Running:
        """Return the server as it runs here, from now on if it did not, or is to be left."""
        key = server, asyncio.get_running_loop()
        if key not in self._running or self._running[key].over:
            self._running[key] = Running(server)
            self._all = [each for each in self._all if not each.life.done()]
            self._all.append(self._running[key])
        return self._running[key]

    def are_here(self, server: Server) -> bool:
        """Whether a server was started here, on the loop that turns."""
        return (server, asyncio.get_running_loop()) in self._running

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all; those of another loop are only told to."""
        for each in self._all:
            each.end()
        own = {each.life for each in self._all if each.loop is asyncio.get_running_loop()}
        self._all, self._running = [], {}
        if own:
            await asyncio.wait(own)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have the calls that are made meanwhile go to these servers."""
        token = _OF_THE_RUN.set(self)
        try:
            yield
        finally:
            _OF_THE_RUN.reset(token)


_OF_THE_RUN: ContextVar[McpServers | None] = ContextVar("servers of the run", default=None)


async def ask_server(
    server: Server, kept: McpServers | None, work: "Callable[[ClientSession], Awaitable[T]]"
) -> T:
    """Ask a server: one that is ``kept`` open, else that of the run, else one for this alone."""
    if kept and kept.are_here(server):
        return await kept.ask(server, work)
    if servers := _OF_THE_RUN.get():
        return await servers.ask(server, work)
    async with McpServers() as servers:
        return await servers.ask(server, work)


def is_refusal(error: BaseException) -> bool:
    """Whether a server said so itself, and goes on."""
    from mcp import McpError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, McpError) and error.error.code != CONNECTION_CLOSED


def reason_of(error: BaseException) -> str:
    """Say in one line what is at the bottom of an error; task groups wrap it several times."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    if isinstance(error, TimeoutError) and not text:
        return f"it did not answer in {START_SECONDS:g} s"
    return without_keys(text or type(error).__name__)[:300]
