from __future__ import annotations

import torch

from tests.training.optim.stepped import check
from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.ir.types import TensorType
from tilewright.training.optim import Adafactor


def test_steps_are_those_of_torch() -> None:
    check(Adafactor(), torch.optim.Adafactor)
    check(
        Adafactor(0.5, 0.3, decay_exponent=0.5, threshold=1.5, epsilon=1e-3, least=0.2),
        lambda p: torch.optim.Adafactor(p, 0.5, -0.5, (1e-3, 0.2), 1.5, 0.3),
    )


def test_a_matrix_is_kept_by_rows_and_columns() -> None:
    state = Adafactor().state(TensorType(F32, (const(2), const(30), const(40))))
    shapes = {name: tuple(map(str, t.shape)) for name, t in state.items()}
    assert shapes == {"rows": ("2", "30", "1"), "columns": ("2", "1", "40")}
