"""A function of any arguments that says which it has: torch names a graph's inputs by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any


def with_arguments(run: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """`run`, which takes its arguments by name, with a signature of these names."""
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])

    def forward(*args: Any, **named: Any) -> Any:
        return run(**signature.bind(*args, **named).arguments)

    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward
