from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.codegen.gpu.ptxas import assemble
from tests.for_each import for_each
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.dtypes import BF16, F16, DType
from tilewright.finalize.math.gpu import APPROXIMATIONS, expand_on_gpu
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.parse import parse_func
from tilewright.target.registry import resolve_gpu

RIGHT = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp_ftz": np.exp,
    "exp_nonpositive": np.exp,
    "exp2_ftz": np.exp2,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": np.vectorize(lambda x: x * 0.5 * math.erfc(-x * math.sqrt(0.5))),
}
# What is computed to fewer bits where it is rounded to 16, and what is not.
ROUNDED = {
    "sigmoid(x[b])": RIGHT["sigmoid"],
    "gelu(x[b])": RIGHT["gelu"],
    "x[b] * sigmoid(x[b])": lambda x: x * RIGHT["sigmoid"](x),
}
EXACT = ("sigmoid(x[b]) + x[b]", "gelu(x[b]) + x[b]", "gelu(x[b]) * x[b]")
# Those of arguments up to zero.
SHARES = ("exp_ftz", "exp_nonpositive", "exp2_ftz")


def test_all_are_tested() -> None:
    assert {*RIGHT, "rcp_ftz"} == set(APPROXIMATIONS)


def _func(value: str, count: int, result: str = "f32") -> Func:
    return expand_on_gpu(
        parse_func(f"""func @k(x: f32[{count}], out y: {result}[{count}]) {{
          for b in grid({count}) {{ y[b] = {value} }}
        }}""")
    )


def _assembly(func: Func) -> str:
    module = ModuleBuilder()
    emit_launches(module, func, ())
    return compile_assembly(module.text(), resolve_gpu("cuda"))


@for_each("name", RIGHT)
def test_values(name: str) -> None:
    x = np.concatenate([np.linspace(-30, 30, 301), np.linspace(-1, 1, 100), [-100.0, 0.0]])
    x = (-abs(x) if name in SHARES else x).astype(np.float32)
    y = np.zeros_like(x)
    run_launches(_func(f"{name}(x[b])", x.size), {"x": x, "y": y}, {})
    # A gelu of which little is left has fewer digits.
    np.testing.assert_allclose(y, RIGHT[name](x.astype(np.float64)), rtol=3e-6, atol=2e-7)


@for_each("name", RIGHT)
def test_at_the_ends(name: str) -> None:
    x = np.array([-np.inf, np.nan] if name in SHARES else [-np.inf, np.nan, np.inf])
    x, y = x.astype(np.float32), np.zeros(x.size, np.float32)
    run_launches(_func(f"{name}(x[b])", x.size), {"x": x, "y": y}, {})
    assert np.isnan(y[1])
    assert abs(y[0]) < 1e-44
    if x.size > 2:
        assert y[2] == (1 if name == "sigmoid" else np.inf)


def test_powers_are_one_instruction(tmp_path: Path) -> None:
    text = _assembly(_func("exp(x[b])", 64))
    assert "ex2.approx" in text
    assemble(text, tmp_path)


def test_quotients_of_one_are_one_instruction(tmp_path: Path) -> None:
    text = _assembly(_func("sigmoid(x[b])", 64))
    assert "rcp.approx" in text
    assert "div." not in text
    assemble(text, tmp_path)


@pytest.mark.parametrize("value", ROUNDED)
@pytest.mark.parametrize(("dtype", "rtol"), [(F16, 2**-10.8), (BF16, 2**-7.8)])
def test_what_is_rounded_to_16_bits_is_computed_to_few_more(
    value: str, dtype: DType, rtol: float
) -> None:
    x = np.concatenate([np.linspace(-12, 12, 2401), [np.inf, np.nan]]).astype(np.float32)
    y = np.zeros(x.size, dtype.numpy)
    func = _func(f"{dtype}({value})", x.size, str(dtype))
    run_launches(func, {"x": x, "y": y}, {})
    with np.errstate(over="ignore"):
        right = ROUNDED[value](x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), right, rtol=rtol, atol=2**-24.5)
    assert len(_assembly(func)) < len(_assembly(_func(value, x.size)))


@for_each("value", EXACT)
def test_what_must_be_known_better_is_computed_as_ever(value: str) -> None:
    assert len(_assembly(_func(f"f16({value})", 64, "f16"))) > len(_assembly(_func(value, 64)))
