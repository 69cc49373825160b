"""Sampling images at computed positions: GridSample."""

from __future__ import annotations

from tilewright.frontends.onnx.context import Converter, OnnxNode, simple
from tilewright.ops.grid_sample import PADDINGS, GridSampleAttrs
from tilewright.ops.interpolate import MODES

# What version 16 called the modes.
_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _grid_sample(n: OnnxNode) -> GridSampleAttrs:
    mode, padding = n.str_attr("mode", "linear"), n.str_attr("padding_mode", "zeros")
    mode = _OLD_MODES.get(mode, mode)
    if mode not in MODES or padding not in PADDINGS:
        raise n.invalid(f"mode {mode!r} with padding_mode {padding!r}")
    return GridSampleAttrs(mode, padding, bool(n.int_attr("align_corners", 0)))


CONVERTERS: dict[str, Converter] = {"GridSample": simple("grid_sample", _grid_sample)}
