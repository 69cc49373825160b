from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.convert.resize import simplest

RNG = np.random.default_rng(3)
X = RNG.standard_normal((1, 2, 4, 5)).astype(np.float32)
SCALED = ("x", "", "scales")
SIZED = ("x", "", "", "sizes")


def scales(*values: float) -> dict[str, np.ndarray]:
    return {"scales": np.array(values, np.float32)}


def sizes(*values: int) -> dict[str, np.ndarray]:
    return {"sizes": np.array(values)}


@for_each("mode", ["nearest", "linear", "cubic"])
@for_each("factors", [(2, 2), (0.6, 0.6), (1.3, 0.4), (0.25, 3)])
def test_scales(mode: str, factors: tuple[float, float]) -> None:
    check("Resize", {"x": X}, scales(1, 1, *factors), order=SCALED, mode=mode)


@for_each("mode", ["nearest", "linear", "cubic"])
def test_sizes(mode: str) -> None:
    check("Resize", {"x": X}, sizes(1, 2, 7, 3), order=SIZED, mode=mode)
    check("Resize", {"x": X}, sizes(7, 3), order=SIZED, mode=mode, axes=[2, 3])


@for_each("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio(policy: str) -> None:
    options = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": "linear"}
    check("Resize", {"x": X}, sizes(7, 8), order=SIZED, **options)


def test_regions() -> None:
    constants = {"roi": np.array([0.4, 0.6, 0.6, 0.8], np.float32), **sizes(3, 3)}
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "axes": [3, 2]}
    order = ("x", "roi", "", "sizes")
    check("Resize", {"x": X}, constants, order=order, mode="linear", **options)
    with pytest.raises(FrontendError, match="region of interest has 0 entries"):
        imported("Resize", {"x": X}, sizes(3, 3), order=SIZED, **options)


def test_dynamic_dimensions() -> None:
    dims = {"x": ("N", 2, "H", "W")}
    options = {"order": SCALED, "mode": "linear", "dims": dims}
    graph = imported("Resize", {"x": X}, scales(1, 1, 2, 0.5), **options)
    assert str(graph.types[graph.outputs[0]]) == "f32[N, 2, H * 2, W // 2]"
    check("Resize", {"x": X}, scales(1, 1, 2, 0.5), **options)
    options["order"] = SIZED
    check("Resize", {"x": X}, sizes(1, 2, 7, 3), **options)


@for_each(("op", "opset"), [("Upsample", 7), ("Upsample", 9), ("Resize", 10)])
@for_each("mode", ["nearest", "linear"])
def test_upsample(op: str, opset: int, mode: str) -> None:
    factors = (1, 1, 2, 3)
    given = {"scales": [float(f) for f in factors]} if opset == 7 else {}
    constants = {} if opset == 7 else scales(*factors)
    (found,) = results(op, {"x": X}, constants, opset=opset, mode=mode, **given)
    assert found.shape == (1, 2, 8, 15)
    if mode == "nearest":
        np.testing.assert_array_equal(found, X.repeat(2, 2).repeat(3, 3))
    else:
        np.testing.assert_array_equal(found[:, :, ::2, ::3], X)


def test_nothing_to_resize() -> None:
    graph = imported("Resize", {"x": X}, scales(1, 1, 1, 1), order=SCALED)
    assert [n.op for n in graph.nodes] == ["identity"]


def test_antialias_matters_only_when_shrinking() -> None:
    options = {"order": SCALED, "mode": "linear", "antialias": 1}
    check("Resize", {"x": X}, scales(1, 1, 2, 2), **options)
    check("Resize", {"x": X}, scales(1, 1, 2, 0.5), **options)
    region = {"roi": np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32), **scales(1, 1, 2, 0.5)}
    options |= {"order": ("x", "roi", "scales"), "opset": 19}
    options["coordinate_transformation_mode"] = "tf_crop_and_resize"
    with pytest.raises(UnsupportedError, match="antialias of a region"):
        imported("Resize", {"x": X}, region, **options)


@for_each(
    ("value", "fraction"), [(1 / 3, (1, 3)), (0.6, (3, 5)), (2.0, (2, 1)), (224 / 227, (224, 227))]
)
def test_simplest_fraction(value: float, fraction: tuple[int, int]) -> None:
    assert simplest(float(np.float32(value))) == Fraction(*fraction)


def test_refusals() -> None:
    with pytest.raises(FrontendError, match="2 scales for 4 dimensions"):
        imported("Resize", {"x": X}, scales(2, 2), order=SCALED)
    with pytest.raises(FrontendError, match="not above 0"):
        imported("Resize", {"x": X}, scales(1, 1, 0, 1), order=SCALED)
    with pytest.raises(FrontendError, match="use Resize for that"):
        imported("Upsample", {"x": X}, scales(1, 1, 0.5, 2), order=("x", "scales"), opset=9)
    with pytest.raises(UnsupportedError, match="known only when the model runs"):
        imported("Resize", {"x": X, **scales(1, 1, 2, 2)}, order=SCALED)
