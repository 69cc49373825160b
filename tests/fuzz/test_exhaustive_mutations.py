"""Single mutations: all that there are, in an order that is always the same."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tilewright.fuzz.exhaustive_mutations import (
    all_mutations,
    distinct_seeds,
    mutated_by,
    single_mutations,
)
from tilewright.fuzz.mutators import every_node
from tilewright.fuzz.seed_corpus import Seed, seeds_of


def _seed(name: str, module: str) -> Seed:
    return next(seed for seed in seeds_of(module) if seed.name == name)


def _mutated(seed: Seed, name: str) -> onnx.ModelProto:
    found = [d for d in single_mutations(seed) if d.name == name]
    assert len(found) == 1, [d.name for d in single_mutations(seed)]
    return mutated_by(found[0], seed.model)


def test_operands_and_results() -> None:
    seed = _seed("test_gather_0", "gather")
    assert list(_mutated(seed, "Gather operand 1 left out").graph.node[0].input) == ["data", ""]
    assert list(_mutated(seed, "Gather operand 0 deleted").graph.node[0].input) == ["indices"]
    other = _mutated(seed, "Gather operand 1 is other 0").graph.node[0]
    assert list(other.input) == ["data", "data"]
    assert len(_mutated(seed, "Gather operand too many").graph.node[0].input) == 3
    assert list(_mutated(seed, "Gather result 0 left out").graph.node[0].output) == [""]
    assert len(_mutated(seed, "Gather result too many").graph.node[0].output) == 2


def test_attributes() -> None:
    seed = _seed("test_transpose_all_permutations_0", "transpose")
    made = {d.name: mutated_by(d, seed.model).graph.node[0] for d in single_mutations(seed)}
    assert not made["Transpose perm deleted"].attribute
    assert made["Transpose perm is STRING"].attribute[0].s == b"x"
    assert list(made["Transpose perm shorter"].attribute[0].ints) == [0, 1]
    assert list(made["Transpose perm longer"].attribute[0].ints) == [0, 1, 2, 2]
    empty = made["Transpose perm empty"].attribute[0]
    assert empty.type == onnx.AttributeProto.INTS
    assert not empty.ints
    assert list(made["Transpose perm from -1"].attribute[0].ints) == [-1, 1, 2]


def test_types_and_shapes_of_inputs() -> None:
    seed = _seed("test_gather_0", "gather")

    def declared(name: str) -> tuple[int, list[int]]:
        kind = _mutated(seed, f"Gather operand 0 {name}").graph.input[0].type.tensor_type
        return kind.elem_type, [d.dim_value for d in kind.shape.dim]

    assert declared("of one more axis") == (TensorProto.FLOAT, [1, 5, 4, 3, 2])
    assert declared("without its first axis") == (TensorProto.FLOAT, [4, 3, 2])
    assert declared("a scalar") == (TensorProto.FLOAT, [])
    assert declared("of size 0 on axis 1") == (TensorProto.FLOAT, [5, 0, 3, 2])
    assert declared("of size one more on axis 3") == (TensorProto.FLOAT, [5, 4, 3, 3])
    assert declared("of STRING") == (TensorProto.STRING, [5, 4, 3, 2])


def test_small_inputs_are_constants_too() -> None:
    seed = _seed("test_gather_0", "gather")

    def constant(name: str) -> np.ndarray:
        graph = _mutated(seed, f"Gather operand 1 constant{name}").graph
        return numpy_helper.to_array(graph.initializer[0])

    np.testing.assert_array_equal(constant(""), seed.inputs["indices"])
    assert constant(" of one more axis").shape == (1, 3)
    assert constant(" of no elements").shape == (0,)
    assert constant(" of another type").dtype == np.float32
    assert constant(" of -1").tolist() == [-1, *seed.inputs["indices"][1:]]
    names = [d.name for d in single_mutations(seed)]
    assert not any("operand 0 constant" in name for name in names)  # of 120 elements


def test_nested_graphs() -> None:
    seed = _seed("test_loop11", "loop")
    nodes = {node.op_type for node in every_node(seed.model)}
    assert {d.name.split()[0] for d in single_mutations(seed)} >= nodes > {"Loop"}
    (body,) = (
        a.g
        for a in _mutated(seed, "Loop body without its first input").graph.node[0].attribute
        if a.name == "body"
    )
    assert len(body.input) == 2
    assert len(seed.model.graph.node[0].attribute[0].g.input) == 3  # the seed stays as it was


def test_one_seed_of_each_structure() -> None:
    seeds = distinct_seeds(frozenset({"Gather"}))
    assert {"test_gather_0", "test_gather_2d_indices"} <= {seed.name for seed in seeds}
    assert "test_gather_1" not in {seed.name for seed in seeds}  # like 0, of another axis
    assert not any("_expanded" in s.name for s in distinct_seeds(frozenset({"LogSoftmax"})))


def test_the_first_of_each_name_come_first() -> None:
    names = [mutation.name for _, mutation in all_mutations(frozenset({"Gather"}))]
    first = len(set(names))
    assert len(set(names[:first])) == first < len(names)
    assert names == [mutation.name for _, mutation in all_mutations(frozenset({"Gather"}))]


def test_nearly_all_mutations_change_the_model() -> None:
    made = all_mutations(frozenset({"Loop", "Conv", "TfIdfVectorizer", "If"}))
    same = [
        mutation.name
        for seed, mutation in made
        if mutated_by(mutation, seed.model).SerializeToString() == seed.model.SerializeToString()
    ]
    assert len(same) < len(made) / 20, same  # a value may be the one that is put in its place
