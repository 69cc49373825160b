"""Named sets of rewrite rules, and the driver that applies them to a fixed point.

    MIN = rules("min", min_of(x, x) >> x, min_of(min_of(x, c), d) >> min_of(x, fold(min_of(c, d))))
    apply_rules(e, MIN | SELECT)

Every rule decreases `measure`, so rewriting terminates. TW_TRACE_RULES=1 prints each rewrite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.arith.expr import Binary, Broadcast, Call, Cast, Expr, Select, Unary
from tilewright.arith.memo import Memo
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.patterns import (
    Applied,
    Apply,
    Choice,
    Converted,
    Pattern,
    Prefix,
    Rule,
)
from tilewright.arith.walk import map_children
from tilewright.core.config import config
from tilewright.core.dtypes import DType
from tilewright.core.node import children

Domain = Callable[[DType], bool]
Key = tuple[type[Expr], str]


@dataclass(frozen=True)
class NamedRule:
    """A rule with a name to log, for expressions whose operands have a dtype of `domain`."""

    name: str
    rule: Rule
    domain: Domain


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules in the order in which they are tried; sets compose with `|`."""

    name: str
    rules: tuple[NamedRule, ...]
    _tables: dict[tuple[Key, DType], tuple[NamedRule, ...]] = field(default_factory=dict)
    _memo: Memo[Expr, Expr] = field(default_factory=Memo)

    def __or__(self, other: RuleSet) -> RuleSet:
        return RuleSet(f"{self.name}|{other.name}", self.rules + other.rules)

    def rewrite_root(self, e: Expr) -> Expr | None:
        """What the first rule that fits makes of `e` itself; None where no rule fits."""
        key = key_of(e)
        if key is None:
            return None
        for named in self._rules_for(key, operand_dtype(e)):
            result = named.rule.apply(e)
            if result is not None:
                return _same_lanes(e, result, named.name)
        return None

    def _rules_for(self, key: Key, dtype: DType) -> tuple[NamedRule, ...]:
        found = self._tables.get((key, dtype))
        if found is None:
            fitting = (r for r in self.rules if key_of_pattern(r.rule.pattern) == key)
            found = self._tables[key, dtype] = tuple(r for r in fitting if r.domain(dtype))
        return found


def rules(name: str, domain: Domain, *members: Rule) -> RuleSet:
    """A set of rules for operands whose dtype is in `domain`, in all orders of their operands."""
    named = [
        NamedRule(f"{name}.{n}", Rule(pattern, rule.result, rule.condition, rule.names), domain)
        for n, rule in enumerate(members)
        for pattern in rule.pattern.variants()
    ]
    return RuleSet(name, tuple(named))


def apply_rules(e: Expr, ruleset: RuleSet) -> Expr:
    """`e` rewritten bottom-up until no rule of the set fits anywhere."""
    memo = ruleset._memo
    found = memo.get(e)
    if found is None:
        rebuilt = map_children(e, lambda child: apply_rules(child, ruleset))
        rewritten = ruleset.rewrite_root(rebuilt)
        if rewritten is None and rebuilt is e:
            found = e
        else:
            found = apply_rules(rebuilt if rewritten is None else rewritten, ruleset)
        memo.keep(e, found)
    return found


def _same_lanes(before: Expr, after: Expr, name: str) -> Expr:
    if after.lanes != before.lanes:
        after = Broadcast(after, before.lanes)
    if config().trace_rules:
        print(f"{name}: {before}  -->  {after}", file=sys.stderr)
    return after


# The name under which rules for a node, or for a pattern, are filed beside the class.
_OF_NODE: dict[type, Callable[[Any], str]] = {
    Binary: lambda e: str(e.op),
    Unary: lambda e: str(e.op),
    Select: lambda e: "",
    Cast: lambda e: "",
    Call: lambda e: str(e.fn),
}
_OF_PATTERN: dict[type, Callable[[Any], Key]] = {
    Apply: lambda p: (Binary, p.op),
    Prefix: lambda p: (Unary, p.op),
    Choice: lambda p: (Select, ""),
    Converted: lambda p: (Cast, ""),
    Applied: lambda p: (Call, p.fn),
}


def key_of(e: Expr) -> Key | None:
    """Under which key rules for `e` are filed; None where there can be none."""
    name = _OF_NODE.get(type(e))
    return None if name is None else (type(e), name(e))


def key_of_pattern(pattern: Pattern) -> Key:
    """Under which key a rule with this pattern is filed."""
    return _OF_PATTERN[type(pattern)](pattern)


def operand_dtype(e: Expr) -> DType:
    """The dtype that decides which arithmetic holds: of the operands, not of a comparison."""
    return e.a.dtype if isinstance(e, Binary | Unary | Select) else e.dtype


# Weights of operators that rules replace by cheaper ones.
_WEIGHT = {"div": 1}

Measure = tuple[int, int, int]


def measure(e: Expr) -> Measure:
    """The termination measure, which every rule decreases, compared lexicographically.

    The number of nodes (shared ones counted each time); nodes in the numerators of divisions; the
    weight of the operators.
    """
    return _measure(e, {})


def _measure(e: Expr, memo: dict[Expr, Measure]) -> Measure:
    if e not in memo:
        total = [1, 0, 0]
        for child in children(e, Expr):
            total = [x + y for x, y in zip(total, _measure(child, memo), strict=True)]
        if isinstance(e, Binary):
            total[1] += _measure(e.a, memo)[0] if e.op in DIVISIONS else 0
            total[2] += _WEIGHT.get(e.op, 0)
        memo[e] = (total[0], total[1], total[2])
    return memo[e]
