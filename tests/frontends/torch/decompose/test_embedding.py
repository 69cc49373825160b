from __future__ import annotations

from functools import partial

import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

TABLE, INDICES = random(10, 3), integers(0, 10, 9)
PADDING = int(INDICES[1])
OFFSETS = torch.tensor([0, 3, 3, 4, 9])


@for_each("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    bag = partial(F.embedding_bag, mode=mode)
    check(lambda w, i, o: bag(i, w, o), TABLE, INDICES, OFFSETS)
    check(lambda w, i, o: bag(i, w, o, include_last_offset=True), TABLE, INDICES, OFFSETS)
    check(lambda w, i, o: bag(i, w, o, padding_idx=PADDING), TABLE, INDICES, OFFSETS)
    check(lambda w, i: bag(i, w), TABLE, integers(0, 10, 4, 5, dtype=torch.int32))


def test_weights_of_rows() -> None:
    check(
        lambda w, i, o, p: F.embedding_bag(i, w, o, per_sample_weights=p, mode="sum"),
        *(TABLE, INDICES, OFFSETS, random(9)),
    )


@for_each("mode", [0, 1, 2])
def test_which_bag_and_which_row(mode: int) -> None:
    offsets = torch.tensor([0, 3, 5])

    def bags(w: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = torch.ops.aten._embedding_bag(w, i, o, False, mode, False, None, False, 4)
        return tuple(found if mode == 2 else found[:1])

    check(bags, TABLE, INDICES, offsets)


@for_each("p", [1.0, 2.0, float("inf")])
def test_rows_held_to_a_norm(p: float) -> None:
    def renorm(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.embedding_renorm_(w.clone(), i, 1.5, p)

    check(renorm, TABLE, INDICES[:4])


@for_each("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce: str) -> None:
    lengths = torch.tensor([0, 3, 2, 0, 4])
    segments = partial(torch.segment_reduce, reduce=reduce)
    check(lambda x, n: segments(x, lengths=n), random(9, 2), lengths)
    check(lambda x, n: segments(x, lengths=n, initial=2.5), random(9), lengths)
    ends = torch.tensor([[0, 2, 3, 5], [0, 0, 4, 5]])
    check(lambda x, o: segments(x, offsets=o, axis=1), random(2, 5, 3), ends)
