"""Random arrays: odd numbers, the ends of ranges, NaN and infinities now and then."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.core.dtypes import SMALL_FLOATS, SMALL_INTEGERS

ODD_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17)
# How likely an array of floats has some values that are not finite, or far out.
SPECIAL = 0.25
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool")
# What is moved, compared and converted, and never computed with.
STORAGE_DTYPES = tuple(d.numpy.name for d in (*SMALL_FLOATS, *SMALL_INTEGERS))
COMPLEX = ("complex64", "complex128")
# Limits of NumPy's types and of ml_dtypes' own; ml_dtypes does not annotate them.
finfo: Any = ml_dtypes.finfo
iinfo: Any = ml_dtypes.iinfo


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy type called `name`, among them those of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def any_dtype(rng: random.Random) -> np.dtype:
    """A type at random: mostly one that is computed with, and of these mostly a float."""
    chance = rng.random()
    kind = FLOATS if chance < 0.55 else DTYPES if chance < 0.85 else STORAGE_DTYPES
    return numpy_dtype(rng.choice(COMPLEX if chance > 0.96 else kind))


def is_known(name: str) -> bool:
    """Whether there is a NumPy type of that name."""
    return hasattr(ml_dtypes, name) or name in np.sctypeDict


def is_float(dtype: np.dtype) -> bool:
    """Whether a type is a floating-point type, among them those that NumPy lacks."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def random_shape(rng: random.Random, rank: int | None = None) -> tuple[int, ...]:
    """A shape of odd sizes; sometimes one of them is 0."""
    rank = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5)) if rank is None else rank
    shape = [rng.choice(ODD_SIZES if rank < 4 else ODD_SIZES[:6]) for _ in range(rank)]
    if shape and rng.random() < 0.06:
        shape[rng.randrange(rank)] = 0
    return tuple(shape)


def random_array(rng: random.Random, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Mostly small numbers; special ones in some of the arrays."""
    draw = np.random.default_rng(rng.getrandbits(63))
    if dtype == np.bool_:
        return np.asarray(draw.random(shape) < 0.5)
    if dtype.kind == "c":
        return (draw.standard_normal(shape) + 1j * draw.standard_normal(shape)).astype(dtype)
    if is_float(dtype):
        values = np.asarray(draw.standard_normal(shape) * rng.choice((0.1, 1, 1, 10)))
        values = np.abs(values) if dtype.name == "float8_e8m0fnu" else values  # has no sign
        return _with_specials(rng, draw, values.astype(dtype))
    low, high = _range(rng, dtype)
    drawn = draw.integers(low, high, shape, np.int64 if low < 0 else np.uint64, endpoint=True)
    return np.asarray(drawn).astype(dtype)


def _range(rng: random.Random, dtype: np.dtype) -> tuple[int, int]:
    info = iinfo(dtype)
    if rng.random() < 0.2:
        return int(info.min), int(info.max)
    return max(int(info.min), -9), min(int(info.max), 9)


def _with_specials(rng: random.Random, draw: np.random.Generator, values: np.ndarray) -> np.ndarray:
    if rng.random() >= SPECIAL or not values.size:
        return values
    choices = special_values(values.dtype)
    where = draw.random(values.shape) < rng.choice((0.05, 0.3, 1.0))
    picked = draw.choice(choices.astype(np.float64), values.shape).astype(values.dtype)
    return np.where(where, picked, values).astype(values.dtype)


def special_values(dtype: np.dtype) -> np.ndarray:
    """Values at which formulas go wrong; large ones still have finite squares."""
    info = finfo(dtype)
    tiny, large = float(info.smallest_subnormal), float(info.max) ** 0.4
    items = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, float(info.tiny), large, -large]
    items += [1.0, -1.0, 0.5, 1.5, 2.5, -2.5, -0.5, 88.0, -104.0]
    with np.errstate(all="ignore"):
        return np.array(items).astype(dtype)
