"""Texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError


def texts(*items: Any) -> np.ndarray:
    return np.array(items, object)


def test_concat_broadcasts() -> None:
    (y,) = run_host("StringConcat", texts(["a"], ["b"]), texts("x", "", "z"))
    assert y.tolist() == [["ax", "a", "az"], ["bx", "b", "bz"]]
    assert y.dtype == object


def test_matching() -> None:
    (y,) = run_host("RegexFullMatch", texts("abc", "abcd"), pattern="[a-c]+")
    assert y.tolist() == [True, False]
    with pytest.raises(ExecutionError, match="no regular expression"):
        run_host("RegexFullMatch", texts("a"), pattern="(")


def test_splitting() -> None:
    parts, counts = run_host("StringSplit", texts("a,b", "", "c"), delimiter=",")
    assert parts.tolist() == [["a", "b"], ["", ""], ["c", ""]]
    assert counts.tolist() == [2, 0, 1]
    parts, counts = run_host("StringSplit", texts(" a  b c "), maxsplit=1)
    assert parts.tolist() == [["a", "b c "]]
    parts, counts = run_host("StringSplit", texts())
    assert parts.shape == (0, 0)


def test_normalizing() -> None:
    x = texts("Monday", "tuesday")
    attrs = {"stopwords": ["monday"], "case_change_action": "UPPER"}
    assert run_host("StringNormalizer", x, **attrs)[0].tolist() == ["TUESDAY"]
    kept = run_host("StringNormalizer", x, is_case_sensitive=1, **attrs)
    assert kept[0].tolist() == ["MONDAY", "TUESDAY"]
    assert run_host("StringNormalizer", x[:1], **attrs)[0].tolist() == [""]
    with pytest.raises(ExecutionError, match="case_change_action"):
        run_host("StringNormalizer", x, case_change_action="TITLE")


def test_numbers_as_texts_and_back() -> None:
    x = np.array([1.5, np.nan, np.inf, -np.inf], np.float32)
    (y,) = run_host("Cast", x, to=TensorProto.STRING)
    assert y.tolist() == ["1.5", "NaN", "INF", "-INF"]
    (z,) = run_host("Cast", y, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(z, x)
    assert z.dtype == np.float32
    (i,) = run_host("CastLike", texts("-3", "4"), np.zeros(1, np.int8))
    assert (i.dtype, i.tolist()) == (np.int8, [-3, 4])
    (s,) = run_host("CastLike", np.array([True, False]), texts("a"))
    assert s.tolist() == ["1", "0"]
    with pytest.raises(ExecutionError, match="no number"):
        run_host("Cast", texts("one"), to=TensorProto.FLOAT)
