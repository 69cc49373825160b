from __future__ import annotations

import sys

import click
from click.testing import CliRunner

from tilewright.cli.lazy_group import LazyGroup

MODULE = "tilewright.cli.commands.doctor"
GROUP = LazyGroup("tools", table={"check": f"{MODULE}:doctor_command"})


def test_a_command_is_imported_when_it_is_asked_for() -> None:
    ctx = click.Context(GROUP)
    assert GROUP.list_commands(ctx) == ["check"]
    sys.modules.pop(MODULE, None)
    assert GROUP.get_command(ctx, "nothing") is None
    assert MODULE not in sys.modules
    assert GROUP.get_command(ctx, "check") is not None
    assert MODULE in sys.modules


def test_unknown_commands_are_refused() -> None:
    assert CliRunner().invoke(GROUP, ["nothing"]).exit_code == 2
