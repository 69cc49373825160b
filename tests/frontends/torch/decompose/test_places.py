from __future__ import annotations

import pytest
import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, imported, integers, random

X = random(4, 5, 6)
PLACES = integers(0, 5, 4, 3, 6)
WAYS = ["sum", "prod", "mean", "amax", "amin"]


@for_each("way", WAYS)
def test_elements_joined(way: str) -> None:
    for with_self in (True, False):
        check(
            lambda x, i, v, s=with_self: x.scatter_reduce(1, i, v, way, include_self=s),
            X,
            PLACES,
            random(4, 3, 6),
        )
        whole = integers(-9, 9, 4, 5, 6)
        check(
            lambda x, i, s=with_self: x.scatter_reduce(1, i, x, way, include_self=s), whole, PLACES
        )
    check(
        lambda x, i, v: x.scatter_reduce(0, i, v, way, include_self=False),
        torch.tensor(2.0),
        torch.tensor(0),
        torch.tensor(3.0),
    )


@for_each("way", WAYS[1:])
def test_slices_joined(way: str) -> None:
    i = torch.tensor([3, 0, 3])
    for with_self in (True, False):
        check(
            lambda x, i, v, s=with_self: x.index_reduce(1, i, v, way, include_self=s),
            X,
            i,
            random(4, 3, 6),
        )


def test_places_in_the_row_of_all_elements() -> None:
    i = torch.tensor([[7, -1], [0, 60]])
    check(lambda x, i: (x.take(i), x.take(i[0, 0])), X, i)
    check(lambda x, i, v: (x.put(i, v), x.put(i, v, accumulate=True)), X, i, random(2, 2))
    check(lambda x, v: x.put(torch.zeros(3, dtype=torch.int64), v, True), X, random(3))


def test_elements_behind_a_mask() -> None:
    check(lambda x, v: x.masked_scatter(x > 0, v), X, random(200))
    check(lambda x, v: x.masked_scatter(x[0, 0] > 0, v), X, random(200))
    check(lambda x, v: x.masked_scatter(x[0, 0] > 9, v), X, torch.empty(0))
    count = int((X > 0).sum())
    check(lambda x, v: x.index_put((x > 0,), v), X, random(count))
    check(lambda x, v: x.index_put((x > 0,), v, accumulate=True), X, random(count))
    rows = X[:, :, 0] > 0
    check(lambda x, m, v: x.index_put((m,), v), X, rows, random(int(rows.sum()), 6))
    check(lambda x, m, v: x.index_put((m,), v, accumulate=True), X, rows, random(6))


@for_each("size", [0, 3, 40])
def test_places_of_what_is_not_zero(size: int) -> None:
    x = integers(0, 2, 4, 5)
    check(lambda x: torch.nonzero_static(x, size=size, fill_value=-7), x)
    check(lambda x: torch.nonzero_static(x, size=size), x.to(torch.float32)[:0])
    check(lambda x: torch.nonzero_static(x, size=2), torch.tensor(3))


def test_positions_repeated() -> None:
    r = torch.tensor([2, 0, 3, 1])
    check(lambda x, r: x.repeat_interleave(r, 0, output_size=6), X, r)
    check(lambda r: torch.repeat_interleave(r, output_size=6), r.to(torch.int32))
    with pytest.raises(Exception, match="repeat_interleave"):
        imported(lambda x, r: x.repeat_interleave(r, 0), X, r)


def test_scalars_are_their_only_element() -> None:
    x, i, v = torch.tensor(1.5), torch.tensor([0]), torch.tensor([2.5])
    check(lambda x, i: (x.index_select(0, i), x.gather(0, i), x.gather(0, i[0])), x, i)
    check(lambda x, i, v: (x.index_copy(0, i, v[0]), x.scatter(0, i[0], v[0])), x, i, v)
    check(lambda x, i, v: (x.scatter_add(0, i, v), x.scatter(0, i, 7.0)), x, i, v)
    empty = torch.empty(2, 0, dtype=torch.int64)
    check(lambda x, i: (x.gather(0, i), x.scatter(0, i, 3.0)), random(5), empty[0])


def test_more_elements_than_places() -> None:
    check(lambda x, i, v: (x.scatter(1, i, v), x.scatter_add(2, i, v)), X, PLACES[:2, :, :3], X)
