"""All single mutations of a model in order: random mutation finds some of them hardly ever.

    single_mutations(seed)    Mutation("Conv operand 1 left out", change), ...

Random mutation finds common defects soon and rare ones never: an operator that relies on the
rank of its fourth operand is met once in ten thousand models. What such defects have in common is
that one thing about one node is not what its operator expects: an operand is absent or has another
rank, size or type, an attribute is missing, of another kind or beyond its range. There are few
enough of these to try every one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx import numpy_helper as arrays

from tilewright.fuzz.mutators import every_node
from tilewright.fuzz.seed_corpus import Seed, modules_for, seeds_of

Change = Callable[[ModelProto], object]

# An operand of at most so many elements is also tried as a constant, which converters may read.
MAX_CONSTANT = 16
HUGE_SIZE = 1 << 40
NUMBERS = (0, -1, 99, HUGE_SIZE)
KINDS: dict[int, Any] = {
    AttributeProto.INT: 1,
    AttributeProto.INTS: [1, 1],
    AttributeProto.FLOAT: 1.5,
    AttributeProto.STRING: "x",
    AttributeProto.TENSOR: arrays.from_array(np.ones(2, np.float32)),
}
TYPES = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING)


@dataclass(frozen=True)
class Mutation:
    """One mutation: its description, and the function that applies it to a copy of the model.

    Two mutations of the same name, of two models, are likely to meet the same code.
    """

    name: str
    change: Change


def all_mutations(operators: frozenset[str] = frozenset()) -> list[tuple[Seed, Mutation]]:
    """Every mutation of every seed; the first of each name come first, then the second, and so on.

    So a part from the start has seen all operators and all their operands and attributes.
    """
    found: list[tuple[int, Seed, Mutation]] = []
    seen: Counter[str] = Counter()
    for seed in distinct_seeds(operators):
        for mutation in single_mutations(seed):
            found.append((seen[mutation.name], seed, mutation))
            seen[mutation.name] += 1
    found.sort(key=lambda item: item[0])
    return [(seed, mutation) for _, seed, mutation in found]


def distinct_seeds(operators: frozenset[str]) -> list[Seed]:
    """One seed of each structure: operators, their version, operands, attributes, and ranks."""
    found: dict[object, Seed] = {}
    for module in modules_for(operators):
        for seed in seeds_of(module):
            if "_expanded" not in seed.name:  # what ONNX makes a node of: operators met elsewhere
                found.setdefault(_structure(seed.model), seed)
    return list(found.values())


def _structure(model: ModelProto) -> object:
    nodes = tuple(
        (
            *(n.domain, n.op_type, tuple(map(bool, n.input)), len(n.output)),
            tuple(sorted((a.name, a.type) for a in n.attribute)),
        )
        for n in every_node(model)
    )
    ranks = tuple(
        (v.type.WhichOneof("value"), len(v.type.tensor_type.shape.dim)) for v in model.graph.input
    )
    return nodes, ranks, tuple((o.domain, o.version) for o in model.opset_import)


def single_mutations(seed: Seed) -> Iterator[Mutation]:
    """All mutations of one model, always in the same order."""
    for index, node in enumerate(every_node(seed.model)):
        for what, change in (*_operands(node, seed.model), *_results(node), *_attributes(node)):
            yield Mutation(f"{node.op_type} {what}", partial(_on_node, index, change))
    for index, value in enumerate(seed.model.graph.input):
        reader = _reader(seed.model, value.name)
        for what, alter in (*_types(value.type), *_constants(seed, value.name)):
            yield Mutation(f"{reader} {what}", partial(_on_input, index, alter))


def mutated_by(mutation: Mutation, model: ModelProto) -> ModelProto:
    """A copy of the model with the mutation."""
    copy = ModelProto()
    copy.CopyFrom(model)
    mutation.change(copy)
    return copy


def _on_node(index: int, change: Callable[[NodeProto], object], model: ModelProto) -> None:
    change(list(every_node(model))[index])


def _on_input(
    index: int, change: Callable[[ModelProto, TypeProto], object], model: ModelProto
) -> None:
    change(model, model.graph.input[index].type)


def _reader(model: ModelProto, name: str) -> str:
    """The operator and the operand that an input is first read as."""
    for node in every_node(model):
        if name in node.input:
            return f"{node.op_type} operand {list(node.input).index(name)}"
    return "unread input"


# --- nodes: operands, results, attributes ---

_NodeChange = tuple[str, Callable[[NodeProto], object]]


def _operands(node: NodeProto, model: ModelProto) -> Iterator[_NodeChange]:
    others = _unlike(model)
    for i, name in enumerate(node.input):
        yield f"operand {i} left out", partial(_set_operand, i, "")
        yield f"operand {i} deleted", partial(_delete, "input", i)
        for k, other in enumerate(o for o in others if o != name):
            yield f"operand {i} is other {k}", partial(_set_operand, i, other)
    if others:
        yield "operand too many", lambda n: n.input.append(others[0])


def _set_operand(index: int, name: str, node: NodeProto) -> None:
    node.input[index] = name


def _set_result(index: int, name: str, node: NodeProto) -> None:
    node.output[index] = name


def _delete(field: str, index: int, message: Any) -> None:
    del getattr(message, field)[index]


def _unlike(model: ModelProto) -> list[str]:
    """Some inputs of the model, each of another type or rank."""
    found: dict[object, str] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        found.setdefault((kind.elem_type, len(kind.shape.dim)), value.name)
    return list(found.values())[:3]


def _results(node: NodeProto) -> Iterator[_NodeChange]:
    for i in range(len(node.output)):
        yield f"result {i} left out", partial(_set_result, i, "")
    if node.output:
        yield "last result deleted", partial(_delete, "output", -1)
    yield "result too many", lambda n: n.output.append("one_more")


def _attributes(node: NodeProto) -> Iterator[_NodeChange]:
    for i, given in enumerate(node.attribute):
        yield f"{given.name} deleted", partial(_delete, "attribute", i)
        for kind, value in KINDS.items():
            if kind != given.type:
                made = helper.make_attribute(given.name, value)
                name = AttributeProto.AttributeType.Name(kind)
                yield f"{given.name} is {name}", partial(_set_attribute, i, made)
        for what, made in _values(given):
            yield f"{given.name} {what}", partial(_set_attribute, i, made)


def _set_attribute(index: int, made: AttributeProto, node: NodeProto) -> None:
    node.attribute[index].CopyFrom(made)


def _values(a: AttributeProto) -> Iterator[tuple[str, AttributeProto]]:
    """Other values of the same kind."""
    make = partial(helper.make_attribute, a.name, attr_type=a.type)
    if a.type == AttributeProto.INT:
        yield from ((f"= {number}", make(number)) for number in NUMBERS)
    elif a.type == AttributeProto.FLOAT:
        yield from ((f"= {number}", make(number)) for number in (0.0, -1.0, np.nan, np.inf))
    elif a.type == AttributeProto.STRING:
        yield from ((f"= {text!r}", make(text)) for text in ("", "nope"))
    elif a.type == AttributeProto.TENSOR:
        yield from ((what, make(tensor)) for what, tensor in _tensors(arrays.to_array(a.t)))
    elif a.type == AttributeProto.GRAPH:
        yield from ((what, make(graph)) for what, graph in _bodies(a.g))
    elif a.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        yield from ((what, make(items)) for what, items in _lists(helper.get_attribute_value(a)))


def _lists(items: Any) -> Iterator[tuple[str, list[Any]]]:
    given = list(items)
    yield "empty", []
    if given:
        yield "shorter", given[:-1]
        yield "longer", [*given, given[-1]]
    if given and isinstance(given[0], int):
        for number in NUMBERS:
            yield f"from {number}", [number, *given[1:]]
        yield "all the same", [given[0]] * len(given)


def _bodies(graph: GraphProto) -> Iterator[tuple[str, GraphProto]]:
    fields = ("node", "input", "output")
    changes: list[tuple[str, Callable[[GraphProto], object]]] = [
        ("with a new input", lambda g: g.input.add().CopyFrom(_scalar("new"))),
        ("with an output again", lambda g: g.output.add().CopyFrom(g.output[0])),
    ]
    for field in fields:
        if getattr(graph, field):
            changes += [
                (f"without its first {field}", partial(_delete, field, 0)),
                (f"without any {field}", partial(_clear, field)),
            ]
    for i, value in enumerate(graph.input):
        for what, alter in _types(value.type):
            changes.append((f"with input {i} {what}", partial(_body_input, i, alter)))
    for what, change in changes:
        copy = GraphProto()
        copy.CopyFrom(graph)
        change(copy)
        yield what, copy


def _clear(field: Any, graph: GraphProto) -> None:
    graph.ClearField(field)


def _body_input(index: int, alter: Any, graph: GraphProto) -> None:
    alter(ModelProto(), graph.input[index].type)


def _scalar(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [])


# --- inputs of the model: types, and constants in their place ---

_InputChange = tuple[str, Callable[[ModelProto, TypeProto], object]]


def _types(declared: TypeProto) -> Iterator[_InputChange]:
    if declared.WhichOneof("value") != "tensor_type":
        tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
        yield "a tensor", lambda m, t: t.CopyFrom(tensor)
        return
    sequence = helper.make_sequence_type_proto(declared)
    yield "a sequence", lambda m, t: t.CopyFrom(sequence)
    for element in TYPES:
        if element != declared.tensor_type.elem_type:
            name = TensorProto.DataType.Name(element)
            yield f"of {name}", partial(_set_element, element)
    if declared.tensor_type.HasField("shape"):
        sizes = [dim.dim_value for dim in declared.tensor_type.shape.dim]
        for what, shape in _shapes(sizes):
            yield what, partial(_set_shape, shape)


def _set_element(element: int, model: ModelProto, declared: TypeProto) -> None:
    declared.tensor_type.elem_type = element


def _shapes(sizes: list[int]) -> Iterator[tuple[str, list[int]]]:
    yield "of one more axis", [1, *sizes]
    yield "of a last axis more", [*sizes, 2]
    if sizes:
        yield "without its first axis", sizes[1:]
    if len(sizes) > 1:
        yield "a scalar", []
        yield "of one axis", sizes[-1:]
    for axis, size in enumerate(sizes):
        for other in (0, size + 1):
            what = "0" if not other else "one more"
            yield f"of size {what} on axis {axis}", [*sizes[:axis], other, *sizes[axis + 1 :]]


def _set_shape(shape: list[int], model: ModelProto, declared: TypeProto) -> None:
    dims = declared.tensor_type.shape
    dims.ClearField("dim")
    for size in shape:
        dims.dim.add().dim_value = size


def _constants(seed: Seed, name: str) -> Iterator[_InputChange]:
    given = seed.inputs.get(name)
    if not isinstance(given, np.ndarray) or given.size > MAX_CONSTANT:
        return
    yield "constant", partial(_set_constant, arrays.from_array(given, name))
    for what, tensor in _tensors(given):
        tensor.name = name
        yield f"constant {what}", partial(_set_constant, tensor)


def _set_constant(tensor: TensorProto, model: ModelProto, declared: TypeProto) -> None:
    model.graph.initializer.append(tensor)


def _tensors(given: np.ndarray) -> Iterable[tuple[str, TensorProto]]:
    """Other tensors: of another rank, no elements, another type, and of other integers."""
    changed = {"of one more axis": given[np.newaxis], "of no elements": given.reshape(-1)[:0]}
    if given.ndim:
        nothing = np.asarray("" if given.dtype.kind == "O" else 0, given.dtype)
        changed["without its first axis"] = given[0] if len(given) else nothing
    if given.dtype.kind in "iufb":
        other = np.float32 if given.dtype.kind in "iu" else np.int64
        with np.errstate(all="ignore"):
            changed["of another type"] = given.astype(other)
    if given.dtype.kind in "iu":
        for number in NUMBERS:
            changed[f"of {number}"] = _filled(given, number)
    return [(what, arrays.from_array(np.asarray(array))) for what, array in changed.items()]


def _filled(given: np.ndarray, number: int) -> np.ndarray:
    """The array with its first element replaced, by as much of the number as its type holds."""
    array = given.copy()
    if array.size:
        array.reshape(-1)[0] = np.array(number, np.int64).astype(array.dtype)
    return array
