"""Random models with residuals, views and scans: whole compilations against the interpreter."""

from __future__ import annotations

import pytest

from tests.ci_sample import one_in
from tests.differential.native import (
    assert_same_on_threads,
    check_native,
    compare,
    random_inputs,
)
from tests.differential.random_images import random_image_model
from tests.differential.random_models import random_model
from tests.passes.random_graphs import random_graph, sample_inputs
from tilewright.driver.compile import compile

# Norms of nearly constant rows magnify what the order of sums makes of their last bits.
SCALE = 50


def _check(seed: int, symbolic: bool) -> None:
    graph = random_model(seed, symbolic=symbolic)
    with compile(graph, threads=1, cache=False) as model:
        for length in (1, 4, 9, 0) if symbolic else (0,):
            inputs = random_inputs(graph, {"T": length})
            compare(graph, model, inputs, SCALE)
        assert_same_on_threads(model, inputs, 2, 3)


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("seed", one_in(2, range(12)))
def test_sequences(seed: int, symbolic: bool) -> None:
    _check(seed, symbolic)


@pytest.mark.parametrize("seed", range(6))
def test_images(seed: int) -> None:
    graph = random_image_model(seed, symbolic=seed % 2 == 1)
    with compile(graph, threads=2, cache=False) as model:
        for height in (1, 4, 9) if seed % 2 else (0,):
            compare(graph, model, random_inputs(graph, {"H": height}), SCALE)


@pytest.mark.parametrize("seed", range(8))
def test_matrices(seed: int) -> None:
    graph = random_graph(seed)
    check_native(graph, sample_inputs(graph), scale=SCALE).close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 100))
def test_more_sequences(seed: int) -> None:
    _check(seed, symbolic=seed % 2 == 0)
