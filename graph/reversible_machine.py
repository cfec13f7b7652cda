"""What a thread can be set back to: where its task failed, and its files at any savepoint."""

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from daruma.graph.held import workspace_of
from daruma.graph.held_machine import HeldMachine
from daruma.graph.reopening import fork_of
from daruma.graph.starting_point import newest
from daruma.graph.undoing import brought_back, savepoints_of, undone
from daruma.state.savepoint import Savepoint
from daruma.state.settings import Settings
from daruma.tools.files.workspace import aworkspace_locked, workspace_locked
from daruma.tools.snapshots.outcome import Conflicts, Restored
from daruma.tools.threads import in_thread


class ReversibleMachine(HeldMachine):
    """A graph whose threads can be reopened, and whose work can be undone."""

    settings: Settings

    def reopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Set a thread back to where its newest task failed; ``invoke(None, config)`` goes on.

        The files of its workspace go back with it, but for what somebody else changed.
        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        Returns the config of the thread. Raises
        :class:`~daruma.graph.reopening.NothingToReopen`.
        """
        with self._held(config) as own:
            history = [*own.get_state_history(newest(self._thread(config)))]
            fork = fork_of(history, call, self.settings)
            if call is None:
                with workspace_locked(workspace_of(None, history[0])):
                    brought_back(history[0])
            given = merge_configs(fork.config, _kept(config))
            own.update_state(given, fork.values, as_node=fork.as_node)
        return newest(config)

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        async with self._aheld(config) as own:
            thread = newest(self._thread(config))
            history = [past async for past in own.aget_state_history(thread)]
            fork = fork_of(history, call, self.settings)
            if call is None:
                async with aworkspace_locked(workspace_of(None, history[0])):
                    await in_thread(brought_back, history[0])
            given = merge_configs(fork.config, _kept(config))
            await own.aupdate_state(given, fork.values, as_node=fork.as_node)
        return newest(config)

    def undo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Put the files of a thread's workspace back; the thread's state stays as it is (RO-07).

        ``to`` is the id of a savepoint, such as ``2/p1``, or of a snapshot, such as
        ``Restored.before``, which undoes an undo. None means the start of the newest task; with a
        ``checkpoint_id`` in the config, the newest savepoint of that checkpoint. ``conflicts`` says
        what becomes of files that both the thread's work and somebody else changed.

        Raises :class:`~daruma.graph.undoing.UndoRefused` where that state can not be had,
        :class:`~daruma.tools.snapshots.outcome.RestoreRefused` for conflicts, before anything is
        changed.
        """
        given = self._thread(config)
        with self._held(config) as own:
            past = own.get_state(given)
            return undone(past, to, conflicts, travelled=_travelled(given))

    async def aundo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Do the same, asynchronously."""
        given = self._thread(config)
        async with self._aheld(config) as own:
            past = await own.aget_state(given)
            return await in_thread(undone, past, to, conflicts, travelled=_travelled(given))

    def savepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Return the states that a thread's files can be put back to, oldest first.

        Raises :class:`~daruma.graph.undoing.UndoRefused` where there is no such thread.
        """
        return savepoints_of(self.get_state(self._thread(config)))

    async def asavepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Do the same, asynchronously."""
        return savepoints_of(await self.aget_state(self._thread(config)))


def _travelled(config: RunnableConfig) -> bool:
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _kept(config: RunnableConfig) -> RunnableConfig:
    return RunnableConfig(metadata=config.get("metadata", {}))
