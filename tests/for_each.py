"""Many small cases in one test: `@for_each` takes what `pytest.mark.parametrize` takes.

An item of pytest's own costs several milliseconds, more than most such cases. Cases that take long,
that are skipped on some machines, or that need a fixture anew stay items.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def for_each(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each of the values; all are tried, and each failure names its case."""
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    cases = [dict(zip(names, [v] if len(names) == 1 else v, strict=True)) for v in values]
    labels = _labels(cases, ids)
    assert cases, f"no values of {', '.join(names)}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def loop(**arguments: Any) -> None:
            errors = []
            for label, case in zip(labels, cases, strict=True):
                try:
                    test(**arguments, **case)
                except pytest.skip.Exception as error:
                    raise AssertionError(f"{label} skips, and with it all the rest") from error
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the case {label}")
                    errors.append(error)
            if errors:
                failed = f"{len(errors)} of {len(cases)} cases failed"
                raise errors[0] if len(errors) == 1 else BaseExceptionGroup(failed, errors)

        signature = inspect.signature(test)
        others = [p for p in signature.parameters.values() if p.name not in names]
        loop.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return loop

    return decorate


def _labels(cases: list[dict[str, Any]], ids: Any) -> list[str]:
    if ids is None:
        return [", ".join(f"{name}={value!r}" for name, value in case.items()) for case in cases]
    if callable(ids):
        return ["-".join(str(ids(value)) for value in case.values()) for case in cases]
    return [str(name) for name in ids]
