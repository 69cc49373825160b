"""The nodes of an ONNX graph in an order in which values are defined before they are used."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, NodeProto

from tilewright.core.errors import FrontendError, Loc


def node_name(proto: NodeProto) -> str:
    """What messages call a node: its name, or its operator and first output."""
    if proto.name:
        return str(proto.name)
    return f"{proto.op_type}({', '.join(filter(None, proto.output))})"


def ordered(nodes: Iterable[NodeProto], defined: set[str], file: str) -> list[NodeProto]:
    """`nodes` sorted; ONNX wants them sorted already, but not every exporter complies.

    `defined` are the values that exist before. Values that nothing defines, that two nodes define,
    or that depend on themselves are errors.
    """
    nodes = list(nodes)
    producer = _producers(nodes, defined, file)
    waiting = [0] * len(nodes)
    users: dict[int, list[int]] = defaultdict(list)
    for i, proto in enumerate(nodes):
        for name in dict.fromkeys(reads(proto)):
            if name in producer:
                users[producer[name]].append(i)
                waiting[i] += 1
            elif name not in defined:
                raise FrontendError(
                    "onnx.undefined-value",
                    f"{proto.op_type} reads {name!r}, which nothing defines",
                    loc=Loc(file, node_name(proto)),
                )
    ready = deque(i for i, count in enumerate(waiting) if count == 0)
    result = []
    while ready:
        done = ready.popleft()
        result.append(nodes[done])
        for user in users[done]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    if len(result) < len(nodes):
        stuck = [proto for proto, count in zip(nodes, waiting, strict=True) if count]
        raise FrontendError(
            "onnx.cycle",
            f"{len(stuck)} nodes depend on their own results, {node_name(stuck[0])} among them",
            loc=Loc(file, node_name(stuck[0])),
        )
    return result


def _producers(nodes: list[NodeProto], defined: set[str], file: str) -> dict[str, int]:
    producer: dict[str, int] = {}
    for i, proto in enumerate(nodes):
        for name in filter(None, proto.output):
            if name in producer or name in defined:
                raise FrontendError(
                    "onnx.duplicate-value",
                    f"{name!r} is defined twice",
                    loc=Loc(file, node_name(proto)),
                )
            producer[name] = i
    return producer


def reads(proto: NodeProto) -> Iterator[str]:
    """The values a node reads, those that its nested graphs take from outside included."""
    yield from filter(None, proto.input)
    for attribute in proto.attribute:
        if proto.op_type == "Gradient" and attribute.name == "y":
            yield attribute.s.decode(errors="replace")  # it looks at the nodes that compute this
        if attribute.type == AttributeProto.GRAPH:
            yield from free_values(attribute.g)


def free_values(graph: GraphProto) -> Iterator[str]:
    """The values that a nested graph takes from the graphs around it."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own.update(s.values.name for s in graph.sparse_initializer)
    own.update(name for proto in graph.node for name in proto.output)
    read = [name for proto in graph.node for name in reads(proto)]
    read += [v.name for v in graph.output]
    yield from (name for name in read if name not in own)
