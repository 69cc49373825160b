from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.expr import Binary, Bitcast, Call, Cast, Const, Expr, Select, Unary, Var, call
from tilewright.arith.operators import CALLS
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import DTYPES, F32, F64, I32, I64
from tilewright.finalize.math.table import EXPANSIONS

INSTRUCTIONS = {"abs", "sqrt", "floor", "ceil", "trunc", "round_even", "isnan", "fma", "copysign"}
CASTS = {(F32, F64), (F64, F32), (I32, F32), (I64, F64)}
# The functions that fill transformers, and what each may cost.
BUDGET = {
    **{"exp": 17, "exp_nonpositive": 17, "exp_ftz": 17},
    **{"sigmoid": 19, "tanh": 20, "erf": 27, "log": 29, "gelu": 39},
}


def expansion(fn: str, name: str) -> Expr:
    arguments = [Var(v, DTYPES[name]) for v in "xy"[: CALLS[fn]]]
    return EXPANSIONS[fn, name](*arguments)


@for_each("name", ["f32", "f64"])
def test_every_function_is_an_instruction_or_has_an_expansion(name: str) -> None:
    assert {fn for fn in CALLS if (fn, name) not in EXPANSIONS} == INSTRUCTIONS


@for_each(("fn", "name"), EXPANSIONS)
def test_expansions_are_primitive(fn: str, name: str) -> None:
    for e in subexpressions(expansion(fn, name)):
        match e:
            case Call():
                assert e.fn in INSTRUCTIONS
            case Cast():
                assert (e.a.dtype, e.dtype) in CASTS
            case _:
                assert isinstance(e, Const | Var | Binary | Unary | Select | Bitcast)


@for_each(("fn", "name"), EXPANSIONS)
def test_result_has_the_dtype_of_the_call(fn: str, name: str) -> None:
    arguments = [Var(v, DTYPES[name]) for v in "xy"[: CALLS[fn]]]
    assert expansion(fn, name).dtype == call(fn, *arguments).dtype


@for_each("fn", BUDGET)
def test_hot_functions_stay_short_and_in_f32(fn: str) -> None:
    nodes = list(subexpressions(expansion(fn, "f32")))
    operations = [e for e in nodes if not isinstance(e, Const | Var | Bitcast)]
    assert len(operations) <= BUDGET[fn]
    assert not [e for e in nodes if e.dtype in (F64, I64)]
