from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.tuning.fakes import database, session, use_fakes
from tilewright.driver.tuning.end_to_end import Latency
from tilewright.driver.tuning.validate import winner
from tilewright.tune.records import Records
from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE


def test_a_model_that_won_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use_fakes(monkeypatch, Latency(1.0, 0.9, FASTER), Latency(1.0, 1.0, NO_DIFFERENCE))
    with Records(database(tmp_path)) as records:
        first = session(records, trials=20).run()
        again = session(records, trials=20).run()
        assert fake.models == 1
        assert again.latency == first.latency
        assert [*map(winner, again.searches)] == [*map(winner, first.searches)]
        session(records, trials=20, cold=True).run()
        assert fake.models > 1


def test_a_model_that_could_not_be_measured_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = use_fakes(
        monkeypatch, Latency(0.0, 0.0, "timeout: no answer"), Latency(1.0, 0.9, FASTER)
    )
    with Records(database(tmp_path)) as records:
        assert session(records, trials=20).run().latency == Latency(0.0, 0.0, "timeout: no answer")
        assert session(records, trials=20).run().latency == Latency(1.0, 0.9, FASTER)
        assert fake.models == 2
