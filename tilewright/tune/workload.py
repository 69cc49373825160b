"""What a schedule is for: a kernel's loops before any schedule, as a text that says all of it.

    constants x1, x2
    func @kernel(x0: f32[N, 16], x1: f32[16, 32], ...) { ... }

Kernels of different models, or of one under different names, have the same workload if their loops
are the same and the same parameters are constants, whose layout a schedule may choose. Workloads
have the same structure if nothing but whole numbers differs.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import replace

from tilewright.core.errors import ParseError
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func

NAME = "kernel"
# What the names of whole models in records begin with.
WHOLE_MODEL = "model-"
_HEAD = "constants"
# Not the digits of names or of numbers with a point.
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.])")


def workload_text(func: Func, constants: frozenset[str]) -> str:
    """The workload of a function that is not scheduled yet."""
    head = " ".join([_HEAD, ", ".join(sorted(constants))]).rstrip()
    return f"{head}\n{print_func(replace(func, name=NAME))}"


def workload_hash(text: str) -> str:
    """The name of a workload in records."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def model_hash(kernels: Iterable[tuple[str, float]]) -> str:
    """The name of a whole model in records, of its workloads and how often it runs each."""
    return f"{WHOLE_MODEL}{workload_hash(repr(sorted(kernels)))}"


def parse_workload(text: str) -> tuple[Func, frozenset[str]]:
    """The function and its constants that a text spells."""
    head, _, body = text.partition("\n")
    word, _, names = head.partition(" ")
    if word != _HEAD:
        raise ParseError("workload.head", f"a workload begins with {_HEAD!r}, not with {word!r}")
    return parse_func(body), frozenset(filter(None, names.split(", ")))


def structure(text: str) -> str:
    """The workload without its numbers."""
    return _WHOLE.sub("#", text)


def distance(text: str, other: str) -> float:
    """How far the numbers of two workloads of one structure are apart, as factors count."""
    pairs = zip(_WHOLE.findall(text), _WHOLE.findall(other), strict=True)
    return sum(abs(math.log((int(a) + 1) / (int(b) + 1))) for a, b in pairs)
