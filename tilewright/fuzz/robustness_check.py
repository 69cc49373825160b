"""One malformed model: it must compile and run, or be refused with one Error that says where.

Everything else is a finding: another exception, a file opened outside the model's folder, an error
that names no place. Crashes, hangs and memory without bound are what the process around it sees.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.core.dtypes import STRING
from tilewright.core.errors import NOWHERE, Error, InternalError
from tilewright.driver.compile import compile
from tilewright.fuzz.differential_check import CheckResult
from tilewright.fuzz.mutators import every_node

# A model is run if its inputs have at most so many elements.
MAX_ELEMENTS = 1 << 16
# And if its loops take at most so many steps, as far as the model says.
MAX_STEPS = 1 << 16


def check_robustness(path: Path, inputs: Mapping[str, Any]) -> CheckResult:
    """Compile the model at `path`, run it where that can be done, and see how that ends.

    Watches the files that this process opens from now on: to be called in one of its own.
    """
    opened = _watch(path.parent.parent, path.parent)
    try:
        result = _check(path, inputs)
    except MemoryError:
        return CheckResult("memory", traceback.format_exc(limit=-6))
    except Exception:
        return CheckResult("internal", traceback.format_exc(limit=-6))
    return CheckResult("outside", f"opened {opened[0]}") if opened else result


def _check(path: Path, inputs: Mapping[str, Any]) -> CheckResult:
    try:
        executable = compile(path, threads=1, cache=False)
        with executable:
            given = _given(executable, inputs)
            if given is not None and not _is_endless(path, given):
                executable.run(given)
    except Error as error:
        return _judged(error)
    return CheckResult("right")


def _judged(error: Error) -> CheckResult:
    if isinstance(error, InternalError):
        return CheckResult("internal", str(error))
    # What a run refuses is about what it was given, not about a place in the model.
    placed = error.loc != NOWHERE or error.code.startswith(("run.", "onnx.damaged", "dtype"))
    return CheckResult("refused" if placed else "unlocated", str(error))


def _given(executable: Any, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Inputs for a run: those of the valid model, in the types and shapes that are declared now."""
    given: dict[str, Any] = {}
    for port in executable.inputs:
        old = inputs.get(port.name)
        if port.shape is None or port.dtype in (None, STRING):  # no tensor of numbers
            if port.name not in inputs:
                return None
            given[port.name] = old
            continue
        shape = [max(size, 0) if isinstance(size, int) else 3 for size in port.shape]
        if np.prod(shape, dtype=object) > MAX_ELEMENTS:
            return None
        given[port.name] = _fitted(old, shape, port.dtype.numpy)
    return given


def _is_endless(path: Path, given: Mapping[str, Any]) -> bool:
    """Whether a loop says of itself that it takes more steps than anybody would wait for."""
    model = onnx.load(path, load_external_data=False)
    counts = [node.input[0] for node in every_node(model) if node.op_type == "Loop"]
    numbers = {name: given[name] for name in counts if name in given}
    for tensor in model.graph.initializer:
        if tensor.name in counts and math.prod(tensor.dims) == 1:
            with suppress(ValueError):  # malformed, but not needed: else it would have been refused
                numbers.setdefault(tensor.name, numpy_helper.to_array(tensor))
    known = [np.asarray(number) for number in numbers.values()]
    many = (x.max(initial=0) > MAX_STEPS for x in known if x.dtype.kind in "iu")
    return "" in counts or any(many)


def _fitted(old: Any, shape: list[int], dtype: Any) -> np.ndarray:
    """An array of that type and shape: the old one, its elements over again, or zeros."""
    if not isinstance(old, np.ndarray) or old.dtype.kind in "OUS" or not old.size:
        return np.zeros(shape, dtype)
    if old.dtype.isbuiltin != 1:  # not every small float becomes every other
        old = old.astype(np.float64)
    with np.errstate(all="ignore"):
        return np.resize(old, shape).astype(dtype)


def _watch(root: Path, allowed: Path) -> list[str]:
    """A list that every file below `root` but not below `allowed` is added to when opened."""
    opened: list[str] = []
    root, allowed = root.resolve(), allowed.resolve()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(args[0], str | bytes | os.PathLike):
            return
        path = os.path.realpath(os.fsdecode(args[0]))
        foreign = path.startswith(f"{root}/") and not path.startswith(f"{allowed}/")
        if foreign or path in ("/etc/hostname", "/dev/zero"):
            opened.append(path)

    sys.addaudithook(hook)
    return opened
