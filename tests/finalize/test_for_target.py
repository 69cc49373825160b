from __future__ import annotations

from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.programs import matmul
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.finalize.for_target import finalize_for
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.target.host import host


def test_each_kind_of_machine_has_its_steps() -> None:
    for target, steps in ((host(), finalize), (H200, finalize_gpu)):
        scheduled = schedule_for(matmul(), frozenset(), target).func
        assert finalize_for(scheduled, target) == steps(scheduled, target)  # type: ignore[arg-type]
