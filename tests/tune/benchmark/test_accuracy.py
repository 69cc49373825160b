from __future__ import annotations

import pytest

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.accuracy import accuracies, program_task
from tilewright.tune.space.table import program_spaces

# Programs that a model of real ones learns from.
LEARNT = 40


@pytest.mark.slow
def test_models_order_programs_that_they_have_not_seen(products: list[str]) -> None:
    """Kendall's tau, within a space and across spaces; chance gives 0."""
    least = {"analytical": 0.6, "ridge": 0.4, "lightgbm": 0.6}
    models = ["random", *least]
    found = accuracies(products, models, 32, range(3))
    assert [(one.space, one.cost_model) for one in found] == [
        (space, model) for space in products for model in models
    ]
    for one in found:
        assert one.across is not None
        if one.cost_model == "random":
            assert abs(one.within) < 0.4
        else:
            assert one.within > least[one.cost_model], one
            assert one.across > 0.4, one


@pytest.mark.slow
def test_learnt_models_order_real_programs() -> None:
    """Kendall's tau of 0.6 on programs that were not learnt from, in every space that has such."""
    spaces = [name for name in program_spaces() if len(program_task(name)[1]) > LEARNT]
    found = accuracies(spaces, ["lightgbm", "residual"], LEARNT, range(3))
    assert min(one.within for one in found) > 0.6
    across = [one.across for one in found if one.cost_model == "residual"]
    assert sum(across) / len(across) > 0.4  # type: ignore[arg-type]


def test_a_space_alone_has_no_others(products: list[str]) -> None:
    (one,) = accuracies(products[:1], ["analytical"], 16, [0])
    assert one.across is None


def test_knobs_are_no_programs() -> None:
    with pytest.raises(ConfigError) as caught:
        accuracies(["convolution-a100"], ["ridge"], 16, [0])
    assert caught.value.code == "lab.no-programs"
