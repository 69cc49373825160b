"""A model while it grows: every value has a concrete array, so that each step can look at it.

A step is one or more nodes, tried at once: what the importer or the interpreter refuses is taken
back, so that the model is valid at any time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from tilewright.core.errors import Error
from tilewright.fuzz.case_file import Arrays, Case, reads
from tilewright.fuzz.oracle import interpreter
from tilewright.fuzz.random_values import random_array, random_shape
from tilewright.ops.interpret import evaluate_node

# A model takes no step whose values would be larger.
MAX_ELEMENTS = 1 << 14


class PartialModel:
    """Nodes, inputs and constants so far; `values` has the array of every name."""

    def __init__(
        self, rng: random.Random, opsets: Mapping[str, int], save: Callable[[Case], object]
    ) -> None:
        self.rng = rng
        self.opsets = dict(opsets)
        self.save = save
        self.values: Arrays = {}
        self.nodes: list[NodeProto] = []
        self.inputs: list[str] = []
        self.constants: list[str] = []
        self.refused = 0
        self._count = 0

    def name(self) -> str:
        """A new name."""
        self._count += 1
        return f"v{self._count}"

    def give(self, array: np.ndarray, constant: bool | None = None) -> str:
        """A new operand from outside: a constant, or an input of the model."""
        name = self.name()
        self.values[name] = array
        if constant is None:
            constant = self.rng.random() < 0.4
        (self.constants if constant else self.inputs).append(name)
        return name

    def fresh(self, dtype: np.dtype, shape: Sequence[int] | None = None) -> str:
        """A new operand at random."""
        shape = random_shape(self.rng) if shape is None else shape
        return self.give(random_array(self.rng, shape, dtype))

    def setting(self, numbers: Any, late: float = 0.15) -> str:
        """An operand that says how: a constant, or as likely as `late` known only in a run."""
        return self.give(np.array(numbers, np.int64), self.rng.random() >= late)

    def node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any
    ) -> NodeProto:
        """A node that is not yet part of the model; empty attributes are left out."""
        names = [self.name() for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value != []}
        return helper.make_node(op, list(inputs), names, **given)

    def attempt(self, *nodes: NodeProto) -> list[str]:
        """Add nodes if they are valid; the names of what they compute, none if they are not."""
        read = dict.fromkeys(name for node in nodes for name in sorted(reads(node)))
        made = [name for node in nodes for name in node.output if name]
        given = {name: self.values[name] for name in read if name in self.values}
        if any(array.size > MAX_ELEMENTS for array in given.values()):
            return []
        fixed = [name for name in given if name in self.constants]
        model = self._model(nodes, [n for n in given if n not in fixed], fixed, made)
        inputs = {name: a for name, a in given.items() if name not in fixed}
        self.save(Case(model, (inputs,), {"step": [n.op_type for n in nodes]}))
        try:
            results = interpreter(model)(inputs, evaluate_node)
        except Error:
            self.refused += 1
            return []
        if not all(isinstance(x, np.ndarray) and x.size <= MAX_ELEMENTS for x in results):
            return []
        self.values.update(zip(made, results, strict=True))
        self.nodes += nodes
        return made

    def case(self, symbols: Mapping[int, str] | None = None) -> Case:
        """The whole as a model; `symbols` gives sizes of inputs names instead."""
        used = {name for node in self.nodes for name in reads(node)}
        made = [name for node in self.nodes for name in node.output if name]
        ends = [name for name in made if name not in used]
        more = [name for name in made if name in used and self.rng.random() < 0.2]
        inputs = [name for name in self.inputs if name in used]
        fixed = [name for name in self.constants if name in used]
        outputs = [name for name in made if name in {*ends, *more}]
        model = self._model(self.nodes, inputs, fixed, outputs, symbols or {})
        return Case(model, ({name: self.values[name] for name in inputs},))

    def _model(
        self,
        nodes: Sequence[NodeProto],
        inputs: Sequence[str],
        constants: Sequence[str],
        outputs: Sequence[str],
        symbols: Mapping[int, str] | None = None,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            list(nodes),
            "fuzz",
            [value_info(name, self.values[name], symbols or {}) for name in inputs],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(self.values[name], name) for name in constants],
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets)


def value_info(name: str, array: np.ndarray, symbols: Mapping[int, str]) -> onnx.ValueInfoProto:
    """The declaration of an input, sizes that have a name in `symbols` by that name."""
    shape = [symbols.get(size, size) for size in array.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
