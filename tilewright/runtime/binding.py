"""Binding: the arguments of a call in, checked arrays and the values of symbolic sizes out.

Nothing is cast: an array whose element type is not that of its input is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.dtypes import DType, dtype
from tilewright.core.errors import ExecutionError

Dim = int | str


@dataclass(frozen=True)
class Port:
    """An input or output of a model; a dimension is a number, a symbol or an expression."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]

    @staticmethod
    def from_manifest(entry: Mapping[str, Any]) -> Port:
        """The port that a manifest's `{"name", "dtype", "shape"}` describes."""
        return Port(entry["name"], dtype(entry["dtype"]), tuple(entry["shape"]))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Binder:
    """Turns the arguments of a call into arrays in the order of the inputs, and the sizes."""

    def __init__(
        self,
        inputs: Sequence[Port],
        symbols: Sequence[str],
        sources: Sequence[Sequence[int]],
    ) -> None:
        self.inputs = tuple(inputs)
        self.symbols = tuple(symbols)
        self._names = {port.name: position for position, port in enumerate(inputs)}
        self._sources = tuple((position, axis) for position, axis in sources)
        self.dtypes = tuple(port.dtype.numpy for port in inputs)
        # Array classes that are passed on unconverted, after the same checks.
        self.taken: tuple[type, ...] = (np.ndarray,)
        self._check_declaration()

    def in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the inputs."""
        if not args and len(named) == len(self._names):
            try:
                return [named[name] for name in self._names]
            except KeyError:
                pass  # reported below, with everything that is wrong
        return self._in_order(args, named) if named or len(args) != len(self.inputs) else args

    def bind(self, args: Sequence[Any]) -> tuple[list[np.ndarray], list[int]]:
        """One contiguous array for each input, and the value of each symbol."""
        values = self.in_order(args, {})
        arrays = [self._array(position, value) for position, value in enumerate(values)]
        self._check_ranks(arrays)
        sizes = [arrays[position].shape[axis] for position, axis in self._sources]
        self._check_shapes(arrays, dict(zip(self.symbols, sizes, strict=True)))
        return arrays, sizes

    def _check_declaration(self) -> None:
        """Refuse an inconsistent manifest before native code relies on it."""
        for port in self.inputs:
            for dim in port.shape:
                if isinstance(dim, str) and dim not in self.symbols:
                    raise ExecutionError(
                        "run.manifest", f"the size {dim} of input {port} is not declared"
                    )
        for symbol, (position, axis) in zip(self.symbols, self._sources, strict=True):
            if self.inputs[position].shape[axis] != symbol:
                raise ExecutionError(
                    "run.manifest", f"axis {axis} of input {self.inputs[position]} is not {symbol}"
                )

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if len(args) > len(self.inputs):
            raise ExecutionError(
                "run.arguments",
                f"{len(args)} arguments given, the model has {_count(len(self.inputs), 'input')}",
                help=self._signature(),
            )
        values = dict(enumerate(args))
        for name, value in named.items():
            position = self._names.get(name)
            if position is None:
                raise self._unknown(name)
            if position in values:
                raise ExecutionError(
                    "run.arguments", f"input {name} is given twice", help=self._signature()
                )
            values[position] = value
        missing = [p.name for position, p in enumerate(self.inputs) if position not in values]
        if missing:
            raise ExecutionError(
                "run.arguments",
                f"{'input' if len(missing) == 1 else 'inputs'} {', '.join(missing)} not given",
                help=self._signature(),
            )
        return [values[position] for position in range(len(self.inputs))]

    def _unknown(self, name: str) -> ExecutionError:
        import difflib  # not at the top: importing it would slow every load

        close = difflib.get_close_matches(name, self._names, 1)
        return ExecutionError(
            "run.arguments",
            f"the model has no input {name}",
            help=f"did you mean {close[0]}?" if close else self._signature(),
        )

    def _signature(self) -> str:
        if not self.inputs:
            return "the model takes no inputs"
        return f"the model takes ({', '.join(map(str, self.inputs))})"

    def _array(self, position: int, value: Any) -> np.ndarray:
        port = self.inputs[position]
        refuse_mask(port.name, value)
        array: Any = value if isinstance(value, self.taken) else _to_numpy(port, value)
        if array.dtype != self.dtypes[position]:
            raise ExecutionError(
                "run.dtype",
                f"input {port.name} is {port.dtype}, got an array of {array.dtype}",
                help=f'convert it: array.astype("{self.dtypes[position]}")',
            )
        if not isinstance(array, np.ndarray):
            borrowed: np.ndarray = array  # classes in `taken` have the attributes used here
            return borrowed
        flags = array.flags
        # copy(), since ascontiguousarray() would add a dimension to a scalar
        return array if flags.c_contiguous and flags.aligned else array.copy(order="C")

    def _check_ranks(self, arrays: Sequence[np.ndarray]) -> None:
        for port, array in zip(self.inputs, arrays, strict=True):
            if array.ndim != len(port.shape):
                raise _shape_error(port, array)

    def _check_shapes(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int]) -> None:
        for port, array in zip(self.inputs, arrays, strict=True):
            if array.shape == port.shape:
                continue
            for axis, (dim, actual) in enumerate(zip(port.shape, array.shape, strict=True)):
                if isinstance(dim, int):
                    if dim != actual:
                        raise _shape_error(port, array)
                elif sizes[dim] != actual:
                    raise self._disagreement(dim, sizes[dim], port, axis, actual)

    def _disagreement(
        self, symbol: str, size: int, port: Port, axis: int, actual: int
    ) -> ExecutionError:
        position, first_axis = self._sources[self.symbols.index(symbol)]
        return ExecutionError(
            "run.symbol",
            f"size {symbol} is {size} in input {self.inputs[position].name} (axis {first_axis}) "
            f"but {actual} in input {port.name} (axis {axis})",
            help=self._signature(),
        )


def check_results(
    outputs: Sequence[Port],
    shapes: Sequence[tuple[int, ...]],
    arrays: Mapping[str, np.ndarray],
    inputs: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """The given arrays in the order of the outputs, checked: results can be written to them."""
    names = [port.name for port in outputs]
    if sorted(names) != sorted(arrays):
        raise ExecutionError(
            "run.results",
            f"results go into arrays for {', '.join(names)}, got {', '.join(arrays) or 'none'}",
            help="give one array for each output, by name",
        )
    targets = [arrays[name] for name in names]
    for index, (port, shape, array) in enumerate(zip(outputs, shapes, targets, strict=True)):
        wrong = _unfit(port, shape, array)
        if wrong is None and any(np.may_share_memory(array, a) for a in inputs):
            wrong = "shares its memory with an input"
        if wrong is None and any(np.may_share_memory(array, a) for a in targets[:index]):
            wrong = "shares its memory with another"
        if wrong is not None:
            raise ExecutionError(
                "run.results",
                f"the array for output {port.name} {wrong}",
                help=f"np.empty({shape}, {str(port.dtype.numpy)!r}) is as it must be",
            )
    return targets


def _unfit(port: Port, shape: tuple[int, ...], array: Any) -> str | None:
    """Why `array` cannot hold the output `port` of that shape; `None` if it can."""
    if not isinstance(array, np.ndarray):
        return f"is a {type(array).__name__}"
    if array.dtype != port.dtype.numpy or array.shape != shape:
        return f"is {array.dtype} of shape {list(array.shape)}, not {port.dtype} of {list(shape)}"
    if not array.flags.carray:
        return "is not contiguous, aligned and writable"
    return None


def _shape_error(port: Port, array: np.ndarray) -> ExecutionError:
    return ExecutionError(
        "run.shape",
        f"input {port.name} has shape [{', '.join(map(str, port.shape))}], "
        f"got an array of shape [{', '.join(map(str, array.shape))}]",
        help="reshape the array, or compile the model for this shape",
    )


def refuse_mask(name: str, value: Any) -> None:
    """Raise ExecutionError if `value` is a masked array, whose mask no model would see."""
    if isinstance(value, np.ma.MaskedArray):
        message = f"input {name} is a masked array, and models do not know masks"
        raise ExecutionError("run.mask", message, help="fill what is masked: array.filled(0)")


def _to_numpy(port: Port, value: Any) -> np.ndarray:
    """`value` as an array: through DLPack where it supports that, else by NumPy."""
    try:
        return np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
    except Exception as error:  # foreign code may raise anything
        raise ExecutionError(
            "run.array",
            f"input {port.name}: a {type(value).__name__} cannot be read as an array: {error}",
            help="give a NumPy array or a DLPack tensor in the memory of the CPU, without gradient",
        ) from error


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
