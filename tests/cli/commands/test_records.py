from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoke import fail, succeed, succeed_json
from tests.driver.tuning.test_apply_records import Made, _written, changed, verdicts_of
from tests.models import mlp
from tilewright.tune.records import Records


@pytest.fixture(scope="module")
def made() -> Made:
    return verdicts_of(mlp("N"))


@pytest.fixture
def db(made: Made) -> Path:
    return _written(Path("r.db"), made)


def test_show(db: Path) -> None:
    rows = succeed_json("records", "show", db)
    assert [row["blocks"] for row in rows] == ["matmul add relu", "matmul add"]
    assert all((row["records"], row["gain"]) == (1, 1.5) for row in rows)
    assert "2 records of 2 kernels" in succeed("records", "show", db)


def test_merge(db: Path, made: Made) -> None:
    _written(Path("later.db"), changed(made, measured_at=2e9))
    assert "4 new records" in succeed("records", "merge", "all.db", db, "later.db")
    assert "0 new records" in succeed("records", "merge", "all.db", db, "later.db")
    fail("records", "merge", "new.db", db, "nowhere.db", code="records.missing")
    assert not Path("new.db").exists()


def test_export_and_import(db: Path) -> None:
    assert "2 records in r.jsonl" in succeed("records", "export", db, "-o", "r.jsonl")
    assert succeed("records", "export", db) == Path("r.jsonl").read_text()
    assert "2 new records" in succeed("records", "import", "other.db", "r.jsonl")
    assert "0 new records" in succeed("records", "import", "other.db", "r.jsonl")
    with Records(db) as one, Records(Path("other.db")) as two:
        assert list(one) == list(two)
        assert one.workloads() == two.workloads()


def test_mistakes() -> None:
    fail("records", "show", "nowhere.db", code="records.missing")
    Path("bad.db").write_text("no records at all" * 100)
    fail("records", "show", "bad.db", code="records.file")
    Path("bad.jsonl").write_bytes(b"\xff{}\n")
    fail("records", "import", "new.db", "bad.jsonl", code="records.line")


def test_commands_use_records(db: Path, mlp_file: Path) -> None:
    def tuned(text: str) -> int:
        return text.count("[tuned: measured to be faster")

    assert tuned(succeed("explain", mlp_file, "--target", "native", "--tuned", db)) == 2
    assert tuned(succeed("explain", mlp_file)) == 0
    succeed("compile", mlp_file, "--tuned", db, "-o", "m.tw")
    assert tuned(succeed("explain", "m.tw")) == 2
    loops = succeed("compile", mlp_file, "--tuned", db, "--emit", "loops")
    assert loops != succeed("compile", mlp_file, "--emit", "loops")
    assert "probabilities" in succeed("run", mlp_file, "--tuned", db, "--random", "--dim", "N=3")
    fail("run", "m.tw", "--tuned", db, "--random", "--dim", "N=3", code="tuned.saved")
    fail("bench", "m.tw", "--tuned", db, "--dim", "N=3", code="tuned.saved")
    fail("bench", mlp_file, "--tuned", "no.db", "--dim", "N=3", code="records.missing")
    quick = ("--rounds", 1, "--seconds", 0.01, "--idle-timeout", 0, "--dim", "N=3")
    rows = succeed_json("bench", mlp_file, "--tuned", db, *quick)["engines"]
    assert [row["engine"] for row in rows] == ["tilewright", "tilewright tuned"]
    assert rows[1]["difference"] < 1e-5
