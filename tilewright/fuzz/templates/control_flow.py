"""Steps that are loops and branches: a body grows like a model of its own.

A body may read what is outside of it. What it needs beyond that is given outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from tilewright.fuzz.partial_model import PartialModel, value_info

# A longer axis is not scanned, since each step is interpreted many times.
MAX_STEPS = 32

Grow = Callable[[PartialModel, str], list[str]]
Maker = Callable[[PartialModel, str, Sequence[Grow]], list[str]]


class ModelBody(PartialModel):
    """A model within another: names and operands from outside are that one's."""

    def __init__(self, outer: PartialModel, given: Mapping[str, np.ndarray]) -> None:
        super().__init__(outer.rng, outer.opsets, outer.save)
        self.outer = outer
        self.values = {**outer.values, **given}
        self.constants = outer.constants
        self.own = list(given)

    def name(self) -> str:
        """A name that is new outside as well."""
        return self.outer.name()

    def give(self, array: np.ndarray, constant: bool | None = None) -> str:
        """An operand from outside."""
        name = self.outer.give(array, constant)
        self.values[name] = array
        return name

    def grow(self, start: str, steps: Sequence[Grow]) -> list[str]:
        """One to three steps, the first from `start`; the names of what they made."""
        made = [start]
        for _ in range(self.rng.randint(1, 3)):
            made += self.rng.choice(steps)(self, self.rng.choice([*made[-2:], *self.own]))
        return made[1:]

    def alike(self, name: str) -> str:
        """Of what the body made, something with the shape and type of `name`; or a copy of it."""
        like = self.values[name]
        made = [n for node in self.nodes for n in node.output if n]
        fit = [n for n in made if _form(self.values[n]) == _form(like)]
        return self.rng.choice(fit) if fit else self.copy(name)

    def copy(self, name: str) -> str:
        """The value under a new name, as a body's result must have one."""
        return self.add(self.node("Identity", [name]), self.values[name])

    def add(self, node: NodeProto, result: np.ndarray) -> str:
        """Add a node untried: whether it is valid is seen when the whole is."""
        self.nodes.append(node)
        self.values[node.output[0]] = result
        return str(node.output[0])

    def graph(self, results: Sequence[str]) -> GraphProto:
        """The body with these results, each of which it made."""
        inputs = [value_info(name, self.values[name], {}) for name in self.own]
        return helper.make_graph(
            self.nodes, "body", inputs, [ValueInfoProto(name=name) for name in results]
        )


def step(make: Maker, steps: Sequence[Grow]) -> Grow:
    """A step whose bodies are made of `steps`."""
    return lambda d, x: make(d, x, steps)


def branch(d: PartialModel, x: str, steps: Sequence[Grow]) -> list[str]:
    """One of two bodies, whose results have the same types and any shapes."""
    condition = d.fresh(np.dtype(bool), d.rng.choice(((), (1,))))
    bodies = [ModelBody(d, {}), ModelBody(d, {})]
    for body in bodies:
        body.grow(x, steps)
    first, second = ([n for node in b.nodes for n in node.output] for b in bodies)
    pairs = [
        (a, b)
        for a in first
        for b in second
        if bodies[0].values[a].dtype == bodies[1].values[b].dtype
    ]
    chosen = d.rng.sample(pairs, min(len(pairs), d.rng.randint(1, 2)))
    if not chosen:
        chosen = [(bodies[0].copy(x), bodies[1].copy(x))]
    sides = {
        "then_branch": bodies[0].graph([a for a, _ in chosen]),
        "else_branch": bodies[1].graph([b for _, b in chosen]),
    }
    return d.attempt(d.node("If", [condition], len(chosen), **sides))


def loop(d: PartialModel, x: str, steps: Sequence[Grow]) -> list[str]:
    """A value carried around, and what each round adds to a list of results."""
    number, go, carried = d.name(), d.name(), d.name()
    given = {number: np.array(1, np.int64), go: np.array(True), carried: d.values[x]}
    body = ModelBody(d, given)
    body.grow(carried, steps)
    following = body.alike(carried)
    goes_on = body.copy(go)
    if d.rng.random() < 0.5:
        limit = body.setting(d.rng.choice((0, 1, 2, 3, 3, 4)), 0.4)
        goes_on = body.add(body.node("Less", [number, limit]), np.array(True))
    made = [n for node in body.nodes for n in node.output if n]
    listed = d.rng.sample(made, d.rng.randrange(min(2, len(made)) + 1))
    rounds = d.setting(d.rng.choice((0, 1, 2, 3, 3, 4)), 0.4)
    first = d.fresh(np.dtype(bool), ()) if d.rng.random() < 0.3 else ""
    node = d.node(
        "Loop",
        [rounds, first, x],
        1 + len(listed),
        body=body.graph(_distinct(body, [goes_on, following, *listed])),
    )
    return d.attempt(node)


def scan(d: PartialModel, x: str, steps: Sequence[Grow]) -> list[str]:
    """A state that goes along an axis, and one result for each element of it."""
    array = d.values[x]
    if not array.ndim:
        return []
    # ONNX's reference knows the first axis and the direction forwards only.
    plain = d.rng.random() < 0.6
    axis = 0 if plain else d.rng.randrange(array.ndim)
    if not 0 < array.shape[axis] <= MAX_STEPS:
        return []
    state, element = d.name(), d.name()
    start = d.fresh(array.dtype, () if d.rng.random() < 0.4 else np.take(array, 0, axis).shape)
    body = ModelBody(d, {state: d.values[start], element: np.asarray(np.take(array, 0, axis))})
    body.grow(element, steps)
    if d.rng.random() < 0.7:
        body.attempt(body.node("Add", [state, element]))
    made = [n for node in body.nodes for n in node.output if n] or [body.copy(element)]
    listed = [d.rng.choice(made)]
    rank = body.values[listed[0]].ndim
    options: dict[str, Any] = {"num_scan_inputs": 1}
    if not plain:
        options |= {
            "scan_input_axes": [axis],
            "scan_input_directions": [d.rng.randrange(2)],
            "scan_output_axes": [d.rng.randint(0, rank)],
            "scan_output_directions": [d.rng.randrange(2)],
        }
    results = _distinct(body, [body.alike(state), *listed])
    return d.attempt(d.node("Scan", [start, x], 2, body=body.graph(results), **options))


def _distinct(body: ModelBody, names: Sequence[str]) -> list[str]:
    """The names, those that were there before as copies."""
    found = list[str]()
    for name in names:
        found.append(body.copy(name) if name in found else name)
    return found


def _form(array: np.ndarray) -> tuple[object, ...]:
    return array.dtype, array.shape


MAKERS: Sequence[Maker] = (branch, loop, loop, scan)
