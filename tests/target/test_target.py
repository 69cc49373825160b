from __future__ import annotations

import json

from tests.for_each import for_each
from tilewright.target.registry import resolve_target, target_names
from tilewright.target.target import kind_of, read_target, write_target


@for_each("name", target_names())
def test_a_target_survives_json(name: str) -> None:
    target = resolve_target(name)
    assert read_target(json.loads(json.dumps(write_target(target)))) == target


def test_kinds() -> None:
    assert kind_of(resolve_target("x86-64-v3")) == "cpu"
    assert kind_of(resolve_target("cuda")) == "gpu"
