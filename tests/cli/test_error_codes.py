from __future__ import annotations

import ast

from tilewright.cli.error_codes import _codes_in, error_classes, error_codes


def test_codes_are_found() -> None:
    codes = {row.code: row for row in error_codes()}
    assert codes["config.unknown"].kind == "ConfigError"
    assert codes["split.factor"].kind == "ScheduleError"
    assert codes["split.factor"].message == "cannot split loop {loop.name} by {factor}"
    assert codes["onnx.damaged"].help
    assert len(codes) > 50


def test_classes_are_described() -> None:
    classes = dict(error_classes())
    assert classes["ConfigError"]
    assert all(classes.values())


def test_texts() -> None:
    source = """
def f(x):
    message = "old"
    message = f"not {x + 1}"
    raise ConfigError("a.b", message, help="x" if x else "y")
    raise refuse(func, "c.d", "text", help=f"{x}!")
    raise ConfigError(code, "text")
    raise Other("e.f", "text")
"""
    assert [tuple(row) for row in _codes_in(ast.parse(source))] == [
        ("a.b", "ConfigError", "not {x + 1}", ""),
        ("c.d", "ScheduleError", "text", "{x}!"),
    ]
