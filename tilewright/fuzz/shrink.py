"""Shrink a failing case: fewer outputs, nodes, runs, attributes, sizes, plainer values.

    shrink(case, still_fails, seconds=60)

Every candidate is a simpler case; one that still fails takes the place of the case, until none
does. `still_fails` runs in processes of its own, so that crashes and hangs shrink as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from tilewright.fuzz.case_file import Arrays, Case, reads
from tilewright.fuzz.random_values import is_float

Fails = Callable[[Case], bool]
# Gives the arrays of all values of a model that can be computed.
Values = Callable[[Case], Mapping[str, np.ndarray]]


def shrink(case: Case, fails: Fails, values: Values, seconds: float = 60.0) -> Case:
    """The smallest case found in this time that still fails."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidates in (_runs, _outputs, _cuts(values), _attributes, _inputs, _sizes, _plainer):
            found = _first(case, candidates, fails, end)
            while found is not None:
                case, progress = found, True
                found = _first(case, candidates, fails, end)
    return case


def _first(
    case: Case, candidates: Callable[[Case], Iterator[Case]], fails: Fails, end: float
) -> Case | None:
    for candidate in candidates(case):
        if time.monotonic() > end:
            return None
        if fails(candidate):
            return candidate
    return None


def _runs(case: Case) -> Iterator[Case]:
    """One run instead of several."""
    if len(case.runs) > 1:
        yield from (replace(case, runs=(run,)) for run in reversed(case.runs))


def _outputs(case: Case) -> Iterator[Case]:
    """One output alone: of the graph, or any value on the way."""
    graph = case.model.graph
    now = [v.name for v in graph.output]
    made = [name for node in graph.node for name in node.output if name]
    for name in dict.fromkeys((*made, *now)):
        if [name] != now:
            yield with_graph(case, graph.node, [name])


def _cuts(values: Values) -> Callable[[Case], Iterator[Case]]:
    def cut(case: Case) -> Iterator[Case]:
        """A node replaced by an input that has the values that it gives."""
        if len(case.runs) != 1 or len(case.model.graph.node) < 2:
            return
        known = values(case)
        for index, node in enumerate(case.model.graph.node):
            if any(name and name not in known for name in node.output):
                continue
            rest = [n for i, n in enumerate(case.model.graph.node) if i != index]
            given = {name: np.asarray(known[name]) for name in node.output if name}
            outputs = [v.name for v in case.model.graph.output if v.name not in given]
            if outputs:
                yield with_graph(case, rest, outputs, given)

    return cut


def _attributes(case: Case) -> Iterator[Case]:
    """A node without one of its attributes, or without its last operand."""
    for index, node in enumerate(case.model.graph.node):
        for number in range(len(node.attribute)):
            copy = _copy(node)
            del copy.attribute[number]
            yield _with_node(case, index, copy)
        if len(node.input) > 1:
            copy = _copy(node)
            del copy.input[-1]
            yield _with_node(case, index, copy)


def _inputs(case: Case) -> Iterator[Case]:
    """A constant instead of an input."""
    if len(case.runs) == 1 and len(case.runs[0]) > 1:
        for name, array in case.runs[0].items():
            model = _copy(case.model)
            kept = [v for v in model.graph.input if v.name != name]
            del model.graph.input[:]
            model.graph.input.extend(kept)
            model.graph.initializer.append(numpy_helper.from_array(array, name))
            rest = {n: a for n, a in case.runs[0].items() if n != name}
            yield replace(case, model=model, runs=(rest,))


