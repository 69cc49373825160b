"""ONNX's own cases cover the forms of both operators; here are the forms that they leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import imported, node_model, run_node
from tilewright.core.errors import Error

RNG = np.random.default_rng(25)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(op: str, inputs: list[np.ndarray | None], opset: int = 24, **kw: Any) -> None:
    model = node_model(op, inputs, opset=opset, **kw)
    given = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    expected = ReferenceEvaluator(model).run(None, given)
    for ours, theirs in zip(run_node(op, inputs, opset=opset, **kw), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@for_each("mode", [0, 1, 2, 3])
@for_each("mask", [None, np.bool_, np.float32])
def test_everything_at_once(mode: int, mask: type | None) -> None:
    q, k, v = normal(2, 3, 24), normal(2, 3, 12), normal(2, 3, 8)
    past_k, past_v = normal(2, 2, 4, 6), normal(2, 2, 4, 4)
    given = None if mask is None else normal(3, 7)
    given = given > -1 if mask is np.bool_ and given is not None else given
    check(
        "Attention",
        [q, k, v, given, past_k, past_v],
        outputs=4,
        q_num_heads=4,
        kv_num_heads=2,
        is_causal=1,
        scale=0.4,
        # The reference gives capped scores for mode 0, where the specification says raw ones.
        softcap=1.5 if mode else 0.0,
        qk_matmul_output_mode=mode,
    )


def test_windows() -> None:
    q, k, v = normal(1, 2, 5, 4), normal(1, 2, 6, 4), normal(1, 2, 6, 4)
    check("Attention", [q, k, v], opset=25, left_window_size=1, right_window_size=2)


def test_lengths() -> None:
    q, k, v = normal(2, 2, 3, 4), normal(2, 2, 6, 4), normal(2, 2, 6, 4)
    check("Attention", [q, k, v, None, None, None, np.array([6, 4])], is_causal=1)


def test_dynamic_lengths() -> None:
    q, past = normal(1, 2, 3, 4), normal(1, 2, 5, 4)
    mask = normal(3, 8)
    now, before = ("B", 2, "S", 4), ("B", 2, "P", 4)
    dims = {0: now, 1: now, 2: now, 3: ("S", "total"), 4: before, 5: before}
    inputs = [q, q, q, mask, past, past]
    fixed = run_node("Attention", inputs, opset=24, outputs=3)
    dynamic = run_node("Attention", inputs, opset=24, outputs=3, dims=dims)
    for a, b in zip(fixed, dynamic, strict=True):
        np.testing.assert_array_equal(a, b)


@for_each("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    tables = [normal(9, 3), normal(9, 3)]
    positions = RNG.integers(0, 9, (2, 4))
    for x, extra in ((normal(2, 3, 4, 6), {}), (normal(2, 4, 18), {"num_heads": 3})):
        check("RotaryEmbedding", [x, *tables, positions], interleaved=interleaved, **extra)
        angles = [t[positions] for t in tables]
        check("RotaryEmbedding", [x, *angles], interleaved=interleaved, **extra)


def test_refusals() -> None:
    q = normal(1, 2, 3, 4)
    with pytest.raises(Error, match="qk_matmul_output_mode is 4"):
        imported("Attention", [q, q, q], opset=24, qk_matmul_output_mode=4)
    with pytest.raises(Error, match="cannot be combined"):
        imported("Attention", [q, q, q, None, q, q, np.array([3])], opset=24)
    with pytest.raises(Error, match="num_heads"):
        imported("RotaryEmbedding", [normal(1, 2, 8), normal(1, 2, 4), normal(1, 2, 4)], opset=23)
    tables = [normal(9, 2), normal(9, 2), np.zeros((1, 3), np.int64)]
    with pytest.raises(Error, match="less than 4 elements a head"):
        imported("RotaryEmbedding", [normal(1, 2, 3, 2), *tables], opset=23, rotary_embedding_dim=4)
