from __future__ import annotations

import pytest
import torch

import tilewright as tw
from tests.for_each import for_each
from tests.frontends.torch.eager import check, imported, integers, random
from tilewright.core.errors import ExecutionError, UnsupportedError

X = random(4, 5, 6)
ROWS, J = integers(-4, 4, 3), integers(0, 5, 2, 1)


def test_tables() -> None:
    check(torch.nn.Embedding(7, 3), integers(0, 7, 2, 4))
    check(lambda x, i: x.index_select(1, i), X, integers(0, 5, 3))
    check(lambda x, i: x.gather(1, i), X, integers(0, 5, 4, 2, 6))


def test_indices() -> None:
    check(lambda x, i: (x[i], x[:, i], x[i.unsqueeze(0)]), X, ROWS)
    check(lambda x, i, j: (x[i, j], x[:, i, j], x[i, :, j]), X, ROWS, J)
    check(lambda x, i, j: x[i, j, 2], X, ROWS, J)


def test_places_written_to() -> None:
    check(lambda x, i, v: x.index_put((i,), v), X, integers(0, 4, 1), random(1, 5, 6))
    check(lambda x, i, v: x.index_put((i,), v, accumulate=True), X, ROWS, random(3, 1, 6))
    check(lambda x, i, j, v: x.index_put((i, j), v, accumulate=True), X, ROWS, J, random(6))
    check(lambda x, i, v: x.index_copy(1, i, v), X, torch.tensor([3, 0]), random(4, 2, 6))
    check(lambda x, i, v: x.index_add(1, i, v), X, torch.tensor([3, 3]), random(4, 2, 6))


def masked(x: torch.Tensor) -> torch.Tensor:
    """Numbers written behind masks."""
    y = x.clone()
    y[y > 0] = 2.5
    y[y[:, 0, 0] > 1] = 0
    return y


def test_writing_behind_masks() -> None:
    check(masked, X)
    with pytest.raises(UnsupportedError, match="a mask as an index"):
        imported(lambda x, i: x.index_put((x[:, 0, 0] > 0, i), x[0, 0, 0]), X, integers(0, 2, 1))


def written(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A part written to in place."""
    y = x.clone()
    y[:, i] = v
    y[1:3] += 1
    return y


def test_writing_in_place() -> None:
    check(written, X, torch.tensor([4, 1]), random(4, 2, 6))


def test_scattering() -> None:
    i = integers(0, 5, 4, 2, 6)
    check(
        lambda x, i, v: (x.scatter(1, i[:, :1], v[:, :1]), x.scatter_add(1, i, v)),
        X,
        i,
        random(4, 2, 6),
    )
    check(lambda x, i: x.scatter(1, i, 2.5), X, i)
    check(lambda x, i, v: x.scatter_reduce(1, i, v, "amax"), X, i, random(4, 2, 6))


def test_one_hot() -> None:
    check(lambda i: torch.nn.functional.one_hot(i, 5), integers(0, 5, 3, 2))
    check(lambda i: torch.nn.functional.one_hot(i, 5), torch.tensor(3))


@for_each("index", [-1, 5, 2**40])
def test_a_class_outside_is_refused_as_by_torch(index: int) -> None:
    wrong = torch.tensor([0, index, 4])
    with pytest.raises(RuntimeError, match="Class values must be"):
        torch.nn.functional.one_hot(wrong, 5)
    graph = imported(lambda i: torch.nn.functional.one_hot(i, 5), torch.tensor([0, 1, 4]))
    with tw.compile(graph) as model, pytest.raises(ExecutionError, match=f"index {index} is out"):
        model(wrong.numpy())
