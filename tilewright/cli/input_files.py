"""Arrays of the command line: inputs from files or at random, outputs into files, summaries.

A sequence is a `.npz` file that holds its elements in order, and as a value a list.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tilewright.core.atomic_write import atomic_write
from tilewright.core.errors import ConfigError
from tilewright.driver.random_inputs import random_array

if TYPE_CHECKING:
    from tilewright.frontends.onnx.segments.declared_types import ValuePort
    from tilewright.runtime.binding import Port

    AnyPort = Port | ValuePort


def parse_assignments(given: Sequence[str]) -> dict[str, Path]:
    """`("x=x.npy", ...)` as a dictionary from input to file."""
    files: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.rpartition("=")
        if not (name and equals and file):
            raise click.BadParameter(f"{text!r} is not NAME=FILE.npy", param_hint="--input")
        if name in files:
            raise click.BadParameter(f"{name} is given twice", param_hint="--input")
        files[name] = Path(file)
    return files


def load_array(path: Path, port: AnyPort | None = None) -> Any:
    """The array in a `.npy` file; element types that NumPy lacks are stored as raw bytes."""
    try:
        array = np.load(path, allow_pickle=False)
        if port is not None and port.dtype is None and not isinstance(array, np.ndarray):
            return list(array.values())
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        what = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ConfigError(
            "cli.array",
            f"cannot read {path} as an array: {what}",
            help="save it with numpy.save(path, array)",
        ) from error
    if not isinstance(array, np.ndarray):
        raise ConfigError(
            "cli.array", f"{path} holds several arrays", help="save one array in a .npy file"
        )
    stored = None if port is None or port.dtype is None else port.dtype.numpy
    if stored is not None and array.dtype.kind == "V" and array.dtype.itemsize == stored.itemsize:
        return array.view(stored)
    return array


def given_inputs(
    ports: Sequence[AnyPort], files: Mapping[str, Path], dims: Mapping[str, int] | None, seed: int
) -> dict[str, Any]:
    """The arrays of files, and random ones for the other inputs where `dims` are given."""
    known = {port.name: port for port in ports}
    arrays = {name: load_array(path, known.get(name)) for name, path in files.items()}
    if dims is None:
        return arrays
    # The sizes that the given arrays have are those of the others too.
    sizes = dict(dims)
    for name in arrays.keys() & known.keys():
        given = np.shape(arrays[name]) if known[name].dtype is not None else ()
        for dim, size in zip(known[name].shape or (), given, strict=False):
            if isinstance(dim, str):
                sizes.setdefault(dim, size)
    missing = [port for name, port in known.items() if name not in arrays]
    return arrays | random_inputs(missing, sizes, seed)


def random_inputs(
    ports: Sequence[AnyPort], dims: Mapping[str, int], seed: int
) -> dict[str, np.ndarray]:
    """Inputs drawn at random, by name."""
    rng = np.random.default_rng(seed)
    return {port.name: _random(port, dims, rng) for port in ports}


def _random(port: AnyPort, dims: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    if port.dtype is None or port.shape is None:
        raise ConfigError(
            "cli.input",
            f"input {port} cannot be drawn at random",
            help=f"give it: --input {port.name}=FILE",
        )
    unknown = [d for d in port.shape if isinstance(d, str) and d not in dims]
    if unknown:
        raise ConfigError(
            "cli.dim",
            f"the size {unknown[0]} of input {port} is not known",
            help=f"say --dim {unknown[0]}=1, or give the input as a file",
        )
    shape = [dims[d] if isinstance(d, str) else d for d in port.shape]
    return random_array(port.dtype, shape, rng)


def summary(name: str, array: Any) -> dict[str, Any]:
    """What is worth knowing of an output: its type, its range, what is not finite.

    Of a sequence that is the number of elements, of texts their shape; complex numbers are told by
    their absolute values.
    """
    nothing = {"min": None, "max": None, "mean": None, "not_finite": 0}
    if not isinstance(array, np.ndarray):
        is_list = isinstance(array, list)
        kind, shape = ("sequence", [len(array)]) if is_list else ("none", [])
        return {"name": name, "dtype": kind, "shape": shape, **nothing}
    row: dict[str, Any] = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
    if array.dtype.kind in "OU":
        return {**row, "dtype": "text", **nothing}
    values = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    finite = values[np.isfinite(values)]
    row |= {"min": None, "max": None, "mean": None, "not_finite": int(values.size - finite.size)}
    if finite.size:
        row |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean()}
    return {key: float(v) if isinstance(v, np.floating) else v for key, v in row.items()}


def save_arrays(folder: Path, arrays: Mapping[str, Any]) -> dict[str, Path]:
    """Write each array to `folder/<name>.npy`, whole or not at all; the files by name.

    A sequence goes to `<name>.npz`; what is none is not written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "cli.folder", f"cannot make the folder {folder}: {error.strerror or error}"
        ) from error
    there = {name: value for name, value in arrays.items() if value is not None}
    return {name: _save(folder, name, value) for name, value in there.items()}


def _save(folder: Path, name: str, value: Any) -> Path:
    is_list = isinstance(value, list)

    def write(file: Path) -> None:
        with file.open("wb") as stream:
            if is_list:
                np.savez(stream, *map(_plain, value), allow_pickle=False)
            else:
                np.save(stream, _plain(value), allow_pickle=False)

    # Names may hold what separates folders.
    return atomic_write(folder / f"{name.replace('/', '_')}.{'npz' if is_list else 'npy'}", write)


def _plain(array: np.ndarray) -> np.ndarray:
    """An array that NumPy stores without Python objects: texts of a fixed width."""
    return array.astype(str) if array.dtype.kind == "O" else array
