"""Conditions on values of tensors in TorchScript: both branches, and loops, as torch's functions.

torch.cond and while_loop take functions of tensors. Each is given all tensors that the scope has
and gives back all that the statements change; what is no tensor must be the same in every branch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from tilewright.core.errors import UnsupportedError

Scope = dict[str, Any]


class Follower(Protocol):
    """What follows statements; others can stand for the tensors that it has `stored`."""

    @property
    def stored(self) -> Sequence[torch.Tensor]:
        """The tensors."""

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor now."""

    def holding(self, tensors: Sequence[torch.Tensor]) -> AbstractContextManager[None]:
        """Let others stand for all that is stored."""

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Follow some statements."""

    def value(self, e: ast.expr, scope: Scope) -> Any:
        """The value of an expression."""


def choose(follower: Follower, condition: torch.Tensor, stmt: ast.If, scope: Scope) -> None:
    """Follow one of two branches, decided when the model runs."""
    changed = sorted(_assigned(stmt.body) & _assigned(stmt.orelse))
    changed += sorted((_assigned(stmt.body) ^ _assigned(stmt.orelse)) & scope.keys())
    state = _State(follower, scope)
    forms: list[Any] = []

    def branch(body: Sequence[ast.stmt]) -> Callable[..., tuple[torch.Tensor, ...]]:
        def function(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            inner = state.run(body, tensors, changed)
            leaves, form = _Form.of({name: _as_tensors(inner[name]) for name in changed})
            forms.append(form)
            # What is an argument as it is may be no result.
            return tuple(leaf.clone() for leaf in leaves)

        return function

    flag = condition.reshape(()).to(torch.bool)
    functions = branch(stmt.body), branch(stmt.orelse)
    found = torch.ops.higher_order.cond(flag, *functions, tuple(state.tensors))
    if forms[0] != forms[-1]:
        raise _differ(", ".join(changed))
    scope.update(forms[0].rebuilt(found))


def repeat(follower: Follower, stmt: ast.While, scope: Scope) -> None:
    """Follow the body of a loop for as long as its condition holds when the model runs."""
    changed = sorted(_assigned(stmt.body) & scope.keys())
    # Clones: what is carried is no tensor that anything else is, too.
    first = {name: _cloned(_as_tensors(scope[name])) for name in changed}
    carried, form = _Form.of(first)
    others = {name: scope[name] for name in scope if name not in changed}
    state = _State(follower, first | others)

    def goes_on(*tensors: torch.Tensor) -> torch.Tensor:
        found = state.value(stmt.test, tensors)
        return torch.as_tensor(found).reshape(()).to(torch.bool).clone()

    def step(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        after = state.run(stmt.body, tensors, changed)
        leaves, found = _Form.of({name: _as_tensors(after[name]) for name in changed})
        if found != form:
            raise _differ(", ".join(changed))
        return tuple(leaf.clone() for leaf in leaves)

    given = tuple(carried), tuple(state.tensors[len(carried) :])
    scope.update(form.rebuilt(torch.ops.higher_order.while_loop(goes_on, step, *given)))


def _cloned(value: Any) -> Any:
    return tree_map_only(torch.Tensor, torch.clone, value)


def _as_tensors(value: Any) -> Any:
    """Numbers as tensors: in the other branch, or the next step, they may be others."""
    return tree_map_only(bool | int | float, _as_tensor, value)


def _as_tensor(value: float) -> torch.Tensor:
    """By an operator that is traced: a tensor that is made at once is none of the function's."""
    dtype = {bool: torch.bool, int: torch.int64, float: torch.float32}[type(value)]
    return torch.ops.aten.scalar_tensor.default(value, dtype=dtype)


class _Form:
    """How values are nested, with a mark for each tensor."""

    def __init__(self, spec: Any, others: tuple[Any, ...]) -> None:
        self._spec, self._others = spec, others

    @classmethod
    def of(cls, values: Scope) -> tuple[list[torch.Tensor], _Form]:
        leaves, spec = tree_flatten(values)
        others = tuple(None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves)
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)], cls(spec, others)

    def rebuilt(self, tensors: Iterable[torch.Tensor]) -> Scope:
        """The values with these tensors."""
        found = iter(tensors)
        leaves = [next(found) if one is None else one[0] for one in self._others]
        values: Scope = tree_unflatten(leaves, self._spec)
        return values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Form):
            return NotImplemented
        return bool(self._spec == other._spec and self._others == other._others)

    __hash__ = None  # type: ignore[assignment]


class _State:
    """What statements may read: the tensors of a scope and of the archive; the rest is fixed."""

    def __init__(self, follower: Follower, scope: Scope) -> None:
        self._follower = follower
        own, self._form = _Form.of(scope)
        self._count = len(own)
        self._all = [*own, *map(follower.held, follower.stored)]
        # A function takes no tensor twice; what comes first, as all that is carried, stays first.
        self.tensors = list({id(tensor): tensor for tensor in self._all}.values())

    def _spread(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """One for each place where a tensor is."""
        found = {id(own): tensor for own, tensor in zip(self.tensors, given, strict=True)}
        return [found[id(own)] for own in self._all]

    def value(self, e: ast.expr, given: Sequence[torch.Tensor]) -> Any:
        """The value of an expression, computed with these tensors."""
        tensors = self._spread(given)
        with self._follower.holding(tensors[self._count :]):
            return self._follower.value(e, self._form.rebuilt(tensors))

    def run(
        self, body: Sequence[ast.stmt], given: Sequence[torch.Tensor], changed: Sequence[str]
    ) -> Scope:
        """The scope after statements, of which only what is `changed` may change."""
        tensors = self._spread(given)
        if any(isinstance(node, ast.Return) for stmt in body for node in ast.walk(stmt)):
            raise _differ("returned")
        before, after = self._form.rebuilt(tensors), self._form.rebuilt(tensors)
        with self._follower.holding(tensors[self._count :]):
            self._follower.run(body, after)
        for name in before.keys() - set(changed):
            old, new = tree_flatten(before[name]), tree_flatten(after[name])
            if old[1] != new[1] or any(a is not b for a, b in zip(old[0], new[0], strict=True)):
                raise _differ(name)
        return after


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements give values to."""
    found = (node for stmt in body for node in ast.walk(stmt))
    return {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _differ(names: str) -> UnsupportedError:
    return UnsupportedError(
        "torch.script.branches",
        f"values of tensors decide what {names} is, which is more than tensors",
        help="let both branches give tensors of the same types and sizes",
    )
