from __future__ import annotations

import json
from dataclasses import asdict

from tilewright.core.host.core_rates import CoreRates


def test_rates_survive_json() -> None:
    rates = CoreRates(3.2e9, 2.0, 4.0, 128.0, 48.0, 12.0, 4.0, 9000.0)
    assert CoreRates(**json.loads(json.dumps(asdict(rates)))) == rates
