"""Outputs as far as they are known before a run: declared, or found by the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.compat.onnxruntime.model import OpenedModel
from tilewright.compat.onnxruntime.status import Fail, error
from tilewright.compat.onnxruntime.types import Declared, NodeArg, element_of, tensor_name
from tilewright.core.dtypes import STRING
from tilewright.runtime.model import CompiledModel

if TYPE_CHECKING:
    from tilewright.driver.segmented.model import SegmentedModel

Dim = int | str | None


def known_output(
    declared: Declared, model: OpenedModel, compiled: CompiledModel | SegmentedModel
) -> NodeArg:
    """An output; what the model leaves open is taken from the compiled model.

    A model that declares other elements than it computes is refused.
    """
    arg = declared.node_arg()
    if not isinstance(compiled, CompiledModel):
        return arg
    port = next(p for p in compiled.outputs if p.name == declared.name)
    element = element_of(port.dtype.numpy)
    if port.dtype != STRING and element is not None and tensor_name(element) != declared.text:
        raise error(
            Fail,
            f"Type Error: Type ({declared.text}) of output arg ({declared.name}) does not match "
            f"expected type ({tensor_name(element)}).",
        )
    found = port.shape
    names = model.names_of_sizes
    inferred = [dim if isinstance(dim, int) or dim in names else None for dim in found]
    if not declared.type.tensor_type.HasField("shape"):
        arg.shape = list(inferred)
    elif len(arg.shape) == len(inferred):
        arg.shape = [_better(a, b) for a, b in zip(arg.shape, inferred, strict=True)]
    return arg


def _better(declared: Dim, inferred: Dim) -> Dim:
    """A number rather than a name, a name rather than nothing."""
    if isinstance(declared, int) or inferred is None:
        return declared
    return inferred if isinstance(inferred, int) or declared is None else declared
