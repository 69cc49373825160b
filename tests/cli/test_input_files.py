from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.cli.input_files import (
    load_array,
    parse_assignments,
    random_inputs,
    save_arrays,
    summary,
)
from tilewright.core.dtypes import DTYPES, dtype
from tilewright.core.errors import ConfigError
from tilewright.runtime.binding import Port


def test_assignments() -> None:
    assert parse_assignments(["x=a.npy", "y=z=b.npy"]) == {"x": Path("a.npy"), "y=z": Path("b.npy")}


@for_each("name", [n for n in DTYPES if n != "string"])
def test_random_inputs_of_every_type(name: str) -> None:
    ports = [Port("x", dtype(name), ("N", 3)), Port("s", dtype(name), ())]
    found = random_inputs(ports, {"N": 2}, seed=0)
    assert found["x"].shape == (2, 3)
    assert found["s"].shape == ()
    assert all(a.dtype == dtype(name).numpy for a in found.values())
    assert summary("x", found["x"])["not_finite"] == 0


def test_a_size_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="size N of input x"):
        random_inputs([Port("x", dtype("f32"), ("N",))], {}, seed=0)


def test_types_that_numpy_lacks() -> None:
    x = np.arange(6, dtype=np.float32).astype(ml_dtypes.bfloat16)
    np.save("x.npy", x)
    assert load_array(Path("x.npy")).dtype.kind == "V"
    back = load_array(Path("x.npy"), Port("x", dtype("bf16"), (6,)))
    np.testing.assert_array_equal(back, x)


def test_summaries() -> None:
    assert summary("y", np.array([[1, 3]], np.int32)) == {
        "name": "y",
        "dtype": "int32",
        "shape": [1, 2],
        "min": 1.0,
        "max": 3.0,
        "mean": 2.0,
        "not_finite": 0,
    }
    empty = summary("y", np.empty((0, 2), np.float32))
    assert (empty["min"], empty["not_finite"]) == (None, 0)
    assert summary("y", np.array([np.nan], np.float32))["not_finite"] == 1


def test_names_with_slashes(tmp_path: Path) -> None:
    files = save_arrays(tmp_path / "out", {"layer/1": np.zeros(2)})
    assert files == {"layer/1": tmp_path / "out" / "layer_1.npy"}
