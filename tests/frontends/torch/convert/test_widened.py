"""Functions of 16-bit floats that are several operators of ours are rounded once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import imported, random
from tilewright.frontends.torch.arrays import to_array
from tilewright.ops.interpret import run_graph

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "log2": torch.log2,
    "log10": torch.log10,
    "atan2": lambda x: torch.atan2(x, x.flip(0)),
    "cumsum": lambda x: torch.cumsum(x, 0),
    "cumprod": lambda x: torch.cumprod(x, 1),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 0),
    "norm": lambda x: torch.linalg.vector_norm(x, 3.0, 0),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x[None], (3, 5)),
    "addcmul": lambda x: torch.addcmul(x, x.flip(0), x.flip(1), value=0.7),
    "addcdiv": lambda x: torch.addcdiv(x, x.flip(0), x.flip(1), value=0.7),
    "addmm": lambda x: torch.addmm(x[:, :16], x, x.T, beta=0.3, alpha=0.7),
}


@for_each("dtype", [torch.bfloat16, torch.float16], ids=str)
@for_each("name", list(FUNCTIONS))
def test_rounded_once(name: str, dtype: torch.dtype) -> None:
    function, x = FUNCTIONS[name], (random(16, 24).abs() * 0.1).to(dtype)
    graph = imported(function, x)
    found = run_graph(graph, {graph.inputs[0].name: to_array(x)})[graph.outputs[0]]
    exact = function(x.double())
    assert found.dtype == to_array(x).dtype
    ours = torch.from_numpy(found.astype("f8"))
    # half a unit in the last place, and a little for f32
    allowed = exact.abs() * torch.finfo(dtype).eps * 0.51 + torch.finfo(dtype).smallest_normal
    assert ((ours - exact).abs() <= allowed).all()
