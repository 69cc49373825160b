"""One node of ai.onnx.ml by our interpreter, and against onnxruntime."""

from __future__ import annotations

from functools import partial

from tests.frontends.onnx.convert.run_node import (
    check_compiled,
    check_node,
    imported,
    run_node,
)

DOMAIN = "ai.onnx.ml"
run_ml = partial(run_node, domain=DOMAIN, opset=1)
check_ml = partial(check_node, domain=DOMAIN, opset=1)
imported_ml = partial(imported, domain=DOMAIN, opset=1)
check_texts = partial(check_compiled, domain=DOMAIN, opset=1)
