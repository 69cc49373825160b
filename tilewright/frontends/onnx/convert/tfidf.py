"""TfIdfVectorizer: how often n-grams and skip-grams occur in a row.

Each n-gram of a list is compared with all places of a row at once; in a skip-gram its elements are
a fixed stride apart.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.core.dtypes import F32, I64, STRING
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.frontends.onnx.segments.data_dependent import NeedsConcreteSizes
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs

MODES = ("TF", "IDF", "TFIDF")


def _grams(n: OnnxNode) -> list[tuple[np.ndarray, list[int]]]:
    """The n-grams by length, `[n-grams, length]`, each with its place in the result."""
    texts = np.array(n.strs_attr("pool_strings", ()), object)
    pool = texts if texts.size else np.array(n.ints_attr("pool_int64s", ()), np.int64)
    starts, places = n.ints_attr("ngram_counts"), list(n.ints_attr("ngram_indexes"))
    bounds = (*starts, len(pool))
    found = []
    for length, (start, stop) in enumerate(pairwise(bounds), 1):
        if not 0 <= start <= stop <= len(pool) or (stop - start) % length:
            raise n.invalid(f"ngram_counts {list(starts)} do not divide a pool of {len(pool)}")
        grams = pool[start:stop].reshape(-1, length)
        found.append((grams, places[: len(grams)]))
        places = places[len(grams) :]
        if len(found[-1][1]) < len(grams):
            raise n.invalid("ngram_indexes has fewer places than there are n-grams")
    return found


def _count(
    c: OnnxContext, n: OnnxNode, x: str, grams: np.ndarray, stride: int, size: int
) -> NodeValue:
    """How often each n-gram occurs in each row, its elements `stride` places from each other."""
    length = grams.shape[1]
    room = size - (length - 1) * stride
    rows = c.type(x).shape[0]
    matches = []
    for k in range(length):
        span: tuple[Expr, Expr, int] = (const(k * stride), const(k * stride + room), 1)
        line = add_reshape(c, n, add_slice(c, x, {1: span}, "run"), (rows, const(room), const(1)))
        matches.append(
            traced(c, n, line).apply(
                "equal", traced(c, n, c.table(np.ascontiguousarray(grams[:, k])))
            )
        )
    every = reduce(lambda a, b: a.apply("and", b), matches)
    return every.cast(F32).apply("reduce_sum", attrs=ReduceAttrs((1,), keepdims=False))


def _counts(c: OnnxContext, n: OnnxNode, x: str, width: int) -> NodeValue:
    """How often each n-gram occurs, at its place in the result."""
    size = as_int(c.type(x).shape[1])
    if size is None:
        raise NeedsConcreteSizes(n.op_type, "rows of any length", n.loc)
    shortest, longest = n.int_attr("min_gram_length"), n.int_attr("max_gram_length")
    shape = (c.type(x).shape[0], const(width))
    total = traced(c, n, c.add(n, "full", attrs=FullAttrs(shape, 0.0, F32)))
    for length, (grams, places) in enumerate(_grams(n), 1):
        # A single element is counted once: it has no stride.
        steps = 1 if length == 1 else n.int_attr("max_skip_count") + 1
        if not grams.size or not shortest <= length <= longest:
            continue
        n.check_table(len(grams), width)
        columns = np.zeros((len(grams), width), np.float32)
        columns[np.arange(len(grams)), places] = 1
        furthest = steps if length == 1 else min(steps, (size - 1) // (length - 1))
        for stride in range(1, furthest + 1):
            found = _count(c, n, x, grams, stride, size)
            total = total + found.apply("matmul", traced(c, n, c.constant(columns, F32)))
    return total


def tfidf_vectorizer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Counts of n-grams, whether they occur, or counts times weights."""
    x, mode = n.required(0), n.str_attr("mode")
    if mode not in MODES:
        raise n.invalid(f"mode is {mode!r}", f"one of {', '.join(MODES)}")
    shape, places = c.type(x).shape, n.ints_attr("ngram_indexes")
    if min(places, default=-1) < 0:
        raise n.invalid(f"ngram_indexes are {list(places)}", "at least one, and none below 0")
    if len(shape) not in (1, 2):
        raise n.invalid(f"it is given {c.type(x)}", "use one row, or a list of rows")
    width = max(places) + 1
    numbers = x if c.type(x).dtype == STRING else c.cast(n, x, I64)
    rows = add_reshape(c, n, numbers, shape if len(shape) == 2 else (const(1), *shape))
    counts = _counts(c, n, rows, width)
    if mode == "IDF":
        counts = counts.apply("greater", 0).cast(F32)
    weights = np.array(n.floats_attr("weights", ()), np.float32)
    if weights.size and mode != "TF":
        counts = counts * traced(c, n, c.constant(weights, F32))
    return (add_reshape(c, n, counts.name, (*shape[:-1], const(width))),)


CONVERTERS: dict[str, Converter] = {"TfIdfVectorizer": tfidf_vectorizer}
