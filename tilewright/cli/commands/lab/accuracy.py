"""`tilewright lab accuracy`: how well cost models order programs that they have not seen."""

from __future__ import annotations

from dataclasses import asdict

import click

from tilewright.cli.commands.lab.leaderboard import names
from tilewright.cli.commands.lab.options import COUNT, programs_option
from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, print_table


@click.command("accuracy")
@programs_option
@click.option("--cost-models", default="random,analytical,ridge,lightgbm", show_default=True)
@click.option(
    "--train", type=COUNT, default=64, show_default=True, help="Candidates learnt from in a space."
)
@click.option("--seeds", type=COUNT, default=5, show_default=True, help="Ways to choose them.")
@json_option
def accuracy_command(
    spaces: tuple[str, ...], cost_models: str, train: int, seeds: int, as_json: bool
) -> None:
    """Kendall's tau of cost models on programs that they have not learnt from.

    Within a space: the candidates left over. Across: all of a space, learnt from the others.
    """
    from tilewright.tune.benchmark.accuracy import accuracies
    from tilewright.tune.space.table import program_spaces

    found = accuracies(spaces or program_spaces(), names(cost_models), train, range(seeds))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [
        [one.space, one.cost_model, round(one.within, 3), _rounded(one.across)] for one in found
    ]
    print_table(["space", "cost model", "within", "across"], rows)


def _rounded(number: float | None) -> float | str:
    return "" if number is None else round(number, 3)
