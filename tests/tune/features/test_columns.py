from __future__ import annotations

from tests.schedule.programs import dense
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.target.registry import CPUS
from tilewright.tune.features.accesses import statements_of
from tilewright.tune.features.columns import (
    BUFFER_COLUMNS,
    NO_BUFFER,
    _buffer,
    log,
    statement_columns,
)
from tilewright.tune.features.performance_model import estimate

TARGET = CPUS["aarch64"]
SCHEDULED = schedule_func(dense(128, 256, 64), frozenset({"w"}), TARGET).func
STATEMENTS = statements_of(SCHEDULED, buffers(SCHEDULED))
PRODUCT = max(STATEMENTS, key=lambda s: s.flops * s.runs)


def test_every_statement_has_the_same_columns() -> None:
    names = [
        [name for name, _ in statement_columns(s, estimate(s, TARGET), TARGET)] for s in STATEMENTS
    ]
    assert all(one == names[0] for one in names)
    assert len(set(names[0])) == len(names[0])
    assert len(_buffer(PRODUCT, PRODUCT.accesses[0])) == len(NO_BUFFER) == len(BUFFER_COLUMNS)


def test_numbers_of_a_product() -> None:
    row = dict(statement_columns(PRODUCT, estimate(PRODUCT, TARGET), TARGET))
    assert row["ops.fma"] == log(PRODUCT.runs)
    assert row["vectorize.last"] == log(4)
    assert row["vectorize.inside"] == 1
    assert row["parallel.inside"] == len(PRODUCT.extents)
    assert row["b0.unique bytes"] == log(64 * 256 * 4)  # w, the largest
    assert row["b0.stride"] == log(1)
    assert row["b2.in registers"] == 1
    assert row["b3.bytes"] == 0
    # the larger the part of the nest, the more arithmetic for a byte
    curve = [row[f"intensity.{point}"] for point in range(6)]
    assert curve == sorted(curve, reverse=True)


def test_reuse() -> None:
    row = dict(statement_columns(PRODUCT, estimate(PRODUCT, TARGET), TARGET))
    rows_of_tile = next(
        e
        for e, kind, step in zip(PRODUCT.extents, PRODUCT.kinds, _steps("w"), strict=True)
        if kind == "unroll" and step == 0
    )
    assert row["b0.reuse count"] == log(rows_of_tile)
    assert row["b0.reuse bytes"] > 0


def _steps(name: str) -> tuple[int, ...]:
    return next(a.steps for a in PRODUCT.accesses if a.buffer == name)
