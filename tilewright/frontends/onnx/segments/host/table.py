"""The table of host operators, gathered from the family files, keyed as the converters are."""

from __future__ import annotations

from functools import cache

from tilewright.frontends.onnx.segments.host import (
    control,
    images,
    maps,
    optional,
    sequence,
    strings,
)
from tilewright.frontends.onnx.segments.host.call import HostOp

FAMILIES = (control, images, maps, optional, sequence, strings)


@cache
def host_ops() -> dict[str, HostOp]:
    """Every operator that runs on the host."""
    return {name: op for family in FAMILIES for name, op in family.HOST.items()}


def of_values() -> dict[str, HostOp]:
    """Operators that run on the host where a value is no tensor."""
    return control.OF_VALUES
