from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

EDGES = torch.tensor([-1.0, -0.5, 0.0, 0.0, 0.25, 2.0, 3.0])
NAN, INF = float("nan"), float("inf")
X = torch.cat([random(20), EDGES, torch.tensor([NAN, INF, -INF])])


@for_each("right", [False, True])
def test_searches(right: bool) -> None:
    check(lambda e, x: torch.searchsorted(e, x, right=right), EDGES, X)
    check(lambda e, x: torch.bucketize(x, e, right=right, out_int32=True), EDGES, X.reshape(5, 6))
    check(lambda e, x: torch.bucketize(x[0], e, right=right), EDGES, X)
    check(lambda e: torch.searchsorted(e, 0.3, right=right), EDGES)
    check(lambda e, x: torch.searchsorted(e, x, right=right), EDGES[:0], X)
    rows = integers(0, 9, 3, 2, 8).sort(-1).values
    check(lambda e, x: torch.searchsorted(e, x, right=right), rows, integers(-1, 11, 3, 2, 5))


def test_searches_in_another_order() -> None:
    edges = random(4, 9)
    check(
        lambda e, x, s: torch.searchsorted(e, x, sorter=s, side="right"),
        edges,
        random(4, 3),
        edges.argsort(-1),
    )


def test_membership() -> None:
    check(lambda a, b: (torch.isin(a, b), torch.isin(a, b, invert=True)), X[:9], EDGES)
    check(lambda a, b: torch.isin(a, b), integers(0, 99, 6, 4), integers(0, 99, 70))


def test_histograms_of_equal_intervals() -> None:
    check(lambda x: (torch.histc(x, 7), torch.histc(x, 5, -1, 1)), random(50))
    check(lambda x: torch.histc(x, 4), torch.full((3,), 2.0))
    check(lambda x: torch.histc(x, 3, -1, 1), X)
    check(lambda x: torch.histc(x, 3), torch.empty(0))
    for density in (False, True):
        check(lambda x, d=density: torch.histogram(x, 6, density=d), random(40))
        check(
            lambda x, w, d=density: torch.histogram(x, 4, range=(-1.0, 2.0), weight=w, density=d),
            random(8, 5),
            random(8, 5, seed=2).abs(),
        )


def test_histograms_of_given_edges() -> None:
    edges = torch.tensor([-2.0, -0.1, 0.5, 0.7, 3.0])
    check(lambda x, e: torch.histogram(x, e, density=True), random(30), edges)
    points = random(30, 2)
    check(lambda x, e: torch.histogramdd(x, (e, e[1:]))[0], points, edges)
    check(lambda x: torch.histogramdd(x, (3, 4), density=True)[0], points)
