from __future__ import annotations

import click
from click.testing import CliRunner

from tests.for_each import for_each
from tilewright.cli.options import dims_option


@click.command()
@dims_option
def _command(dims: dict[str, int]) -> None:
    click.echo(dims)


@for_each(
    ("given", "dims"),
    [
        ([], {}),
        (["N=1"], {"N": 1}),
        (["N=1", "N=1", "seq_len=128"], {"N": 1, "seq_len": 128}),
    ],
)
def test_dims(given: list[str], dims: dict[str, int]) -> None:
    args = [word for text in given for word in ("--dim", text)]
    assert CliRunner().invoke(_command, args).stdout == f"{dims}\n"


@for_each("given", ["N", "=1", "N=", "N=-1", "N=1.5", "N=\N{SUPERSCRIPT TWO}"])
def test_dims_that_are_none(given: str) -> None:
    result = CliRunner().invoke(_command, ["--dim", given])
    assert result.exit_code == 2
    assert "is not NAME=SIZE" in result.stderr


def test_two_sizes() -> None:
    result = CliRunner().invoke(_command, ["--dim", "N=1", "--dim", "N=2"])
    assert result.exit_code == 2
    assert "two sizes" in result.stderr