def _sizes(case: Case) -> Iterator[Case]:
    """Every size of a number smaller at once, then each array alone."""
    if len(case.runs) != 1:
        return
    arrays = {**constants(case.model), **case.runs[0]}
    sizes = sorted({s for a in arrays.values() for s in a.shape if s > 1}, reverse=True)
    for size in sizes:
        for new in (1, size // 2, size - 1):
            if new < size:
                yield with_arrays(case, {n: _cropped(a, size, new) for n, a in arrays.items()})
    for name, array in arrays.items():
        for size in sorted({s for s in array.shape if s > 1}, reverse=True):
            yield with_arrays(case, {**arrays, name: _cropped(array, size, size - 1)})


def _cropped(array: np.ndarray, size: int, new: int) -> np.ndarray:
    return array[tuple(slice(0, new if s == size else s) for s in array.shape)].copy()


def _plainer(case: Case) -> Iterator[Case]:
    """All of an array 0 or 1, or its elements rounded."""
    if len(case.runs) != 1:
        return
    arrays = {**constants(case.model), **case.runs[0]}
    for name, array in arrays.items():
        for plain in _plain_forms(array):
            if plain.tobytes() != array.tobytes() and _weight(plain) < _weight(array):
                yield with_arrays(case, {**arrays, name: plain})


def _plain_forms(array: np.ndarray) -> Iterator[np.ndarray]:
    if array.dtype.kind in "OUS":
        return
    yield np.zeros_like(array)
    yield np.ones_like(array)
    if is_float(array.dtype):
        with np.errstate(all="ignore"):
            wide = array.astype(np.float64)
            yield np.nan_to_num(wide, nan=0, posinf=1, neginf=-1).astype(array.dtype)
            yield np.round(wide).astype(array.dtype)


def _weight(array: np.ndarray) -> tuple[int, int]:
    """How far from plain: elements that are neither 0 nor 1 nor whole."""
    with np.errstate(all="ignore"):
        wide = array.astype(np.complex128).real
        odd = int((wide != np.round(wide)).sum()) + int((~np.isfinite(wide)).sum())
        return odd, 2 * int(((wide != 0) & (wide != 1)).sum()) + int((wide == 1).sum() > 0)


def with_graph(
    case: Case,
    nodes: Sequence[NodeProto],
    outputs: Sequence[str],
    given: Mapping[str, np.ndarray] | None = None,
) -> Case:
    """The case with these nodes, without what no output needs; `given` are further inputs."""
    kept = _needed(nodes, outputs)
    used = {name for node in kept for name in reads(node)} | set(outputs)
    model = _copy(case.model)
    graph = model.graph
    inputs = [v for v in graph.input if v.name in used]
    inputs += [_declared(n, a) for n, a in (given or {}).items() if n in used]
    initializers = [t for t in graph.initializer if t.name in used]
    for field in (graph.node, graph.input, graph.output, graph.initializer, graph.value_info):
        del field[:]
    graph.node.extend(kept)
    graph.input.extend(inputs)
    graph.output.extend(ValueInfoProto(name=name) for name in outputs)
    graph.initializer.extend(initializers)
    names = {v.name for v in inputs}
    runs = tuple(
        {n: a for n, a in {**run, **(given or {})}.items() if n in names} for run in case.runs
    )
    return replace(case, model=model, runs=runs)


def _needed(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    wanted, kept = set(outputs), list[NodeProto]()
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.insert(0, node)
            wanted |= reads(node)
    return kept


def with_arrays(case: Case, arrays: Mapping[str, np.ndarray]) -> Case:
    """The case with other inputs and constants, declared as they are."""
    model = _copy(case.model)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(arrays[tensor.name]), tensor.name))
    for value in model.graph.input:
        if value.name in arrays and _fixed(value):
            value.CopyFrom(_declared(value.name, arrays[value.name]))
    run: Arrays = {name: arrays[name] for name in case.runs[0]}
    return replace(case, model=model, runs=(run,))


def _fixed(value: ValueInfoProto) -> bool:
    return not any(d.HasField("dim_param") for d in value.type.tensor_type.shape.dim)


def _declared(name: str, array: np.ndarray) -> ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, dtype, array.shape)


def constants(model: ModelProto) -> Arrays:
    """The initializers as arrays."""
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def _with_node(case: Case, index: int, node: NodeProto) -> Case:
    nodes = list(case.model.graph.node)
    nodes[index] = node
    return with_graph(case, nodes, [v.name for v in case.model.graph.output])


def _copy(proto: Any) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy
