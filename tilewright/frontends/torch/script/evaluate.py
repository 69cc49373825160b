"""The text of TorchScript, followed statement by statement; `torch.export` traces what it calls.

It looks like Python and is not run as such: a name is what the text itself has defined, or one of
the tables of `functions`. What a condition on values of tensors decides becomes control flow of the
graph, see `branches`.
"""

from __future__ import annotations

import ast
import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.script.archive import Definition, ScriptArchive
from tilewright.frontends.torch.script.branches import choose, repeat
from tilewright.frontends.torch.script.functions import (
    call_aten,
    call_builtin,
    call_prim,
    call_torch,
    unknown,
)
from tilewright.frontends.torch.script.unpickle import ScriptObject

Scope = dict[str, Any]
# Words whose first argument is a type, which says nothing that the value does not.
_TYPED = {"annotate", "unchecked_cast"}


class Returned(Exception):
    """A return statement has been reached; control leaves the loops and branches around it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class ScriptEvaluator:
    """Follows the functions of one archive."""

    def __init__(self, archive: ScriptArchive) -> None:
        self.archive = archive
        self.stored = _tensors((archive.root, archive.constants))
        self._held: dict[int, torch.Tensor] = {}

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor of the archive where the function of a branch is followed."""
        return self._held.get(id(tensor), tensor)

    @contextmanager
    def holding(self, tensors: Sequence[torch.Tensor]) -> Iterator[None]:
        """Let others stand for the tensors of the archive: functions read arguments only."""
        before = self._held
        self._held = {id(s): t for s, t in zip(self.stored, tensors, strict=True)}
        try:
            yield
        finally:
            self._held = before

    def call(self, function: ast.FunctionDef, args: Sequence[Any], named: Scope) -> Any:
        """What a function gives for its arguments, `self` among them."""
        names = [one.arg for one in function.args.args]
        defaults = function.args.defaults
        scope = dict(
            zip(names[len(names) - len(defaults) :], map(self.literal, defaults), strict=True)
        )
        scope |= {**dict(zip(names, args, strict=False)), **named}
        try:
            self.run(function.body, scope)
        except Returned as returned:
            return returned.value
        return None

    def literal(self, e: ast.expr) -> Any:
        """The value of an expression without names."""
        return self.value(e, {})

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Follow some statements."""
        for stmt in body:
            self._run_one(stmt, scope)

    def _run_one(self, stmt: ast.stmt, scope: Scope) -> None:
        follow = _STATEMENTS.get(type(stmt))
        if follow is None:
            raise unknown(f"the statement {ast.unparse(stmt).splitlines()[0]}")
        follow(self, stmt, scope)

    def _assignment(self, stmt: ast.Assign, scope: Scope) -> None:
        value = self.value(stmt.value, scope)
        for target in stmt.targets:
            self._assign(target, value, scope)

    def _declaration(self, stmt: ast.AnnAssign, scope: Scope) -> None:
        if stmt.value is not None:
            self._assign(stmt.target, self.value(stmt.value, scope), scope)

    def _expression(self, stmt: ast.Expr, scope: Scope) -> None:
        self.value(stmt.value, scope)

    def _return(self, stmt: ast.Return, scope: Scope) -> None:
        raise Returned(None if stmt.value is None else self.value(stmt.value, scope))

    def _for(self, stmt: ast.For, scope: Scope) -> None:
        for item in self.value(stmt.iter, scope):
            self._assign(stmt.target, item, scope)
            self.run(stmt.body, scope)

    def _nothing(self, stmt: ast.stmt, scope: Scope) -> None:
        """A statement without effect."""

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one, item in zip(targets, value, strict=True):
                    self._assign(one, item, scope)
            case ast.Subscript(value=container, slice=key):
                self.value(container, scope)[self.value(key, scope)] = value
            case ast.Attribute(attr=name):
                raise UnsupportedError(
                    "torch.mutation",
                    f"the module changes {name} when it runs",
                    help="call eval() on the module before it is scripted",
                )
            case _:
                raise unknown(f"an assignment to {ast.unparse(target)}")

    def _if(self, stmt: ast.If, scope: Scope) -> None:
        condition = self.value(stmt.test, scope)
        if isinstance(condition, torch.Tensor):
            choose(self, condition, stmt, scope)
        else:
            self.run(stmt.body if condition else stmt.orelse, scope)

    def _while(self, stmt: ast.While, scope: Scope) -> None:
        condition = self.value(stmt.test, scope)
        while not isinstance(condition, torch.Tensor):
            if not condition:
                return
            self.run(stmt.body, scope)
            condition = self.value(stmt.test, scope)
        repeat(self, stmt, scope)

    def value(self, e: ast.expr, scope: Scope) -> Any:
        """The value of an expression."""
        evaluate = _EXPRESSIONS.get(type(e))
        if evaluate is None:
            raise unknown(f"the expression {ast.unparse(e)}")
        return evaluate(self, e, scope)

    def _constant(self, e: ast.Constant, scope: Scope) -> Any:
        return e.value

    def _tuple(self, e: ast.Tuple, scope: Scope) -> Any:
        return tuple(self.value(item, scope) for item in e.elts)

    def _list(self, e: ast.List, scope: Scope) -> Any:
        return [self.value(item, scope) for item in e.elts]

    def _dict(self, e: ast.Dict, scope: Scope) -> Any:
        pairs = zip(e.keys, e.values, strict=True)
        return {self.value(key, scope): self.value(item, scope) for key, item in pairs if key}

    def _unary(self, e: ast.UnaryOp, scope: Scope) -> Any:
        operand = self.value(e.operand, scope)
        return _negation(operand) if isinstance(e.op, ast.Not) else -operand

    def _subscript(self, e: ast.Subscript, scope: Scope) -> Any:
        return self.value(e.value, scope)[self.value(e.slice, scope)]

    def _choice(self, e: ast.IfExp, scope: Scope) -> Any:
        return self.value(e.body if self.value(e.test, scope) else e.orelse, scope)

    def _name(self, e: ast.Name, scope: Scope) -> Any:
        name = e.id
        if name in scope:
            return scope[name]
        if name in ("inf", "nan"):
            return getattr(math, name)
        raise unknown(f"the name {name}")

    def _attribute(self, e: ast.Attribute, scope: Scope) -> Any:
        path, name = _dotted(e.value), e.attr
        if path == ["CONSTANTS"]:
            return self._stored(self.archive.constants[int(name.removeprefix("c"))])
        if path and path[0] == "__torch__":
            return self._definition(".".join([*path, name]))
        return self.attribute(self.value(e.value, scope), name)

    def attribute(self, owner: Any, name: str) -> Any:
        """What an object of the archive holds."""
        if isinstance(owner, ScriptObject) and name in owner.attributes:
            return self._stored(owner.attributes[name])
        if name in getattr(owner, "_fields", ()):
            return getattr(owner, name)
        raise unknown(f"the attribute {name}")

    def _stored(self, value: Any) -> Any:
        return tree_map_only(torch.Tensor, self.held, value) if self._held else value

    def _definition(self, name: str) -> Definition:
        if name not in self.archive.definitions:
            raise unknown(name)
        return self.archive.definitions[name]

    def _call(self, e: ast.Call, scope: Scope) -> Any:
        path = _dotted(e.func)
        if path == ["uninitialized"]:
            return None
        if len(path) == 1 and path[0] in _TYPED:
            return self.value(e.args[1], scope)
        args = [self.value(one, scope) for one in e.args]
        named = {one.arg: self.value(one.value, scope) for one in e.keywords if one.arg}
        return self._called(e.func, path, args, named, scope)

    def _called(
        self, func: ast.expr, path: list[str], args: list[Any], named: Scope, scope: Scope
    ) -> Any:
        """What a function gives: one of the archive, one of torch, one of the language."""
        match path:
            case ["getattr"]:
                return self.attribute(*args)
            case ["__torch__", *_]:
                return self._defined(self._definition(".".join(path)), args, named)
            case [name] if isinstance(scope.get(name), Definition):
                return self._defined(scope[name], args, named)
            case ["torch", name]:
                return call_torch(name, args, named)
            case ["ops", "aten", name]:
                return call_aten(name, args, named)
            case ["ops", "prim", name]:
                return call_prim(name, args)
        if isinstance(func, ast.Attribute):
            return self._method(self.value(func.value, scope), func.attr, args, named)
        return call_builtin(ast.unparse(func), args)

    def _method(self, owner: Any, name: str, args: Sequence[Any], named: Scope) -> Any:
        if not isinstance(owner, ScriptObject):
            raise unknown(f"the method {name}")
        return self.call(self.archive.method(owner, name), [owner, *args], named)

    def _defined(self, found: Definition, args: Sequence[Any], named: Scope) -> Any:
        if isinstance(found, ast.FunctionDef):
            return self.call(found, args, named)
        if [ast.unparse(base) for base in found.bases] == ["NamedTuple"]:
            fields = [
                ast.unparse(one.target) for one in found.body if isinstance(one, ast.AnnAssign)
            ]
            return namedtuple(found.name, fields)(*args, **named)
        raise unknown(f"an object of the class {found.name}")


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in an object of an archive, each once."""
    found: dict[int, torch.Tensor] = {}
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, torch.Tensor):
            found[id(one)] = one
        elif isinstance(one, ScriptObject):
            pending += one.attributes.values()
        elif isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list | tuple):
            pending += one
    return list(found.values())


