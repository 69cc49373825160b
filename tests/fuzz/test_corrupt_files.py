from __future__ import annotations

import random
from pathlib import Path

import onnx

from tilewright.fuzz.corrupt_files import (
    corrupted_bytes,
    elsewhere,
    random_mutations,
    write_mutated,
)
from tilewright.fuzz.seed_corpus import seeds_of


def test_a_seed_gives_the_same_damage() -> None:
    model = seeds_of("slice")[0].model
    for number in range(10):
        first = random_mutations(random.Random(number), model)
        assert random_mutations(random.Random(number), model) == first


def test_bytes_change() -> None:
    data = bytes(range(200))
    assert sum(corrupted_bytes(random.Random(n), data) != data for n in range(20)) > 10
    assert corrupted_bytes(random.Random(0), b"") == b""


def test_data_elsewhere_comes_with_links(tmp_path: Path) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(seeds_of("slice")[0].model)
    links = elsewhere(random.Random(0), model)
    assert model.graph.initializer[0].data_location == onnx.TensorProto.EXTERNAL
    made = random_mutations(random.Random(1), model)
    path = write_mutated(tmp_path, type(made)(made.data, tuple(links), made.done))
    assert path.read_bytes() == made.data
    assert (path.parent / "link").resolve() == tmp_path / "outside" / "secret"
