"""The process that runs samples of OpInfo; `opinfo.py` is its parent.

A request names operator, element type, direction, how many samples there may be and which of them
is meant; the reply says how many there are, and the outcome of that one:

- `right`: compiled whole, and as eager is
- `parts`: not compiled whole; right with some operators in eager between compiled parts
- `refused`: nothing of it is compiled, in spite of `aot_eager` tracing it whole
- `wrong`: other results than eager
- `failed`: no error of ours, but whatever else went wrong while compiling or running
- `untraced`: no part of the comparison, `aot_eager` cannot trace it whole either
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from tilewright.core.errors import Error
from tilewright.core.worker.serve import serve

OPTIONS = {"threads": 1, "cache": False}
DRAWS = 8
"""How often random results are drawn for their mean."""
UNDEFINED = re.compile(r"(new_)?empty")
_OPERATOR = re.compile(r"\b(?:aten|prims|prim|higher_order)\.\w+")


def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outcome of one sample."""
    import torch
    from opinfo_samples import operators

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    op = operators()[request["op"]]
    dtype = getattr(torch, request["dtype"])
    samples = _samples(request["op"], dtype, request["count"], request["backward"])
    if request["sample"] >= len(samples):
        return {"samples": len(samples)}
    case = Case(op, dtype, samples[request["sample"]], request["backward"])
    found = case.outcome()
    return {"samples": len(samples), "random": case.random, "host": case.host, **found}


@lru_cache(1)
def _samples(name: str, dtype: Any, count: int, backward: bool) -> list[Any]:
    from opinfo_samples import chosen, operators

    return chosen(operators()[name], dtype, count, backward)


class Case:
    """One sample of an operator: what eager gives, and what others give."""

    def __init__(self, op: Any, dtype: Any, sample: Any, backward: bool) -> None:
        self.op, self.dtype, self.sample, self.backward = op, dtype, sample, backward
        self.random = self.host = False

    def outcome(self) -> dict[str, Any]:
        """The outcome, and why where it is not `right`."""
        from opinfo_compare import is_same

        try:
            right, again = self.run(self.function, 0), self.run(self.function, 1)
        except Exception as error:  # whatever torch says of its own sample
            return {"outcome": "untraced", "why": _line(error)}
        named = UNDEFINED.match(self.op.name) is not None
        self.random = named or not is_same(again, right)
        try:
            found = self.compiled("tilewright", fullgraph=True, options=OPTIONS)
            why = self.different(found, right)
        except Exception as error:  # whatever it is, this sample is not compiled whole
            return self.in_parts(error, right)
        return {"outcome": "wrong", "why": why} if why else {"outcome": "right"}

    def in_parts(self, error: Exception, right: Any) -> dict[str, Any]:
        """The outcome of a sample that is not compiled whole, for which `error` was raised."""
        try:
            self.run(self.compiled("aot_eager", fullgraph=True), 0)
        except Exception as untraced:
            return {"outcome": "untraced", "why": _line(untraced)}
        cause = _cause(error)
        if not isinstance(cause, Error):
            return {"outcome": "failed", "why": _line(cause)}
        options = {**OPTIONS, "fallback": True}
        with _compilations() as made:
            try:
                found = self.compiled("tilewright", fullgraph=True, options=options)
                why = self.different(found, right)
            except Exception as other:
                outcome = "refused" if isinstance(_cause(other), Error) else "failed"
                return {"outcome": outcome, "why": f"in parts: {_line(_cause(other))}"}
        if why:
            return {"outcome": "wrong", "why": f"in parts: {why}"}
        return {"outcome": "parts" if made else "refused", "why": _line(cause)}

    def compiled(self, backend: str, **options: Any) -> Callable[..., Any]:
        """The operator through a backend."""
        import torch._dynamo

        torch._dynamo.reset()
        return torch.compile(self.function, backend=backend, dynamic=False, **options)

    def function(self, given: Any, args: Any, kwargs: Any) -> Any:
        """What is compiled."""
        return self.op.op(given, *args, **kwargs)

    def as_exact(self, found: list[Any], right: list[Any]) -> bool:
        """Whether results are as near as eager's to what eager computes in f64."""
        from opinfo_compare import is_as_exact

        try:
            exact = self.run(self.function, 0, wide=True)
        except Exception:  # whatever torch says of its own sample in another type
            return False
        return is_as_exact(found, right, exact)

    def run(self, function: Callable[..., Any], seed: int, wide: bool = False) -> list[Any]:
        """The results for this sample, all of them tensors; gradients last."""
        import torch
        from opinfo_samples import copied, in_f64, tensors

        sample = self.sample
        arguments = copied((sample.input, sample.args, sample.kwargs))
        if wide:
            arguments = in_f64(arguments)
        torch.manual_seed(seed)
        if not self.backward:
            with torch.no_grad():
                return [torch.as_tensor(t) for t in _leaves(function(*arguments))]
        found = sample.output_process_fn_grad(function(*arguments))
        results = [t for t in _leaves(found) if isinstance(t, torch.Tensor)]
        smooth = [t for t in results if t.requires_grad]
        wanted = [t for t in tensors(arguments) if t.requires_grad]
        gradients = torch.autograd.grad(
            smooth, wanted, [_weights(t, self.dtype) for t in smooth], allow_unused=True
        )
        return [t.detach() for t in [*results, *(g for g in gradients if g is not None)]]

    def different(self, function: Callable[..., Any], right: list[Any]) -> str:
        """What is different from eager; of random results only the distribution is compared."""
        from opinfo_compare import ANY_OF_EQUALS, differences, pointed_at, unlike
        from opinfo_samples import tolerances

        found = self.run(function, 0)
        if self.op.name in ANY_OF_EQUALS:
            found, right = (pointed_at(self.sample, results) for results in (found, right))
        if not self.random:
            why = differences(found, right, tolerances(self.op, self.dtype))
            return "" if why and self.as_exact(found, right) else why
        if UNDEFINED.match(self.op.name):
            return differences(*([t.shape for t in r] for r in (found, right)))
        draws = [self.run(function, 2 + i) for i in range(DRAWS)]
        return unlike(draws, [self.run(self.function, 102 + i) for i in range(DRAWS)])


@contextmanager
def _compilations() -> Iterator[list[Any]]:
    """All graphs that are compiled meanwhile."""
    from tilewright.compat import torch_backend

    made: list[Any] = []
    compile = torch_backend.compile

    def counting(graph: Any, **options: Any) -> Any:
        model = compile(graph, **options)
        made.append(graph)
        return model

    torch_backend.compile = counting
    try:
        yield made
    finally:
        torch_backend.compile = compile


def _cause(error: BaseException) -> BaseException:
    """The error that Dynamo wraps in its own."""
    return getattr(error, "inner_exception", error)


def _weights(result: Any, dtype: Any) -> Any:
    """The gradients that come from above: no two alike, numbers of an element type."""
    import torch

    made = torch.randn(
        result.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    return made.to(dtype).to(result.dtype)


def _leaves(found: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(found) if leaf is not None]


def _line(error: BaseException) -> str:
    """The first line of a message; the operator in front where only the rest names it."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    named = _OPERATOR.search(text)
    if named and named[0] not in first:
        first = f"{named[0]}: {first}"
    return f"{type(error).__name__}: {first}"[:300]


if __name__ == "__main__":
    sys.setrecursionlimit(5000)
    serve(answer)
