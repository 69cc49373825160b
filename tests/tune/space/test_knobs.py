from __future__ import annotations

import numpy as np

from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.space.variation import enumerate_all


def test_combinations_that_meet_the_condition() -> None:
    space = KnobSpace({"a": (1, 2), "b": (1, 2)}, lambda chosen: chosen["a"] >= chosen["b"])
    assert [str(c) for c in enumerate_all(space)] == ["a=1, b=1", "a=2, b=1", "a=2, b=2"]


def test_features_are_values_and_logarithms_or_places() -> None:
    space = KnobSpace({"tile": (1, 8), "flag": (0, 1), "order": ("ij", "ji")})
    features = space.features(list(enumerate_all(space)))
    assert features.shape == (8, 4)
    np.testing.assert_array_equal(features[0], [1, 0, 0, 0])
    np.testing.assert_array_equal(features[-1], [8, 3, 1, 1])
    assert space.features([]).shape == (0, 4)
