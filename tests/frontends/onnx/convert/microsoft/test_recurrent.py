"""DynamicQuantizeLSTM, against onnxruntime.

A state that differs in its last bit may be rounded to another byte, which moves what follows by a
step of the quantization, about 1/255 of the range times a weight: hence 1e-3. That is rare: of 18
random layers of up to 64 units and 20 steps none differed by more than 1e-6. Where sequences end
early onnxruntime goes on computing behind their ends, and so has another range: hence 1e-2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tests.frontends.onnx.convert.run_node import node_model, reference
from tilewright.core.errors import FrontendError, UnsupportedError

UNITS, SIZE, BATCH = 7, 5, 3
CONSTANTS = (1, 2, 8, 9, 10, 11)


def _layer(
    directions: int = 1,
    *,
    time: int = 6,
    signed: bool = True,
    channels: bool = False,
    bias: bool = True,
    lengths: list[int] | None = None,
    states: bool = False,
    peepholes: bool = False,
) -> list[np.ndarray | None]:
    """The inputs of a layer; what is left out is absent."""
    kind, low, zero = ("i1", -100, 3) if signed else ("u1", 28, 127)
    shape = (directions, 4 * UNITS) if channels else (directions,)
    zero = 0 if channels else zero

    def weights(rows: int) -> np.ndarray:
        return RNG.integers(low, low + 200, (directions, rows, 4 * UNITS)).astype(kind)

    def scales() -> np.ndarray:
        return RNG.uniform(0.003, 0.01, shape).astype("f4")

    state = (directions, BATCH, UNITS)
    return [
        normal(time, BATCH, SIZE),
        weights(SIZE),
        weights(UNITS),
        normal(directions, 8 * UNITS) if bias else None,
        np.array(lengths, "i4") if lengths else None,
        normal(*state) if states else None,
        normal(*state) if states else None,
        normal(directions, 3 * UNITS) if peepholes else None,
        scales(),
        np.full(shape, zero, kind),
        scales(),
        np.full(shape, zero, kind),
    ]


def _check(inputs: list[np.ndarray | None], atol: float = 1e-3, **attrs: Any) -> None:
    attrs = {"hidden_size": UNITS, **attrs}
    check_ms("DynamicQuantizeLSTM", inputs, outputs=3, constants=CONSTANTS, atol=atol, **attrs)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("channels", [True, False])
def test_scales_of_a_tensor_and_of_channels(signed: bool, channels: bool) -> None:
    _check(_layer(signed=signed, channels=channels and signed))


def test_one_step_has_no_rounding_of_its_own() -> None:
    """Given states are the same to the bit, and so are their bytes."""
    _check(_layer(time=1, states=True), atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("states", [True, False])
def test_directions(direction: str, states: bool) -> None:
    many = 2 if direction == "bidirectional" else 1
    _check(_layer(many, states=states, bias=states), direction=direction)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_sequences_that_end_early(direction: str) -> None:
    many = 2 if direction == "bidirectional" else 1
    inputs = _layer(many, lengths=[5, 1, 3], states=True, channels=True)
    _check(inputs, atol=1e-2, direction=direction)


def test_peepholes_clipping_and_coupled_gates() -> None:
    _check(_layer(peepholes=True), clip=0.7)
    _check(_layer(peepholes=True, states=True), input_forget=1)


@pytest.mark.parametrize("names", [("HardSigmoid", "ScaledTanh", "Affine"), ("Elu",) * 3])
def test_other_activations(names: tuple[str, ...]) -> None:
    numbers = {"activation_alpha": [0.3, 1.1, 0.9], "activation_beta": [0.4, 1.2, 0.1]}
    _check(_layer(), activations=list(names), **(numbers if "Affine" in names else {}))


def test_one_model_for_all_lengths() -> None:
    """Compiled once with symbolic numbers of steps and of sequences."""
    inputs = _layer(2, states=False)
    options = {
        "outputs": 3,
        "constants": (*CONSTANTS, 3),
        "hidden_size": UNITS,
        "direction": "bidirectional",
        "domain": "com.microsoft",
        "opset": 1,
    }
    proto = node_model("DynamicQuantizeLSTM", inputs, dims={0: ["T", "B", SIZE]}, **options)
    with tw.compile(proto, threads=1, cache=False) as model:
        for time, batch in ((1, 1), (9, 2), (4, 5)):
            inputs[0] = normal(time, batch, SIZE)
            expected = reference("DynamicQuantizeLSTM", inputs, **options)
            for ours, theirs in zip(model(inputs[0]), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_refusals() -> None:
    wrong = _layer()
    wrong[8] = np.ones(3, "f4")
    with pytest.raises(FrontendError, match=r"input 8 is f32\[3\], its shape must be \[1\]"):
        run_ms("DynamicQuantizeLSTM", wrong, outputs=3, hidden_size=UNITS)
    with pytest.raises(FrontendError, match="hidden_size is 8"):
        run_ms("DynamicQuantizeLSTM", _layer(), outputs=3, hidden_size=8)
    half = _layer()
    half[0] = half[0].astype("f2")
    with pytest.raises(UnsupportedError, match="an input f16"):
        run_ms("DynamicQuantizeLSTM", half, outputs=3, hidden_size=UNITS)
