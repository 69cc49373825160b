"""Sampling images at computed positions, and pooling regions: GridSample, RoiAlign, MaxRoiPool."""

from __future__ import annotations

from tilewright.frontends.onnx.context import Converter, OnnxNode, simple
from tilewright.ops.image.grid_sample import PADDINGS, GridSampleAttrs
from tilewright.ops.image.interpolate import MODES
from tilewright.ops.image.roi import MaxRoiPoolAttrs, RoiAlignAttrs

# What version 16 called the modes.
_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}
# Samples of one element of the result, along an axis: real models ask for two.
MAX_SAMPLES = 1 << 10


def _grid_sample(n: OnnxNode) -> GridSampleAttrs:
    mode, padding = n.str_attr("mode", "linear"), n.str_attr("padding_mode", "zeros")
    mode = _OLD_MODES.get(mode, mode)
    if mode not in MODES or padding not in PADDINGS:
        raise n.invalid(f"mode {mode!r} with padding_mode {padding!r}")
    return GridSampleAttrs(mode, padding, bool(n.int_attr("align_corners", 0)))


def _roi_align(n: OnnxNode) -> RoiAlignAttrs:
    """Before version 16 regions counted from centres of elements."""
    default = "half_pixel" if n.opset >= 16 else "output_half_pixel"
    if n.int_attr("sampling_ratio", 0) > MAX_SAMPLES:
        raise n.unsupported("this many samples", f"set sampling_ratio to at most {MAX_SAMPLES}")
    return RoiAlignAttrs(
        (n.int_attr("output_height", 1), n.int_attr("output_width", 1)),
        n.int_attr("sampling_ratio", 0),
        n.float_attr("spatial_scale", 1.0),
        n.str_attr("mode", "avg").lower(),
        n.str_attr("coordinate_transformation_mode", default) == "half_pixel",
    )


def _max_roi_pool(n: OnnxNode) -> MaxRoiPoolAttrs:
    size = n.ints_attr("pooled_shape")
    if len(size) != 2:
        raise n.invalid(f"pooled_shape is {list(size)}", "two numbers")
    return MaxRoiPoolAttrs((size[0], size[1]), n.float_attr("spatial_scale", 1.0))


CONVERTERS: dict[str, Converter] = {
    "GridSample": simple("grid_sample", _grid_sample),
    "RoiAlign": simple("roi_align", _roi_align),
    "MaxRoiPool": simple("max_roi_pool", _max_roi_pool),
}
