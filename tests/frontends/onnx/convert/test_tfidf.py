"""Counting runs, against the reference implementation of ONNX and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_compiled
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.core.errors import FrontendError, UnsupportedError

X = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
OPTIONS: dict[str, Any] = {
    "mode": "TF",
    "min_gram_length": 1,
    "max_gram_length": 2,
    "max_skip_count": 5,
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "opset": 9,
}


@for_each("mode", ["TF", "IDF", "TFIDF"])
@for_each("lengths", [(1, 1), (1, 2), (2, 2)])
@for_each("skips", [0, 2, 5])
def test_against_the_reference(mode: str, lengths: tuple[int, int], skips: int) -> None:
    options = {**OPTIONS, "mode": mode, "max_skip_count": skips}
    options |= {"min_gram_length": lengths[0], "max_gram_length": lengths[1]}
    options["weights"] = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    check("TfIdfVectorizer", {"x": X}, **options)
    check("TfIdfVectorizer", {"x": X[0].astype("i4")}, **options)


def test_by_hand() -> None:
    (found,) = results("TfIdfVectorizer", {"x": X}, **OPTIONS)
    np.testing.assert_array_equal(found, [[0, 3, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 1, 1]])


def test_refusals() -> None:
    with pytest.raises(FrontendError, match="mode is 'IF'"):
        imported("TfIdfVectorizer", {"x": X}, **{**OPTIONS, "mode": "IF"})
    with pytest.raises(FrontendError, match="none below 0"):
        imported("TfIdfVectorizer", {"x": X}, **{**OPTIONS, "ngram_indexes": [0, -9]})
    for starts in ([0, 11], [5, 4], [-1, 4], [0, 5]):
        with pytest.raises(FrontendError, match="ngram_counts"):
            imported("TfIdfVectorizer", {"x": X}, **{**OPTIONS, "ngram_counts": starts})
    with pytest.raises(FrontendError, match="fewer places"):
        imported("TfIdfVectorizer", {"x": X}, **{**OPTIONS, "ngram_indexes": [0, 1]})


def test_places_beyond_all_memory() -> None:
    options = {**OPTIONS, "ngram_indexes": [*OPTIONS["ngram_indexes"][:-1], 2**40]}
    with pytest.raises(UnsupportedError, match=rf"a table of [0-9]+ x {2**40 + 1} numbers"):
        imported("TfIdfVectorizer", {"x": X}, **options)


def test_texts_and_rows_of_any_length() -> None:
    names = {k: v for k, v in OPTIONS.items() if k != "pool_int64s"}
    names["pool_strings"] = [str(v) for v in OPTIONS["pool_int64s"]]
    texts = X.astype(str).astype(object)
    check_compiled("TfIdfVectorizer", [texts], **names)
    check_compiled("TfIdfVectorizer", [texts], dims={0: (2, "L")}, **names)
    check_compiled("TfIdfVectorizer", [X], dims={0: ("N", "L")}, **OPTIONS)
