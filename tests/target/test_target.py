from __future__ import annotations

import json

import pytest

from tilewright.core.errors import ConfigError
from tilewright.target import cpu, gpu
from tilewright.target.target import (
    kind_of,
    machine_names,
    read_machine,
    resolve_machine,
    write_machine,
)


@pytest.mark.parametrize("name", machine_names())
def test_every_name_is_a_machine_that_json_can_hold(name: str) -> None:
    machine = resolve_machine(name)
    assert read_machine(json.loads(json.dumps(write_machine(machine)))) == machine


def test_kinds() -> None:
    assert kind_of(cpu.resolve("x86-64-v3")) == "cpu"
    assert kind_of(gpu.resolve("cuda")) == "gpu"


def test_an_unknown_name_hears_of_all() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_machine("z80")
    assert "cuda" in caught.value.help
    assert "native" in caught.value.help
