"""A case on disk: a model, and the inputs of each run of it as JSON beside it.

cases/gather-empty.onnx    cases/gather-empty.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tilewright.fuzz.random_values import numpy_dtype

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model, the inputs of one or more runs, and what is worth knowing about it."""

    model: onnx.ModelProto
    runs: tuple[Arrays, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)


def write_case(path: Path, case: Case) -> Path:
    """Write `path` with the endings .onnx and .json; gives the path of the model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    runs = [{name: _to_json(a) for name, a in run.items()} for run in case.runs]
    lines = json.dumps({"notes": dict(case.notes), "runs": runs}, indent=1)
    path.with_suffix(".json").write_text(f"{lines}\n")
    model = path.with_suffix(".onnx")
    model.write_bytes(case.model.SerializeToString(deterministic=True))
    return model


def read_case(path: Path) -> Case:
    """The case whose model is `path`."""
    model = onnx.ModelProto.FromString(path.with_suffix(".onnx").read_bytes())
    stored = json.loads(path.with_suffix(".json").read_text())
    runs = tuple({name: _from_json(a) for name, a in run.items()} for run in stored["runs"])
    return Case(model, runs, stored["notes"])


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, also in nested graphs."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            inner = set().union(*map(reads, graph.node), (v.name for v in graph.output))
            own = {name for one in graph.node for name in one.output}
            own |= {v.name for v in (*graph.input, *graph.initializer)}
            names |= inner - own
    return names


def _to_json(array: np.ndarray) -> dict[str, Any]:
    data: list[Any]
    if array.dtype.kind == "c":
        data = [[x.real, x.imag] for x in array.ravel().tolist()]
    elif array.dtype.kind in "biufOUS":
        data = array.ravel().tolist()
    else:  # types that NumPy lacks: all of them are exact in f64
        data = array.ravel().astype(np.float64).tolist()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def _from_json(stored: Mapping[str, Any]) -> np.ndarray:
    name, data, shape = stored["dtype"], stored["data"], stored["shape"]
    if name.startswith("complex"):
        data = [complex(*pair) for pair in data]
    dtype = np.dtype(object) if name in ("object", "str") else numpy_dtype(name)
    with np.errstate(all="ignore"):
        if dtype.kind == "V" or dtype.kind not in "biufcO":
            return np.array(data, np.float64).astype(dtype).reshape(shape)
        return np.array(data, dtype).reshape(shape)