def _negation(value: Any) -> Any:
    return torch.logical_not(value) if isinstance(value, torch.Tensor) else not value


def _dotted(e: ast.expr) -> list[str]:
    """The parts of a name with dots; nothing where it is no such name."""
    if isinstance(e, ast.Name):
        return [e.id]
    if isinstance(e, ast.Attribute):
        parts = _dotted(e.value)
        return [*parts, e.attr] if parts else []
    return []


_STATEMENTS: dict[type[ast.stmt], Callable[[ScriptEvaluator, Any, Scope], None]] = {
    ast.Assign: ScriptEvaluator._assignment,
    ast.AnnAssign: ScriptEvaluator._declaration,
    ast.Expr: ScriptEvaluator._expression,
    ast.Return: ScriptEvaluator._return,
    ast.If: ScriptEvaluator._if,
    ast.For: ScriptEvaluator._for,
    ast.While: ScriptEvaluator._while,
    ast.Pass: ScriptEvaluator._nothing,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[[ScriptEvaluator, Any, Scope], Any]] = {
    ast.Constant: ScriptEvaluator._constant,
    ast.Name: ScriptEvaluator._name,
    ast.Tuple: ScriptEvaluator._tuple,
    ast.List: ScriptEvaluator._list,
    ast.Dict: ScriptEvaluator._dict,
    ast.UnaryOp: ScriptEvaluator._unary,
    ast.Subscript: ScriptEvaluator._subscript,
    ast.IfExp: ScriptEvaluator._choice,
    ast.Attribute: ScriptEvaluator._attribute,
    ast.Call: ScriptEvaluator._call,
}
