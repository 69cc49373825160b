"""A measurer that measures by a formula, and sessions that use it: no process is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.models import mlp
from tilewright.driver.tuning import session as session_module
from tilewright.driver.tuning.end_to_end import Latency, TuningModel
from tilewright.driver.tuning.session import SearchSettings, TuningSession
from tilewright.runtime.profile import KernelTime
from tilewright.target.host import host
from tilewright.tune.candidate import Result
from tilewright.tune.measure.significance import Comparison, faster
from tilewright.tune.method import SearchMethod
from tilewright.tune.tuned_schedules import FASTER

MODEL = TuningModel(mlp(8, 16, 64, 32), host(), {}, "f32", {}, 1)
RANDOM = SearchMethod("random")


class FakeMeasurer:
    """Each candidate is faster than the one before, every seventh fails; what was asked is kept."""

    log: ClassVar[list[str]] = []
    compared: ClassVar[list[str]] = []
    models = 0
    gain = 0.5
    interrupt_at: int | None = None

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> FakeMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def measure(
        self, job: Any, programs: Sequence[Any], incumbent: float = 1.0, on_result: Any = None
    ) -> list[Result]:
        results = []
        for candidate, trace in programs:
            if self.interrupt_at == len(self.log):
                type(self).interrupt_at = None
                raise KeyboardInterrupt
            self.log.append(trace)
            failed = "crashed: on purpose" if len(self.log) % 7 == 6 else ""
            times = () if failed else (1.0 / (1 + len(self.log)),)
            results.append(Result(candidate, times, failed))
            on_result(results[-1], trace)
        return results

    def head_to_head(self, job: Any, first: str | None, second: str | None) -> Comparison:
        if second is not None:
            self.compared.append(second)
            return faster([1.0] * 20, [self.gain * (1 + 1e-4 * i) for i in range(20)])
        assert first is not None
        self.compared.append(first)
        return faster([self.gain * (1 + 1e-4 * i) for i in range(20)], [1.0] * 20)


def use_fakes(monkeypatch: Any, *latencies: Latency) -> type[FakeMeasurer]:
    """Sessions measure by the formula from now on; a fresh class, so that tests do not meet.

    Models come out as said, one after another and the last for ever; without a word they win.
    """
    said = [*latencies] or [Latency(1.0, 0.5, FASTER)]

    class Fresh(FakeMeasurer):
        log: ClassVar[list[str]] = []
        compared: ClassVar[list[str]] = []

    class Whole:
        def __init__(self, *_: object) -> None:
            pass

        def kernel_times(self) -> dict[str, KernelTime]:
            return {}

        def compare(self, *_: object) -> Latency:
            Fresh.models += 1
            return said.pop(0) if len(said) > 1 else said[0]

    monkeypatch.setattr(session_module, "Measurer", Fresh)
    monkeypatch.setattr(session_module, "WholeModel", Whole)
    return Fresh


def session(records: Any, show: Any = lambda session: None, **settings: Any) -> TuningSession:
    return TuningSession(
        MODEL, records, SearchSettings(**{"method": RANDOM, "batch": 4, **settings}), show
    )


def database(folder: Path) -> Path:
    return folder / "records.db"
