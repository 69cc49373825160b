"""Host operators are those of ONNX, each once."""

from __future__ import annotations

from onnx import defs

from tilewright.frontends.onnx.segments.host.table import FAMILIES, host_ops, of_values


def test_names() -> None:
    assert len(host_ops()) == sum(len(f.HOST) for f in FAMILIES)
    for key in (*host_ops(), *of_values()):
        domain, _, name = key.rpartition("::")
        assert defs.has(name, domain), key
