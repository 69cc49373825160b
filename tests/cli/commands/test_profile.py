from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import tilewright as tw
from tests.cli.invoke import fail, invoke, succeed, succeed_json
from tilewright.cli.commands.profile import _roofline

QUICK = ("--runs", 2, "--threads", 1)


def test_table_and_descriptions(conv_file: Path) -> None:
    text = succeed("profile", conv_file, *QUICK, "--top", 1)
    assert text.startswith("kernel")
    assert "of roof" in text
    assert "outside of them" in text
    assert text.count("computes ") == 1
    assert "computes" not in succeed("profile", conv_file, *QUICK, "--top", 0)


def test_a_page_with_measured_times(mlp_file: Path) -> None:
    text = succeed("profile", mlp_file, "--dim", "N=3", *QUICK, "--html", "p.html", "--trace", "t")
    assert text.split() == ["p.html", "t"]
    events = json.loads(Path("t").read_text())["traceEvents"]
    assert all(event["dur"] > 0 for event in events)
    assert "Tilewright explorer" in Path("p.html").read_text()


def test_a_trace_of_all_runs(mlp_file: Path) -> None:
    report = succeed_json("profile", mlp_file, "--dim", "N=3", *QUICK, "--trace", "t.json")
    events = json.loads(Path("t.json").read_text())["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in steps} == {1, 2}
    assert {event["name"] for event in steps} == {k["name"] for k in report["kernels"]}
    assert all(event["args"]["nodes"] for event in steps)


def test_symbolic_sizes_are_those_of_the_run(mlp_file: Path) -> None:
    small, large = (
        succeed_json("profile", mlp_file, "--dim", f"N={n}", *QUICK)["kernels"] for n in (1, 64)
    )
    flops = [sum(k["flops"] for k in rows) for rows in (small, large)]
    assert flops[1] > flops[0] > 0
    assert all(k["rule"] and k["decisions"] is not None for k in large)


def test_inputs_from_files(mlp_file: Path) -> None:
    np.save("x.npy", np.zeros((3, 16), np.float32))
    report = succeed_json("profile", mlp_file, "-i", "x=x.npy", *QUICK)
    assert report["threads"] == 1
    assert report["whole_ms"] > 0
    fail("profile", mlp_file, *QUICK, code="cli.dim")


def test_precision(mlp_file: Path) -> None:
    """Whatever the machine has, the option is taken, and a name that is none is refused."""
    options = ("--dim", "N=2", *QUICK)
    for command in (("profile", *options), ("run", "--random", "--dim", "N=2")):
        succeed(command[0], mlp_file, *command[1:], "--precision", "fp16")
        assert invoke(command[0], mlp_file, "--precision", "fp3").exit_code != 0


def test_a_saved_model(conv_file: Path) -> None:
    succeed("compile", conv_file, "-o", "m.tw")
    assert "computes " in succeed("profile", "m.tw", *QUICK)


def test_roofs_of_a_gpu_are_those_of_its_data_sheet(mlp_file: Path) -> None:
    with tw.compile(mlp_file, target="cuda", cache=False) as model:
        plain, rounded = (_roofline(model, precision) for precision in ("f32", "tf32"))
    assert [level.name for level in plain.levels] == ["memory"]
    assert rounded.flops_per_second["f32"] > plain.flops_per_second["f32"]
