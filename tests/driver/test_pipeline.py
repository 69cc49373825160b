from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.kernels.cases import build_model
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.cli.input_files import random_inputs
from tilewright.core.dtypes import F16, F32, DType
from tilewright.core.errors import ConfigError
from tilewright.driver.compile import compile
from tilewright.driver.pipeline import (
    CPU,
    GPU,
    PIPELINES,
    REQUIRED,
    all_passes,
    disabled_passes,
    find_pass,
    passes_for,
)
from tilewright.driver.timings import Timings
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.context import PassContext
from tilewright.passes.conv.pad_for_tensor_cores import pad_for_tensor_cores
from tilewright.passes.manager import pass_doc, pass_name, run_passes
from tilewright.target.host import host
from tilewright.target.registry import resolve_gpu


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    after = run_passes(graph, CPU[:-1], PassContext(host()))
    assert_same_results(graph, after, rtol=1e-5)


def test_a_pass_its_file_and_its_function_have_one_name() -> None:
    for name, p in all_passes().items():
        package, module = p.__module__.rpartition(".")[::2]
        assert package.startswith("tilewright.passes")
        assert module == name
        assert pass_doc(p).endswith(".")


@for_each("kind", PIPELINES)
def test_groups_are_formed_last(kind: str) -> None:
    assert pass_name(PIPELINES[kind][-1]) == "fuse"


def test_each_kind_of_machine_has_its_own_list() -> None:
    assert passes_for(host()) == CPU
    assert passes_for(resolve_gpu("cuda")) == GPU
    assert find_pass("pad-for-tensor-cores") is pad_for_tensor_cores
    assert pad_for_tensor_cores in GPU
    assert pad_for_tensor_cores not in CPU
    with pytest.raises(ConfigError, match="winograd"):
        find_pass("winogrod")


@for_each("precision", ["f32", "fp16", "bf16", "tf32"])
@for_each("dtype", [F32, F16])
def test_channels_are_last_where_matrices_read_them(precision: str, dtype: DType) -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, 2, 8, 5, 5))
    weights = g.constant(np.ones((16, 8, 3, 3), dtype.numpy))
    values = {"strides": (1, 1), "pads": (1,) * 4, "dilations": (1, 1)}
    graph = g.graph(g.add("conv", x, weights, attrs=make_attrs("conv", values)))
    after = run_passes(graph, GPU[:-1], PassContext(resolve_gpu("cuda"), precision))
    (layout,) = (n.attrs.layout for n in after.nodes if n.op == "conv")  # type: ignore[attr-defined]
    wide = precision == "f32" and dtype is F32
    assert layout == ("channels_first" if wide else "channels_last")


def test_what_is_disabled_does_not_run() -> None:
    names = [*map(pass_name, passes_for(host(), ("sink-reshapes", "winograd")))]
    assert names == [n for n in map(pass_name, CPU) if n not in ("sink_reshapes", "winograd")]
    assert disabled_passes(("winograd", "cse", "winograd")) == ("cse", "winograd")
    with pytest.raises(ConfigError, match="no pass named 'winogrod'"):
        passes_for(host(), ("winogrod",))


@for_each("name", REQUIRED)
def test_what_correctness_needs_cannot_be_disabled(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} cannot be disabled") as caught:
        passes_for(host(), (name,))
    assert caught.value.code == "pass.required"


@pytest.mark.parametrize("name", ["loop", "lstm", "resize_linear", "conv3x3"])
def test_results_stay_right_without_each_pass(name: str) -> None:
    """Of the passes that change a model; without one that does not, it is the same model."""
    model, timings = build_model(name), Timings()
    with compile(model, timings=timings, cache=False, threads=1) as whole:
        inputs = random_inputs(whole.inputs, {}, 0)
        expected = whole.run(inputs)
    changed = {r.name for r in timings.passes.records if r.changed} - REQUIRED.keys()
    assert changed
    for disabled in sorted(changed):
        less = Timings()
        options = {"disable_passes": (disabled,), "timings": less, "cache": False, "threads": 1}
        with compile(model, **options) as other:  # type: ignore[arg-type]
            found = other.run(inputs)
        assert disabled not in {r.name for r in less.passes.records}
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=1e-3, err_msg=disabled)
