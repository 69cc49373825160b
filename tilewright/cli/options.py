"""Options of several commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

model_argument = click.argument("model", type=click.Path(path_type=Path))
form_option = click.option(
    "--form",
    type=click.Choice(["ssa", "let"]),
    default="ssa",
    show_default=True,
    help="The text of graphs: statements, or nested lets.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
inputs_option = click.option(
    "-i", "--input", "given", multiple=True, metavar="NAME=FILE.npy", help="An input."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the random inputs."
)
target_option = click.option(
    "--target", default="native", show_default=True, help="See `tilewright list targets`."
)
precision_option = click.option(
    "--precision",
    default="f32",
    show_default=True,
    help="bf16 lets products and convolutions round their operands where that is faster; fp16 lets "
    "a machine whose vectors compute in f16 do so; tf32 lets a GPU round those of f32.",
)
disable_pass_option = click.option(
    "--disable-pass",
    "disable_passes",
    multiple=True,
    metavar="NAME",
    help="Do not run this graph pass; may be repeated. See `tilewright list passes`.",
)
checks_option = click.option(
    "--checks",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Whether an index outside its tensor is an error; off takes the nearest element.",
)
threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads to run on. [default: one a core]"
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, help="Compile anew; neither read nor write the cache."
)
tuned_option = click.option(
    "--tuned",
    type=click.Path(path_type=Path),
    metavar="RECORDS",
    help="Use the schedules of this file that are faster than the built-in ones.",
)
nearest_workload_option = click.option(
    "--nearest-workload",
    is_flag=True,
    help="With --tuned: also schedules for kernels of other sizes.",
)
overrides_option = click.option(
    "--override-loops",
    "overrides",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take kernels from DIR/<kernel>.loops where there is such a file.",
)


def parse_dims(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, int]:
    """`("N=1", "S=128")` as a dictionary."""
    dims: dict[str, int] = {}
    for text in given:
        name, equals, size = text.partition("=")
        if not (name and equals and size.isascii() and size.isdigit()):
            raise click.BadParameter(f"{text!r} is not NAME=SIZE, for example N=1")
        if dims.setdefault(name, int(size)) != int(size):
            raise click.BadParameter(f"{name} is given two sizes")
    return dims


def parse_types(
    _: click.Context, __: click.Parameter, given: Sequence[str]
) -> dict[str, str] | tuple[str, ...] | None:
    """`("x=f32[N, 3]",)` as a dictionary, `("f32[N, 3]",)` as it is."""
    pairs = [text.partition("=") for text in given]
    named = [bool(equals) for _, equals, _ in pairs]
    if any(named) and not all(named):
        raise click.BadParameter("give all types with names, or none")
    if any(named):
        return {name: type for name, _, type in pairs}
    return tuple(given) or None


types_option = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="[NAME=]TYPE",
    callback=parse_types,
    help="The type of an input of a TorchScript archive, which tells none: x=f32[N, 3, 224, 224].",
)
dims_option = click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME=SIZE",
    callback=parse_dims,
    help="Give a symbolic size a value; may be repeated.",
)
