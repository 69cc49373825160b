from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.host_threads import run_launches
from tests.codegen.ptxas import assemble
from tilewright.codegen.function import ModuleText
from tilewright.codegen.llvm import compile_assembly
from tilewright.codegen.nvptx import emit_launches
from tilewright.finalize.gpu.functions import OWN, expand_on_gpu
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.parse import parse_func
from tilewright.target.gpu import resolve

RIGHT = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp_share": np.exp,
    "exp2_share": np.exp2,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": np.vectorize(lambda x: x * 0.5 * math.erfc(-x * math.sqrt(0.5))),
}
# Those of arguments up to zero.
SHARES = ("exp_share", "exp2_share")


def _func(name: str, count: int) -> Func:
    return expand_on_gpu(
        parse_func(f"""func @k(x: f32[{count}], out y: f32[{count}]) {{
          for b in grid({count}) {{ y[b] = {name}(x[b]) }}
        }}""")
    )


@pytest.mark.parametrize("name", OWN)
def test_values(name: str) -> None:
    x = np.concatenate([np.linspace(-30, 30, 301), np.linspace(-1, 1, 100), [-100.0, 0.0]])
    x = (-abs(x) if name in SHARES else x).astype(np.float32)
    y = np.zeros_like(x)
    run_launches(_func(name, x.size), {"x": x, "y": y}, {})
    # A gelu of which little is left has fewer digits.
    np.testing.assert_allclose(y, RIGHT[name](x.astype(np.float64)), rtol=3e-6, atol=2e-7)


@pytest.mark.parametrize("name", OWN)
def test_at_the_ends(name: str) -> None:
    x = np.array([-np.inf, np.nan] if name in SHARES else [-np.inf, np.nan, np.inf])
    x, y = x.astype(np.float32), np.zeros(x.size, np.float32)
    run_launches(_func(name, x.size), {"x": x, "y": y}, {})
    assert np.isnan(y[1])
    assert abs(y[0]) < 1e-44
    if x.size > 2:
        assert y[2] == (1 if name == "sigmoid" else np.inf)


def test_powers_are_one_instruction(tmp_path: Path) -> None:
    module = ModuleText()
    emit_launches(module, _func("exp", 64), ())
    text = compile_assembly(module.text(), resolve("cuda"))
    assert "ex2.approx" in text
    assemble(text, tmp_path)
