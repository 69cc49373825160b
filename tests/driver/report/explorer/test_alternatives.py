from __future__ import annotations

from tests.models import mlp
from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.alternatives import with_estimates
from tilewright.driver.report.explorer.explore import explore


def test_a_rule_without_costs_gets_those_of_the_model() -> None:
    model = explore("mlp", mlp(64), make_options("x86-64-v4"))
    rules = {name: kernel.rule for name, kernel in model.build.distinct_kernels.items()}
    assert {"register_blocked", "rowwise"} <= set(rules.values())
    for name, choices in model.choices.items():
        known = [c for c in choices if c.second is not None]
        assert all(c.by_rule == (rules[name] == "register_blocked") for c in known)
        assert all(o.cost is None or o.cost > 0 for c in known for o in c.others)
    softmax = [c for c in model.choices["softmax"] if c.second is not None]
    assert softmax
    assert len({c.taken.cost for c in softmax}) == 1  # the cycles of the schedule as it is


def test_a_gpu_has_no_performance_model() -> None:
    model = explore("mlp", mlp(2), make_options("cuda -arch=sm_90a"))
    assert with_estimates(model.build, model.choices) == model.choices
