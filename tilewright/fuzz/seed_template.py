"""A step that is one of ONNX's own test cases, varied: sizes, element types, values, operands.

Sizes change together: every 3 of a case becomes a 5. Element types change for all operands that the
operator's schema ties together. An operand may be replaced by a value that is there already, its
elements repeated or cut to fit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import NodeProto

from tilewright.fuzz.case_file import Arrays
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.random_values import ODD_SIZES, is_float, is_known, numpy_dtype, random_array
from tilewright.fuzz.seed_corpus import Seed
from tilewright.fuzz.templates.plain import fitted

# What NumPy calls the types of ONNX's schemas, where that is something else.
_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
}


def seed_step(d: PartialModel, seed: Seed) -> list[str]:
    """Add the nodes of a case to a model, as they are or varied."""
    inputs = dict(seed.inputs)
    if d.rng.random() < 0.4:
        inputs = resized(d.rng, inputs)
    if d.rng.random() < 0.4:
        inputs = retyped(d.rng, seed, inputs)
    graph = seed.model.graph
    names = {name: _operand(d, array) for name, array in inputs.items()}
    names |= {
        t.name: d.give(onnx.numpy_helper.to_array(t), True)
        for t in graph.initializer
        if t.name not in names
    }
    nodes = [_renamed(d, node, names) for node in graph.node]
    return d.attempt(*nodes)


def resized(rng: random.Random, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """Each size that occurs becomes another, everywhere; the elements are drawn anew."""
    sizes = sorted({size for a in inputs.values() for size in a.shape})
    new = {s: s if rng.random() < 0.5 else rng.choice((*ODD_SIZES[:6], 0)) for s in sizes}
    found = {}
    for name, array in inputs.items():
        shape = tuple(new[size] for size in array.shape)
        if shape != array.shape:
            array = np.resize(array, shape) if array.size else random_array(rng, shape, array.dtype)
        found[name] = array
    return found


def retyped(rng: random.Random, seed: Seed, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The operands of one type parameter of the operator in another type."""
    node = seed.model.graph.node[0]
    versions = {o.domain: o.version for o in seed.model.opset_import}
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return dict(inputs)
    groups = {p.type_param_str: p.allowed_type_strs for p in schema.type_constraints}
    chosen = rng.choice(sorted(groups)) if groups else ""
    names = [_NAMES.get(t[7:-1], t[7:-1]) for t in groups.get(chosen, ()) if t.startswith("tensor")]
    names = [n for n in sorted(names) if n != "string" and is_known(n)]
    if not names:
        return dict(inputs)
    to = numpy_dtype(rng.choice(names))
    formal = [p.type_str for p in schema.inputs]
    found = dict(inputs)
    for number, name in enumerate(node.input):
        if name in found and formal and formal[min(number, len(formal) - 1)] == chosen:
            with np.errstate(all="ignore"):
                found[name] = found[name].astype(_wide(found[name].dtype)).astype(to)
    return found


def _wide(dtype: np.dtype) -> type[np.generic]:
    """A type that holds all of another; NumPy knows no way from one small type to the next."""
    if dtype.kind == "c":
        return np.complex128
    return np.float64 if is_float(dtype) else np.int64


def _operand(d: PartialModel, array: np.ndarray) -> str:
    """A case's operand in a model: itself, other elements, or a value that is there."""
    chance = d.rng.random()
    data = is_float(array.dtype) or array.dtype == np.bool_
    same = [name for name, value in d.values.items() if value.dtype == array.dtype and value.size]
    if chance < 0.35 and same and data:
        found = fitted(d, d.rng.choice(same), array.shape)
        if found:
            return found
    if chance < 0.6 and data:
        return d.fresh(array.dtype, array.shape)
    return d.give(array, None if data else d.rng.random() < 0.7)


def _renamed(d: PartialModel, node: NodeProto, names: dict[str, str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = ""
    names |= {name: d.name() for name in node.output if name}
    del copy.input[:], copy.output[:]
    copy.input.extend(names.get(name, name) for name in node.input)
    copy.output.extend(names.get(name, name) for name in node.output)
    return copy
