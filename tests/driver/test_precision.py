"""`precision="bf16"` and `"fp16"`: only where asked for, part of a saved model, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.differential.native import assert_same_on_threads, random_inputs
from tests.driver.compilation_key import compilation_key
from tests.models import mlp
from tests.schedule.builtin.cpu.gemm.bf16_products import weights
from tilewright.core.disk_cache import open_cache
from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError
from tilewright.driver.compile import compile, compile_container
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.precision import PRECISIONS, check_precision, machine_for, rounds_natively
from tilewright.driver.timings import Timings
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.pool import PoolAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.target.host import host
from tilewright.target.registry import CPUS


def _model(rows: int = 40, width: int = 96, filters: int = 72) -> Graph:
    """A convolution, a product of odd size and a residual."""
    g = GraphBuilder("model")
    x = g.input("x", tensor(F32, rows, 7, 5, 32))
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last")
    w = weights(width, 32, 3, 3).astype(np.float32)
    h = g.add("relu", g.add("conv", x, g.constant(w), attrs=attrs))
    y = g.add("matmul", h, g.constant(weights(width, filters).astype(np.float32)))
    return g.graph(g.add("add", y, g.constant(np.arange(filters, dtype=np.float32))))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_both_precisions_run_here(precision: str) -> None:
    graph = _model(2)
    inputs = random_inputs(graph)
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    tolerance = {"f32": 1e-4, "bf16": 2e-2, "fp16": 1e-2, "tf32": 1e-4}[precision]
    with compile(graph, precision=precision, cache=False) as model:
        assert model.manifest["precision"] == precision
        found = model.run(inputs)[graph.outputs[0]]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        assert_same_on_threads(model, inputs, 2, 3)


@pytest.mark.parametrize(("precision", "count"), [("f32", 0), ("tf32", 2)])
def test_tf32_is_for_gpus_that_have_it(precision: str, count: int) -> None:
    build = lower(_model(), make_options(target="cuda", precision=precision))
    emitted = [step.kernel.llvm for step in build.steps]
    assert sum("m16n8k8.row.col.tf32" in text for text in emitted) == count
    assert machine_for(host(), precision) is host()


def _product() -> Graph:
    g = GraphBuilder("product")
    x = g.input("x", tensor(F32, 40, 96))
    return g.graph(g.add("matmul", x, g.constant(weights(96, 64).astype(np.float32))))


def test_f32_is_the_default() -> None:
    assert compile_container(_product(), make_options(cache=False)).manifest["precision"] == "f32"


def test_other_precisions_are_refused() -> None:
    with pytest.raises(ConfigError, match="no precision named 'f8'") as caught:
        compile(_product(), precision="f8")
    assert "bf16" in str(caught.value)


def test_known_ones_are_passed_on() -> None:
    assert check_precision("bf16") == "bf16"


def test_each_precision_is_cached_for_itself() -> None:
    store = open_cache()
    keys = {
        compilation_key(mlp(3), CompileOptions(host(), precision), store)
        for precision in PRECISIONS
    }
    assert len(keys) == len(PRECISIONS)


def test_a_saved_model_keeps_its_precision(tmp_path: Path) -> None:
    with compile(_product(), precision="bf16", cache=False) as model:
        model.save(tmp_path / "model.tw")
    with tw.load(tmp_path / "model.tw") as again:
        assert again.manifest["precision"] == "bf16"


@pytest.mark.parametrize(
    ("target", "rules"),
    [
        ("sapphirerapids", {"amx"}),
        ("neoverse-v1", {"bf16_dot", "register_blocked"}),
        ("x86-64-v3", {"register_blocked"}),
    ],
)
def test_what_each_machine_does(target: str, rules: set[str]) -> None:
    timings = Timings()
    build = lower(_model(), make_options(target=target, precision="bf16", timings=timings))
    found = {
        s.kernel.rule for s in build.steps if "mat" in s.kernel.name or "conv" in s.kernel.name
    }
    assert rules <= found
    assert len(timings.passes.precision) == 2
    assert rounds_natively(build.target, build.precision) == CPUS[target].rounds_to_bf16


def test_the_report_says_what_runs_in_which_precision() -> None:
    manifest = compile_container(
        _model(), make_options(target="sapphirerapids", precision="bf16")
    ).manifest
    lines = [line for line in manifest["explain"].splitlines() if line.startswith("bf16 ")]
    assert len(lines) == 2
    assert "conv" in lines[0]


def test_code_for_a_matrix_unit_is_made_anywhere() -> None:
    container = compile_container(_model(), make_options(target="sapphirerapids", precision="bf16"))
    assert container.manifest["target"]["cpu"] == CPUS["sapphirerapids"].cpu
    assert container.weights.nbytes < 2 * 32 * 9 * 96 * 2


@pytest.mark.parametrize(
    ("target", "precision"),
    [("neoverse-v1", "fp16"), ("sapphirerapids", "fp16"), ("x86-64-v3", "f32")],
)
def test_fp16_is_for_machines_that_compute_in_f16(target: str, precision: str) -> None:
    timings = Timings()
    build = lower(_model(), make_options(target=target, precision="fp16", timings=timings))
    assert {note.precision for note in timings.passes.precision} == {precision}
    half = [s for s in build.steps if "f16acc" in s.kernel.name]
    assert bool(half) == (precision == "fp16")
    assert all(build.graph.types[v] for v in build.graph.outputs)


def test_fp16_of_wide_images_and_long_rows() -> None:
    """Products of every size: one row, odd numbers, parts that do not fill a vector."""
    for rows, depth, columns in ((1, 768, 65), (3, 147, 9), (37, 400, 24), (130, 96, 1)):
        g = GraphBuilder("product")
        x = g.input("x", tensor(F32, rows, depth))
        w = weights(depth, columns).astype(np.float32)
        graph = g.graph(g.add("matmul", x, g.constant(w)))
        inputs = random_inputs(graph)
        expected = inputs["x"].astype(np.float64) @ w
        with compile(graph, precision="fp16", cache=False) as model:
            found = model.run(inputs)[graph.outputs[0]]
            assert_same_on_threads(model, inputs, 2, 3)
        assert found.dtype == np.float32
        error = np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2))
        assert error < 3e-3


def _attention(queries: int, keys: int, size: int, masked: bool) -> Graph:
    """Attention on projected heads, with a mask that f16 cannot hold."""
    g = GraphBuilder("attention")
    q, k, v = (
        g.input(name, tensor(F32, 2, n, size))
        for name, n in (("q", queries), ("k", keys), ("v", keys))
    )
    w = g.constant(weights(size, size).astype(np.float32))
    turned = g.add("transpose", g.add("matmul", k, w), attrs=TransposeAttrs((0, 2, 1)))
    scale = g.constant(np.array(size**-0.5, np.float32))
    scores = g.add("mul", g.add("matmul", g.add("matmul", q, w), turned), scale)
    if masked:
        hidden = np.where(np.arange(keys) % 3 == 1, np.float32(-3e38), np.float32(0))
        scores = g.add("add", scores, g.constant(np.broadcast_to(hidden, (queries, keys)).copy()))
    shares = g.add("softmax", scores, attrs=SoftmaxAttrs(-1))
    return g.graph(g.add("matmul", shares, g.add("matmul", v, w)))


@pytest.mark.parametrize(
    ("queries", "keys", "size", "masked"),
    [(1, 33, 32, False), (19, 7, 24, True), (50, 200, 64, False)],
)
def test_attention_in_fp16(queries: int, keys: int, size: int, masked: bool) -> None:
    _check_fp16(_attention(queries, keys, size, masked), 1.5e-2)


def _windows(channels: int, groups: int) -> Graph:
    """A convolution by Winograd's method or within channels, and pooling."""
    g = GraphBuilder("windows")
    x = g.input("x", tensor(F32, 1, 13, 11, channels))
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last", groups)
    w = weights(channels, channels // groups, 3, 3).astype(np.float32)
    y = g.add("conv", x, g.constant(w), attrs=attrs)
    pool = PoolAttrs((2, 2), (0,) * 4, (1, 1), "channels_last", (3, 3))
    return g.graph(g.add("max_pool", g.add("relu", y), attrs=pool))


@pytest.mark.parametrize(("channels", "groups"), [(96, 1), (40, 40), (5, 1)])
def test_windows_in_fp16(channels: int, groups: int) -> None:
    _check_fp16(_windows(channels, groups), 5e-3)


def _check_fp16(graph: Graph, tolerance: float) -> None:
    inputs = random_inputs(graph)
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    with compile(graph, precision="fp16", cache=False) as model:
        found = model.run(inputs)[graph.outputs[0]]
        assert_same_on_threads(model, inputs, 2, 3)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())
