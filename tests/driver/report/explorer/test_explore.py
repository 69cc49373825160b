from __future__ import annotations

from tests.models import mlp
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.explore import explore


def test_everything_is_recorded_for_who_explores() -> None:
    options = make_options("x86-64-v3", dims={"N": 2})
    model = explore("mlp", mlp("N"), options)
    assert model.build.log.graphs is not None
    assert len(model.build.log.graphs) == len(model.build.log.records) + 1
    assert model.choices.keys() == model.build.distinct_kernels.keys()
    assert lower(mlp("N"), options).log.graphs is None


def test_a_compiled_model_is_the_one_explored(measured: ExploredModel) -> None:
    assert measured.profile is not None
    names = [step.kernel.name for step in measured.build.steps]
    assert [row.name for row in measured.profile.rows] == names
    assert measured.threads == 1
