"""The table of methods says what is: files, commands and figures exist, and no name is missing."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from tests.for_each import for_each
from tilewright.cli.main import cli
from tilewright.methods import sources
from tilewright.methods.method import PublishedMethod
from tilewright.methods.table import METHODS, SECTIONS

ROOT = Path(__file__).parents[2]
SOURCES = [value for name, value in vars(sources).items() if name.isupper()]

# What the table must cover, by the names that papers and surveys give.
EXPECTED = {
    "Tuning and cost models": (
        "TVM",
        "AutoTVM",
        "MetaSchedule",
        "Ansor",
        "FlexTensor",
        "FamilySeer",
        "Woodpecker-DL",
        "AdaTune",
        "ProTuner",
        "Chameleon",
        "DynaTune",
        "Lorien",
        "TenSet",
        "Tiramisu cost model",
        "Value Learning",
        "One-shot tuner",
        "TLP and MTL-TLP",
        "Heron",
        "Tuna",
        "Bayesian optimisation for GPU kernels",
        "GNN surrogate",
        "DietCode",
        "AKG tuner",
        "XGBoost",
        "Pruner",
        "TCL",
        "Compiler world models",
    ),
    "Frameworks, IRs and runtimes": (
        "XLA",
        "HLO",
        "MLIR-HLO",
        "StableHLO",
        "JAX",
        "torch_xla FSDP",
        "Auto-clustering",
        "Grappler",
        "TFRT",
        "IREE",
        "MLIR",
        "LLVM and let-bound graphs",
        "TorchScript",
        "nGraph",
        "Glow",
        "MindSpore with AKG graph kernels",
        "Paddle SSA graph passes",
        "BYOC",
        "TensorRT",
        "OpenVINO",
        "HALO and ODLA",
        "NVIDIA Triton server",
    ),
    "Tensor compilers": (
        "Halide",
        "Halide autoscheduler, Mullapudi",
        "Halide autoscheduler, Li",
        "Halide autoscheduler, Adams",
        "Halide autoscheduler, Anderson",
        "Tensor Comprehensions",
        "TACO",
        "Tiramisu",
        "PolyMage",
        "AlphaZ",
        "CHiLL",
        "URUK",
        "Stripe",
        "Roller",
        "NNFusion and Rammer",
        "PET",
        "Diesel",
        "OpenAI Triton",
        "nvFuser",
        "BladeDISC and DISC",
        "Nimble, replay of recorded launches",
        "Nimble, virtual machine for dynamic models",
        "VELTAIR",
        "TPU1 and TPU2",
        "GCN",
        "TrueNorth",
    ),
    "Graph neural networks": ("Graphiler", "Seastar", "FeatGraph", "DGL", "PyG"),
    "Formats and converters": (
        "ONNX",
        "onnx-simplifier",
        "onnx optimizer",
        "onnx-utils",
        "NNEF",
        "MMdnn",
        "deep-learning-model-convertor list",
    ),
    "Classic techniques": (
        "No-op and zero-size elimination",
        "Algebraic rewriting",
        "Equality saturation",
        "Fusion by operator class",
        "Operator sinking",
        "CSE, DCE and DSE",
        "Static memory planning",
        "Layout transformation",
        "Intrinsic mapping",
        "Memory hierarchy and latency hiding",
        "Loop transformations",
        "Parallel loops and SIMD",
        "Bound inference",
        "Polyhedral legality",
        "Cost models",
        "Search strategies",
        "Parallel measurement and reuse",
        "Control flow",
        "Derivatives",
        "Custom operators",
        "Unknown shapes",
        "Quantisation",
        "Half precision",
        "Training",
        "Ahead of time and just in time",
        "Constant-time checking",
    ),
}

STARTED = [m for m in METHODS if m.state != "not built"]
QUOTED = [(m, m.result) for m in METHODS if m.result is not None]


def test_the_state_follows_from_the_row() -> None:
    bare = PublishedMethod("name", "2020, OSDI", "An idea.")
    there = replace(bare, files=("tilewright/methods/table.py",))
    assert bare.state == "not built"
    assert there.state == "built"
    assert replace(there, missing="half of it").state == "partly"


def test_names_are_unique() -> None:
    assert [name for name, n in Counter(m.name for m in METHODS).items() if n > 1] == []


def test_every_known_method_has_a_row() -> None:
    rows = {section.title: {m.name for m in section.methods} for section in SECTIONS}
    assert {title: set(names) - rows[title] for title, names in EXPECTED.items()} == {
        title: set() for title in EXPECTED
    }


def test_what_is_not_built_claims_nothing() -> None:
    for method in METHODS:
        if method.state == "not built":
            assert (method.missing, method.command, method.result) == ("", "", None), method.name


def test_ideas_are_sentences() -> None:
    assert [m.name for m in METHODS if not (m.published and m.idea.endswith("."))] == []


def test_files_exist() -> None:
    files = [(m.name, file) for m in STARTED for file in m.files]
    assert all(file.startswith("tilewright/") for _, file in files)
    assert [row for row in files if not (ROOT / row[1]).is_file()] == []


def test_commands_exist() -> None:
    found = {m.name: problems(m.command) for m in STARTED}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@for_each(
    "command",
    [
        "",
        "tilewright taks",
        "tilewright lab taks",
        "tilewright lab tasks --sceduler ansor",
        "python benchmarks/nothing.py",
        "python benchmarks/calls.py --jsn x",
        "python -m pytest tests/nothing.py",
        "make nothing",
        "bash -c true",
    ],
)
def test_commands_that_do_not_exist_are_seen(command: str) -> None:
    assert problems(command)


def test_every_figure_stands_in_its_source() -> None:
    wrong = {
        m.name: sorted(numbers(r.text) - numbers((ROOT / r.source).read_text())) for m, r in QUOTED
    }
    assert {name: figures for name, figures in wrong.items() if figures} == {}, (
        "the source has other figures now, or they stand elsewhere: renew the row or sources.py"
    )


def test_every_result_is_a_figure() -> None:
    assert [m.name for m, r in QUOTED if not numbers(r.text)] == []


def test_sources_are_those_that_are_named_once() -> None:
    assert {r.source for _, r in QUOTED} == set(SOURCES)


def test_numbers_are_taken_whole() -> None:
    assert numbers("0.96 of 1,884; 4096x64, resnet50.") == {"0.96", "1,884", "4096", "64", "50"}


def numbers(text: str) -> set[str]:
    """The numbers of a text as they are written there."""
    return set(re.findall(r"\d+(?:[.,]\d+)*", text))


def problems(command: str) -> list[str]:
    """What of a command does not exist."""
    program, *args = shlex.split(command) or [""]
    if program == "tilewright":
        return _of_tilewright(cli, args)
    if program == "make":
        rules = (ROOT / "Makefile").read_text()
        return [target for target in args if f"\n{target}:" not in rules]
    if program == "python" and args[:2] == ["-m", "pytest"]:
        return [path for path in args[2:] if not (ROOT / path).exists()]
    if program == "python" and (ROOT / args[0]).is_file():
        text = _with_imports(ROOT / args[0])
        return [a for a in args if a.startswith("--") and f'"{a}"' not in text]
    return [command or "no command"]


def _of_tilewright(command: click.Command, args: list[str]) -> list[str]:
    """Go down the groups as far as the words name commands, then look at the options."""
    if isinstance(command, click.Group) and args and not args[0].startswith("--"):
        found = command.get_command(click.Context(command), args[0])
        return [args[0]] if found is None else _of_tilewright(found, args[1:])
    known = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    return [a for a in args if a.startswith("--") and a not in known]


def _with_imports(script: Path) -> str:
    """The text of a script and of the modules beside it that it imports."""
    text = script.read_text()
    beside = (script.parent / f"{m}.py" for m in re.findall(r"^(?:from|import) (\w+)", text, re.M))
    return "\n".join([text, *(path.read_text() for path in beside if path.is_file())])
