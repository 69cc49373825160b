"""What every cost model must do."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ConfigError
from tilewright.tune.cost import lightgbm
from tilewright.tune.cost.cost_model import CostModel, throughputs
from tilewright.tune.cost.table import COST_MODELS, make_cost_model
from tilewright.tune.features.program import ESTIMATE, feature_names

LEARNING = ["ridge", "lightgbm"]


def _model(name: str, seed: int = 0) -> CostModel:
    return COST_MODELS.get(name)(seed)


def _data(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 8, (count, 4)).astype(float)
    seconds = 1 + (features[:, 0] - 3) ** 2 + features[:, 1] * features[:, 2] / 4
    return features, seconds


def _concordance(one: np.ndarray, two: np.ndarray) -> float:
    """Kendall's tau without ties of the second."""
    signs = np.sign(one[:, None] - one) * np.sign(two[:, None] - two)
    return float(signs.sum() / np.count_nonzero(two[:, None] - two))


def test_all_are_tested() -> None:
    assert set(COST_MODELS.names()) == {
        "random",
        "analytical",
        "residual",
        "pretrained",
        *LEARNING,
    }


@for_each("name", LEARNING)
def test_learns_the_order(name: str) -> None:
    model = _model(name)
    features, seconds = _data(200, 0)
    model.fit(features, throughputs(seconds))
    unseen, truth = _data(100, 1)
    assert _concordance(-model.predict(unseen), truth) > 0.7
    order = model.rank(unseen)
    assert sorted(order) == list(range(100))
    assert truth[order[:10]].mean() < 0.5 * truth.mean()


def test_random_knows_nothing_but_is_repeatable() -> None:
    features, seconds = _data(200, 0)
    one, two = _model("random", 3), _model("random", 3)
    one.fit(features, throughputs(seconds))
    first = one.predict(features)
    assert abs(_concordance(-first, seconds)) < 0.2
    np.testing.assert_array_equal(first, two.predict(features))


@for_each("name", LEARNING)
def test_the_same_data_gives_the_same_scores(name: str) -> None:
    features, seconds = _data(60, 0)
    scores = []
    for _ in range(2):
        model = _model(name)
        model.fit(features, throughputs(seconds))
        scores.append(model.predict(features))
    np.testing.assert_array_equal(*scores)


@for_each("name", ["random", *LEARNING])
def test_little_and_odd_data(name: str) -> None:
    model = _model(name)
    assert model.predict(np.zeros((3, 2))).shape == (3,)
    for features, seconds in (
        (np.ones((1, 2)), np.array([1.0])),
        (np.ones((12, 2)), np.ones(12)),
        (np.ones((12, 2)), np.full(12, np.inf)),
        (np.arange(40.0).reshape(20, 2), np.r_[np.full(10, np.inf), np.ones(10)]),
    ):
        model.fit(features, throughputs(seconds))
        assert np.isfinite(model.predict(np.ones((4, 2)))).all()
        assert model.predict(np.empty((0, 2))).shape == (0,)


def _tasks(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two tasks, mixed, of which one takes a thousand times as long."""
    features, seconds = _data(count, seed)
    groups = np.arange(count) % 2
    return features, np.where(groups, 1000 * seconds, seconds), groups


@for_each("name", LEARNING)
def test_tasks_are_learnt_together(name: str) -> None:
    model = _model(name)
    features, seconds, groups = _tasks(200, 0)
    model.fit(features, throughputs(seconds, groups), groups)
    unseen, truth = _data(100, 1)
    assert _concordance(-model.predict(unseen), truth) > 0.7


@for_each("name", LEARNING)
def test_the_order_of_groups_and_their_numbers_play_no_part(name: str) -> None:
    features, seconds, groups = _tasks(60, 0)
    one, two = _model(name), _model(name)
    one.fit(features, throughputs(seconds, groups), groups)
    sorted_rows = np.argsort(groups, kind="stable")
    features, seconds, groups = features[sorted_rows], seconds[sorted_rows], groups[sorted_rows]
    two.fit(features, throughputs(seconds, groups), groups + 7)
    np.testing.assert_allclose(one.predict(features), two.predict(features), rtol=1e-9)


def test_many_features_are_no_matter_for_ridge() -> None:
    features, seconds = _data(60, 0)
    wide = np.hstack([features, np.zeros((60, 400))])
    model = _model("ridge")
    model.fit(wide, throughputs(seconds))
    assert _concordance(-model.predict(wide), seconds) > 0.7


def test_analytical_orders_programs_without_data() -> None:
    model = _model("analytical")
    assert model.ready
    rows = np.zeros((3, len(feature_names())))
    rows[:, feature_names().index(ESTIMATE)] = (20.0, 10.0, 30.0)
    assert model.rank(rows).tolist() == [1, 0, 2]
    with pytest.raises(ConfigError) as caught:
        model.predict(np.ones((3, 4)))
    assert caught.value.code == "cost.features"


def test_residual_starts_from_the_estimate_and_corrects_it() -> None:
    rng = np.random.default_rng(0)
    rows = np.zeros((200, len(feature_names())))
    place = feature_names().index(ESTIMATE)
    rows[:, place] = rng.uniform(10, 14, 200)
    rows[:, place + 1] = rng.integers(0, 2, 200)
    seconds = 2 ** (rows[:, place] + 3 * rows[:, place + 1])  # the estimate misses something
    model = _model("residual")
    assert model.ready
    np.testing.assert_array_equal(model.rank(rows), _model("analytical").rank(rows))
    before = _concordance(-model.predict(rows), seconds)
    model.fit(rows[:40], throughputs(seconds[:40]))
    assert _concordance(-model.predict(rows[40:]), seconds[40:]) > max(0.8, before + 0.2)


def test_throughputs() -> None:
    np.testing.assert_array_equal(
        throughputs(np.array([2.0, 4.0, np.inf, 1.0])), [0.5, 0.25, 0.0, 1.0]
    )
    np.testing.assert_array_equal(throughputs(np.array([np.inf])), [0.0])
    np.testing.assert_array_equal(
        throughputs(np.array([2.0, 50.0, 4.0, np.inf, 100.0]), np.array([0, 1, 0, 0, 1])),
        [1.0, 1.0, 0.5, 0.0, 0.5],
    )
    assert throughputs(np.empty(0)).shape == (0,)


def test_models_from_files() -> None:
    for name, code in (
        ("ridge:file", "cost.takes-no-file"),
        ("pretrained", "cost.no-file"),
        ("pretrained:missing", "cost.file"),
        ("pretraind:missing", "registry.unknown"),
    ):
        with pytest.raises(ConfigError) as caught:
            make_cost_model(name)
        assert caught.value.code == code


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("No module named 'lightgbm'"), OSError("libgomp.so.1")]
)
def test_a_missing_package_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def missing(name: str) -> ModuleType:
        raise error

    monkeypatch.setattr(lightgbm, "import_module", missing)
    with pytest.raises(ConfigError) as caught:
        lightgbm.LightGbmCost()
    assert caught.value.code == "cost.missing-package"
    assert "tilewright[tune]" in caught.value.help
