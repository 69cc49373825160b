"""Running commands in this process, as the tests of all commands do."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from tilewright.cli.main import cli


def invoke(*args: object) -> Result:
    """Run `tilewright args...`; the result has exit_code, stdout and stderr."""
    return CliRunner().invoke(cli, [str(a) for a in args])


def succeed(*args: object) -> str:
    """Standard output of a command that must succeed."""
    result = invoke(*args)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def succeed_json(*args: object) -> Any:
    """What a command that must succeed prints with --json."""
    return json.loads(succeed(*args, "--json"))


def fail(*args: object, code: str = "") -> str:
    """The message of a command that must fail with one clear message, with this error code."""
    result = invoke(*args)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert f"[{code}]:" in result.stderr.splitlines()[0], result.stderr
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    return result.stderr
