from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tune.measure.fake_builder import ARGV
from tilewright.core.errors import TuneError
from tilewright.core.worker.process import Limits
from tilewright.tune.measure import build_pool
from tilewright.tune.measure.build_pool import BuildPool, BuildRequest


@pytest.fixture
def pool() -> Iterator[BuildPool]:
    made = BuildPool(ARGV, 2, seconds=30, limits=Limits(memory=1 << 30, file=1 << 20))
    yield made
    made.close()


def requests(folder: Path, *traces: str) -> list[BuildRequest]:
    return [
        BuildRequest(str(folder), trace, "host", str(folder / f"{number}.out"))
        for number, trace in enumerate(traces)
    ]


def test_answers_come_in_the_order_of_requests(pool: BuildPool, tmp_path: Path) -> None:
    (tmp_path / "good.tw").write_bytes(b"a model")
    traces = ("copy good", "refuse", "crash", "defect", "large 100", "memory", "copy good")
    answers = pool.build(requests(tmp_path, *traces))
    kinds = ["", "refused", "crashed", "crashed", "", "memory", ""]
    assert [answer.kind for answer in answers] == kinds
    assert answers[3].failure == "crashed: KeyError: 'nothing there'"
    assert (tmp_path / "6.out").read_bytes() == b"a model"
    assert pool.build([]) == []


def test_a_full_disk_is_told_apart(pool: BuildPool, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk."""
    kinds = [a.kind for a in pool.build(requests(tmp_path, "large 2000000", "large 1000"))]
    assert kinds == ["disk", ""]


def test_what_one_spoilt_is_not_held_against_the_next(tmp_path: Path) -> None:
    """A worker that fails at its second request, whatever that is."""
    worker = (
        "import os\n"
        "from tilewright.core.worker.serve import serve\n"
        "served = []\n"
        "def spoilt(request):\n"
        "    served.append(1)\n"
        "    return {} if len(served) == 1 else os.abort()\n"
        "serve(spoilt)\n"
    )
    pool = BuildPool((sys.executable, "-c", worker), 1, seconds=30)
    try:
        assert not any(a.failure for a in pool.build(requests(tmp_path, *"abc")))
    finally:
        pool.close()


def test_workers_that_do_not_start_end_the_search(tmp_path: Path) -> None:
    with pytest.raises(TuneError, match=r"measure\.start"):
        BuildPool((sys.executable, "-c", "import missing"), 2).build(requests(tmp_path, *"abc"))


def test_workers_are_several_and_kept(pool: BuildPool, tmp_path: Path) -> None:
    rounds = [pool.build(requests(tmp_path, *["noise"] * 6)) for _ in range(2)]
    first, second = ({answer.reply["pid"] for answer in answers} for answers in rounds)
    assert first == second
    assert len(first) == 2


def test_an_interrupt_ends_the_workers(
    pool: BuildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(workers: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build_pool, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.build(requests(tmp_path, "hang", "hang"))
    assert not pool.build(requests(tmp_path, "noise"))[0].failure
