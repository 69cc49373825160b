from __future__ import annotations

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from tilewright.core.errors import FrontendError
from tilewright.frontends.torch.script.unpickle import unpickled


def read(data: bytes) -> Any:
    return unpickled(data, lambda name: bytearray(16))


def test_plain_values() -> None:
    assert read(pickle.dumps((1, "a", [2.0], None))) == (1, "a", [2.0], None)
    assert read(pickle.dumps(OrderedDict(a=1))) == {"a": 1}


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_calls_nothing(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=r"names (posix|nt)\.mkdir"):
        read(pickle.dumps(Harmful(tmp_path / "made")))
    assert not (tmp_path / "made").exists()
    for name in ("builtins eval", "torch.serialization load", "tilewright compile"):
        module, function = name.split()
        with pytest.raises(FrontendError, match=f"names {module}.{function}"):
            read(f"c{module}\n{function}\n.".encode())


def test_classes_of_the_archive_are_objects_without_behaviour() -> None:
    found = read(b"\x80\x02c__torch__.os\nsystem\n)\x81}U\x01xK\x05sb.")
    assert found.qualified_name == "__torch__.os.system"
    assert found.attributes == {"x": 5}


@pytest.mark.parametrize("data", [b"", b"\x80", b"garbage", b"\x80\x02(", b"\x80\x02K\x01K"])
def test_damage_is_told(data: bytes) -> None:
    with pytest.raises(FrontendError, match="is damaged"):
        read(data)
