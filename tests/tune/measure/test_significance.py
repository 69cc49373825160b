from __future__ import annotations

import numpy as np
import pytest

from tilewright.tune.measure.significance import Comparison, faster, least_shown, signed_rank


def test_chances_of_small_samples() -> None:
    assert signed_rank(np.array([1.0, 2.0, 3.0])) == pytest.approx(1 / 8)
    assert signed_rank(np.array([-1.0, -2.0, -3.0])) == 1
    # scores 1 2 3 3 3, of which the sum is 11 or 12 in two ways
    assert signed_rank(np.array([-1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2 / 32)
    # equal sizes share the mean of their ranks, zeros do not count
    assert signed_rank(np.array([1.0, 1.0, 0.0])) == pytest.approx(1 / 4)
    assert signed_rank(np.array([0.0])) == 1
    assert signed_rank(np.array([])) == 1


def noise(rng: np.random.Generator, n: int) -> np.ndarray:
    """Factors by which runs are slower: jitter, and now and then something else that runs."""
    return np.exp(rng.normal(0, 0.02, n)) * np.where(rng.random(n) < 0.1, rng.uniform(1, 10, n), 1)


def test_a_clear_difference_is_seen_through_noise() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        drift = np.exp(np.cumsum(rng.normal(0, 0.05, 30)))  # slows both alike
        comparison = faster(0.95 * drift * noise(rng, 30), drift * noise(rng, 30))
        found += comparison.significant
    assert found >= 190


def test_equals_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(2)
    comparisons = [faster(noise(rng, 30), noise(rng, 30), least_gain=0) for _ in range(1000)]
    assert sum(comparison.significant for comparison in comparisons) <= 20


def test_a_gain_has_to_be_worth_it() -> None:
    times = np.linspace(1, 2, 40)
    assert faster(0.98 * times, times).significant
    assert not faster(0.995 * times, times).significant
    assert not faster(times, times).significant
    assert not faster([], []).significant


def test_what_varies_little_shows_small_gains() -> None:
    rng = np.random.default_rng(3)
    first, second = np.exp(rng.normal(0, 0.1, (2, 1600)))
    assert least_shown(first[:1], second[:1]) == 1
    # 2.33 standard errors of a median of so many
    assert least_shown(first, second) == pytest.approx(0.0103, rel=0.1)
    assert least_shown(first[:400], second[:400]) == pytest.approx(0.0206, rel=0.1)
    assert least_shown(0.5 * first, second) == pytest.approx(least_shown(first, second))
    assert least_shown([2.0, 2.0], [1.0, 1.0]) == 0


def test_going_on_until_it_would_show_finds_it_and_nothing_else() -> None:
    rng, seen, wrong = np.random.default_rng(4), 0, 0
    for _ in range(200):
        first, second = np.exp(rng.normal(0, 0.02, (2, 400)))
        count = next(n for n in range(10, 400) if least_shown(first[:n], second[:n]) < 0.01)
        first, second = first[:count], second[:count]
        seen += faster(0.98 * first, second).significant
        wrong += faster(first, second, least_gain=0).significant
    assert seen >= 180
    assert wrong <= 6


def test_in_words() -> None:
    assert str(Comparison(0.5, 0.001, True)) == "faster: 0.500 of the time (p = 0.001)"
    assert str(Comparison(0.99, 0.3, False)).startswith("not significantly faster")
    assert str(Comparison(1, 1, False, "wrong: y")) == "not comparable: wrong: y"
