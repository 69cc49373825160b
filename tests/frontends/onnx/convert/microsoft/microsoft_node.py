"""One node of com.microsoft by our interpreter, and against onnxruntime."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.frontends.onnx.convert.run_node import check_node, run_node

DOMAIN = "com.microsoft"
run_ms = partial(run_node, domain=DOMAIN, opset=1)
check_ms = partial(check_node, domain=DOMAIN, opset=1)
RNG = np.random.default_rng(22)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")
