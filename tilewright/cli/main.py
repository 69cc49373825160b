"""The command `tilewright`: finds commands by name, and turns whatever they raise into one message.

A command is a row of `COMMANDS`, imported when it is asked for; its module imports the compiler
only when it runs, so that help and completion are quick.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from tilewright import __version__
from tilewright.cli.lazy_group import LazyGroup
from tilewright.core.errors import Error
from tilewright.core.log import show_log

INTERRUPTED = 130

COMMANDS = {
    "compile": "tilewright.cli.commands.compile:compile_command",
    "run": "tilewright.cli.commands.run:run_command",
    "bench": "tilewright.cli.commands.bench:bench_command",
    "profile": "tilewright.cli.commands.profile:profile_command",
    "inspect": "tilewright.cli.commands.inspect:inspect_command",
    "explain": "tilewright.cli.commands.explain:explain_command",
    "explore": "tilewright.cli.commands.explore:explore_command",
    "bisect": "tilewright.cli.commands.bisect:bisect_command",
    "opt": "tilewright.cli.commands.opt:opt_command",
    "run-app": "tilewright.cli.commands.run_app:run_app_command",
    "list": "tilewright.cli.commands.list:list_command",
    "cache": "tilewright.cli.commands.cache:cache_command",
    "doctor": "tilewright.cli.commands.doctor:doctor_command",
    "fuzz": "tilewright.cli.commands.fuzz:fuzz_command",
    "tune": "tilewright.cli.commands.tune:tune_command",
    "records": "tilewright.cli.commands.records:records_command",
    "lab": "tilewright.cli.commands.lab.main:lab_command",
}


class CommandGroup(LazyGroup):
    """Its `main` never lets a traceback out unless `--debug` is given."""

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> int:
        """Run a command and give its exit status, or end the process with it."""
        given, debug = _without_debug(sys.argv[1:] if args is None else args)

        def command() -> object:
            show_log()
            name = prog_name or "tilewright"
            result = click.Group.main(self, given, name, complete_var, False, **extra)
            sys.stdout.flush()  # a full disk shows here, while it can still be reported
            return result

        status = guarded(command, debug)
        if standalone_mode:
            sys.exit(status)
        return status


def guarded(command: Callable[[], object], debug: bool) -> int:
    """The exit status of `command`, what it raised told on standard error in one message."""
    try:
        result = command()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()  # whoever read it has enough
        return 1
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            click.echo(message(error), err=True)
        if isinstance(error, OSError):
            _abandon_output()
        return 1


def message(error: Exception) -> str:
    """What to tell the user about an error."""
    if isinstance(error, Error):
        return str(error)
    if isinstance(error, OSError):
        return f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    if isinstance(error, MemoryError):
        return "error: not enough memory"
    first_line = (str(error).splitlines() or [""])[0]
    return (
        f"internal error: {type(error).__name__}: {first_line}\n"
        "  help: a defect of tilewright; report it with the model and what --debug adds"
    )


def _without_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """`--debug` may stand anywhere before a `--`."""
    end = list(args).index("--") if "--" in args else len(args)
    options = [a for a in args[:end] if a != "--debug"]
    return [*options, *args[end:]], len(options) < end


def _abandon_output() -> None:
    """Let what is still buffered go nowhere, or Python would try to write it again at exit."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())


@click.command(
    "tilewright",
    cls=CommandGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, package_name="tilewright")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def cli() -> None:
    """A deep-learning compiler: models in, native machine code out."""


def main() -> NoReturn:
    """The entry point of the installed script."""
    sys.exit(cli.main(standalone_mode=False))
