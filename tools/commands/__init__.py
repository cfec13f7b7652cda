"""Running commands: started, bounded, watched, and ended with all their children.

Commands of a task run through ``run_in_group`` in whatever confinement is in force; programs of
the host, such as git, through the one module that finds them outside of the workspace (SE-01).
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.tools.commands._command import (
        OUTPUT_LIMIT,
        BoundedOutput,
        CommandResult,
        LiveOutput,
        command_environment,
        command_run,
        kill_reason,
        live_output,
        missed_network,
        recorded_output,
        run_in_group,
    )
    from daruma.tools.commands._host_programs import (
        DEVNULL,
        PIPE,
        STDOUT,
        SYSTEM_PATHS,
        CannotRun,
        Started,
        ask_program,
        end_program,
        find_in,
        find_program,
        host_environment,
        run_git,
        run_program,
        search_path,
        unsearched_places,
    )
    from daruma.tools.commands._process import (
        CommandRequest,
        Confinement,
        Launch,
        Limits,
        wait_readable,
        with_limits,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_command": (
                "OUTPUT_LIMIT BoundedOutput CommandResult LiveOutput command_environment "
                "command_run kill_reason live_output missed_network recorded_output "
                "run_in_group"
            ),
            "_host_programs": (
                "DEVNULL PIPE STDOUT SYSTEM_PATHS CannotRun Started ask_program end_program "
                "find_in find_program host_environment run_git run_program search_path "
                "unsearched_places"
            ),
            "_process": "CommandRequest Confinement Launch Limits wait_readable with_limits",
        },
    )

__all__ = [
    "DEVNULL",
    "OUTPUT_LIMIT",
    "PIPE",
    "STDOUT",
    "SYSTEM_PATHS",
    "BoundedOutput",
    "CannotRun",
    "CommandRequest",
    "CommandResult",
    "Confinement",
    "Launch",
    "Limits",
    "LiveOutput",
    "Started",
    "ask_program",
    "command_environment",
    "command_run",
    "end_program",
    "find_in",
    "find_program",
    "host_environment",
    "kill_reason",
    "live_output",
    "missed_network",
    "recorded_output",
    "run_git",
    "run_in_group",
    "run_program",
    "search_path",
    "unsearched_places",
    "wait_readable",
    "with_limits",
]
