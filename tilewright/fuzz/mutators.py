"""Mutators of a model's structure: each is a function that changes a model in place.

They write what a malicious or broken exporter would: sizes without bound, undefined or cyclic
names, types and attributes that make no sense, functions that never end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from tilewright.fuzz.seed_corpus import seed_modules

Mutator = Callable[[random.Random, ModelProto], object]

NUMBERS = (
    *(0, 1, -1, 2, -2, 3, 7, -9, 100, 255),
    *(1 << 31, -(1 << 31), 1 << 40, 1 << 62, (1 << 63) - 1),
)
ODD_NAMES = (
    *("a\nb", "a\0b", "\u202e\0", "x" * 5000, "../../etc", '"', "%0", "a b", "{", "é", "'", "\x7f"),
    *("define", "@main", "0", "-1", "\U0001f600", "\\", "$(x)", "N", "x0"),
)


def any_node(rng: random.Random, model: ModelProto) -> NodeProto:
    """One of the nodes, also of nested graphs and functions."""
    nodes = list(every_node(model))
    return rng.choice(nodes) if nodes else model.graph.node.add()


def every_node(model: ModelProto) -> Iterator[NodeProto]:
    """All nodes, also of nested graphs and functions."""
    stack = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            stack += attribute.g.node


def declared_sizes(rng: random.Random, model: ModelProto) -> None:
    """Another size, or another number of axes, of an input or output."""
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    if not values:
        return
    dims = rng.choice(values).type.tensor_type.shape.dim
    if dims and rng.random() < 0.7:
        dim = rng.choice(dims)
        if rng.random() < 0.8:
            dim.dim_value = rng.choice(NUMBERS)
        else:
            dim.dim_param = rng.choice(ODD_NAMES)
    elif dims and rng.random() < 0.5:
        del dims[-1]
    else:
        dims.extend([type(dims.add())() for _ in range(rng.choice((1, 2, 70)))])


def element_type(rng: random.Random, model: ModelProto) -> None:
    """Another element type of a declaration or of a tensor."""
    other = rng.choice((*range(30), 99, -1, 1 << 30))
    values = [*model.graph.input, *model.graph.initializer]
    if not values:
        return
    chosen = rng.choice(values)
    if isinstance(chosen, TensorProto):
        chosen.data_type = other
    else:
        chosen.type.tensor_type.elem_type = other


def tensor_shape(rng: random.Random, model: ModelProto) -> None:
    """A tensor whose shape is not that of its data."""
    tensor = _tensor(rng, model)
    if tensor.dims and rng.random() < 0.7:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
    else:
        tensor.dims.extend(rng.choices(NUMBERS, k=rng.choice((1, 3, 70))))


def tensor_data(rng: random.Random, model: ModelProto) -> None:
    """A tensor with less data, more, none, or of another field."""
    tensor = _tensor(rng, model)
    chance = rng.random()
    if chance < 0.3:
        tensor.ClearField("raw_data")
    elif chance < 0.6:
        tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]
    elif chance < 0.8:
        tensor.float_data.extend([1.0] * 3)
    else:
        tensor.raw_data += bytes(7)


def constant_numbers(rng: random.Random, model: ModelProto) -> None:
    """Other numbers in integer tensors, or an integer input made a constant of such numbers."""
    tensors = [t for t in _tensors(model) if t.data_type in (TensorProto.INT64, TensorProto.INT32)]
    names = [v.name for v in model.graph.input if v.type.tensor_type.elem_type == TensorProto.INT64]
    if names and (not tensors or rng.random() < 0.5):
        values = rng.choices(NUMBERS, k=rng.choice((0, 1, 2, 3, 4)))
        model.graph.initializer.append(
            helper.make_tensor(rng.choice(names), TensorProto.INT64, [len(values)], values)
        )
    elif tensors:
        _change_numbers(rng, rng.choice(tensors))


def _change_numbers(rng: random.Random, tensor: TensorProto) -> None:
    try:
        array = numpy_helper.to_array(tensor).copy()
    except (ValueError, TypeError):
        return  # by an earlier mutation
    if not array.size:
        return
    number = rng.choice(
        [n for n in NUMBERS if tensor.data_type == TensorProto.INT64 or abs(n) < 300]
    )
    array.reshape(-1)[rng.randrange(array.size)] = number
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def operand(rng: random.Random, model: ModelProto) -> None:
    """An operand that is missing, too many, unknown, of another node, or of the node itself."""
    node = any_node(rng, model)
    names = [name for other in every_node(model) for name in other.output]
    names += [v.name for v in model.graph.input]
    other = rng.choice(("", "nowhere", *names, *node.output))
    if node.input and rng.random() < 0.7:
        index = rng.randrange(len(node.input))
        if rng.random() < 0.2:
            del node.input[index]
        else:
            node.input[index] = other
    else:
        node.input.extend([other] * rng.choice((1, 2, 300)))


def result(rng: random.Random, model: ModelProto) -> None:
    """A result that is missing, too many, or named like another value."""
    node = any_node(rng, model)
    names = [v.name for v in (*model.graph.input, *model.graph.output)]
    other = rng.choice(("", "new", *names))
    if node.output and rng.random() < 0.5:
        node.output[rng.randrange(len(node.output))] = other
    elif node.output and rng.random() < 0.3:
        del node.output[-1]
    else:
        node.output.append(other)


def repeated(rng: random.Random, model: ModelProto) -> None:
    """Something that may be there only once, twice."""
    graph = model.graph
    fields: Sequence[Any] = (graph.node, graph.input, graph.output, graph.initializer)
    filled = [field for field in (*fields, model.opset_import, model.functions) if len(field)]
    field = rng.choice(filled)
    field.append(rng.choice(field))


def removed(rng: random.Random, model: ModelProto) -> None:
    """Something that is not there any more."""
    graph = model.graph
    fields: Sequence[Any] = (graph.node, graph.input, graph.output, graph.initializer)
    filled = [field for field in (*fields, model.opset_import) if len(field)]
    field = rng.choice(filled)
    del field[rng.randrange(len(field))]


def operator(rng: random.Random, model: ModelProto) -> None:
    """Another operator, or another domain."""
    node = any_node(rng, model)
    if rng.random() < 0.3:
        node.domain = rng.choice(("ai.onnx.ml", "com.microsoft", "ai.onnx", "nowhere", "a\0b"))
    else:
        from_module = rng.choice(seed_modules()).title().replace("_", "")
        node.op_type = rng.choice((from_module, "Add", "Loop", "If", "Scan", "", "Nope", "\n"))


def versions(rng: random.Random, model: ModelProto) -> None:
    """A version of the operators that does not exist, or none."""
    if not model.opset_import or rng.random() < 0.2:
        del model.opset_import[:]
        return
    rng.choice(model.opset_import).version = rng.choice((0, 1, 5, 9, 13, 9999, -1, (1 << 63) - 1))


def attribute(rng: random.Random, model: ModelProto) -> None:
    """An attribute of other numbers, another type, or another name; or one more."""
    node = any_node(rng, model)
    names = ("axis", "to", "axes", "perm", "k", "value", "body", "group", "pads", "kernel_shape")
    if not node.attribute or rng.random() < 0.2:
        node.attribute.append(helper.make_attribute(rng.choice(names), rng.choice(NUMBERS)))
        return
    chosen = rng.choice(node.attribute)
    action = rng.choice((_numbers_of, _numbers_of, _type_of, _text_of, _name_of))
    action(rng, chosen)


def _numbers_of(rng: random.Random, a: AttributeProto) -> None:
    a.i = rng.choice(NUMBERS)
    a.f = rng.choice((float("nan"), float("inf"), -1e38, 0.0, 1e-45))
    if a.ints and rng.random() < 0.7:
        a.ints[rng.randrange(len(a.ints))] = rng.choice(NUMBERS)
    elif a.ints:
        count = rng.choice((0, 1, 2, 50))
        del a.ints[:]
        a.ints.extend(rng.choices(NUMBERS, k=count))


def _type_of(rng: random.Random, a: AttributeProto) -> None:
    a.type = rng.choice(AttributeProto.AttributeType.values())


def _text_of(rng: random.Random, a: AttributeProto) -> None:
    a.s = rng.choice((b"\xff\xfe", b"", b"nope", b"x" * 3000, b"\0"))
    a.ref_attr_name = rng.choice(("", "", "nowhere"))


def _name_of(rng: random.Random, a: AttributeProto) -> None:
    a.name = rng.choice(("", "axis", "nope", "body", "\xff"))


def odd_name(rng: random.Random, model: ModelProto) -> None:
    """A value renamed everywhere to something odd: the model stays as valid as it was."""
    names = [v.name for v in model.graph.input] + [o for n in model.graph.node for o in n.output]
    if not names:
        return
    old, new = rng.choice(names), rng.choice(ODD_NAMES)
    for node in every_node(model):
        for field in (node.input, node.output):
            field[:] = [new if name == old else name for name in field]
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        value.name = new if value.name == old else value.name
    model.graph.name = rng.choice(ODD_NAMES)


def nested(rng: random.Random, model: ModelProto) -> None:
    """Branches within branches."""
    depth = rng.choice((2, 8, 16, 24))  # protobuf itself reads no more than about 30
    name = rng.choice([v.name for v in model.graph.output] or ["x"])
    graph = GraphProto(name="g", node=[helper.make_node("Identity", [name], ["deep"])])
    graph.output.add().name = "deep"
    for level in range(depth):
        graph = GraphProto(name="g", node=[_branch(graph, level)])
        graph.output.add().name = f"deep{level}"
    model.graph.node.append(graph.node[0])
    model.graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    model.graph.output.add().name = f"deep{depth - 1}"


def _branch(graph: GraphProto, level: int) -> NodeProto:
    other = GraphProto(name="e", node=[helper.make_node("Identity", ["cond"], [f"e{level}"])])
    other.output.add().name = f"e{level}"
    return helper.make_node("If", ["cond"], [f"deep{level}"], then_branch=graph, else_branch=other)


def functions(rng: random.Random, model: ModelProto) -> None:
    """Functions that call each other: in circles, or so often that the whole has no end."""
    depth = rng.choice((1, 2, 5, 24))
    circle = rng.random() < 0.5
    for level in range(depth):
        last = level + 1 == depth
        inner = ("f0" if circle else "Identity") if last else f"f{level + 1}"
        body = [_call(inner, a, b) for a, b in (("a", "b"), ("b", "c"))]
        made = model.functions.add(domain="local", name=f"f{level}", input=["a"], output=["c"])
        made.node.extend(body)
        made.opset_import.extend([helper.make_opsetid("", 20), helper.make_opsetid("local", 1)])
    model.opset_import.append(helper.make_opsetid("local", 1))
    names = [v.name for v in model.graph.input] or ["x"]
    model.graph.node.append(_call("f0", rng.choice(names), "called"))
    model.graph.output.add().name = "called"


def _call(op: str, value: str, output: str) -> NodeProto:
    return helper.make_node(op, [value], [output], domain="" if op == "Identity" else "local")


def long_chain(rng: random.Random, model: ModelProto) -> None:
    """Very many nodes."""
    names = [v.name for v in model.graph.input] or ["x"]
    last = rng.choice(names)
    for number in range(rng.choice((300, 3000, 30000))):
        model.graph.node.append(helper.make_node("Identity", [last], [f"chain{number}"]))
        last = f"chain{number}"
    model.graph.output.add().name = last


def shuffled(rng: random.Random, model: ModelProto) -> None:
    """The nodes in another order, which is still a valid model to us."""
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _tensors(model: ModelProto) -> list[TensorProto]:
    inner = [a.t for n in every_node(model) for a in n.attribute if a.HasField("t")]
    return [*model.graph.initializer, *inner]


def _tensor(rng: random.Random, model: ModelProto) -> TensorProto:
    """One of the tensors, or a new one in the place of an input."""
    tensors = _tensors(model)
    if (tensors and rng.random() < 0.7) or not model.graph.input:
        return rng.choice(tensors) if tensors else model.graph.initializer.add()
    value = rng.choice(model.graph.input)
    declared = value.type.tensor_type
    sizes = [d.dim_value for d in declared.shape.dim]
    tensor = TensorProto(name=value.name, data_type=declared.elem_type, dims=sizes)
    model.graph.initializer.append(tensor)
    added: TensorProto = model.graph.initializer[-1]
    return added


MUTATORS: dict[str, Mutator] = {
    mutation.__name__: mutation
    for mutation in (
        *(declared_sizes, element_type, tensor_shape, tensor_data, constant_numbers, operand),
        *(result, repeated, removed, operator, versions, attribute, odd_name, nested, functions),
        *(long_chain, shuffled),
    )
}
# Those that are worth trying often: numbers and names have the most ways to go wrong.
FREQUENT_MUTATORS = (
    "constant_numbers",
    "attribute",
    "attribute",
    "operand",
    "declared_sizes",
    "tensor_shape",
)
RARE_MUTATORS = ("long_chain", "nested", "functions")
