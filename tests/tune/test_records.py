from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.core.errors import TuneError
from tilewright.tune.records import FORMAT, Record, Records, TunedSizes

VERSIONS = (("llvm", "22.1"), ("tilewright", "0.1"))

# Writes records one after the other, and says so on standard output once each is in the file.
WRITER = """
import sys
from pathlib import Path
from tests.tune.test_records import record
from tilewright.tune.records import Records
with Records(Path(sys.argv[1])) as records:
    for number in range(int(sys.argv[3])):
        records.add([record(number, sys.argv[2])])
        print(number, flush=True)
"""


def record(number: int, workload: str = "w") -> Record:
    return Record(workload, "cpu", f"split({number})", (0.1 / (number + 1),), "", 5.0, VERSIONS)


def _writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment)


def test_what_is_added_is_found(tmp_path: Path) -> None:
    failed = Record("w", "cpu", "unroll()", (), "crash", 6.0, VERSIONS)
    with Records(tmp_path / "r.db") as records:
        assert records.add([record(1), failed, record(2, "other")]) == 3
        assert records.of("w", "cpu") == [record(1), failed]
        assert records.of("w", "gpu") == []
    with Records(tmp_path / "r.db") as again:
        assert list(again) == [record(1), failed, record(2, "other")]


def test_nothing_is_added_twice(tmp_path: Path) -> None:
    with Records(tmp_path / "r.db") as records:
        assert records.add([record(1), record(1)]) == 1
        assert records.add([record(1), record(2)]) == 1
        assert len(records) == 2


def test_merging_twice_is_merging_once(tmp_path: Path) -> None:
    with Records(tmp_path / "a.db") as a, Records(tmp_path / "b.db") as b:
        a.add(map(record, range(5)))
        b.add(map(record, range(3, 8)))
        assert a.merge(b) == 3
        assert a.merge(b) == 0
        assert {r.id for r in a} == {record(n).id for n in range(8)}


def test_comparisons_and_workloads_are_found_and_travel(tmp_path: Path) -> None:
    won = replace(
        record(1), baseline="built in", baseline_times=(0.2, 0.3), conditions=(("threads", "2"),)
    )
    lines: list[str] = []
    names = [tmp_path / f"{name}.db" for name in "abc"]
    with Records(names[0]) as a, Records(names[1]) as b, Records(names[2]) as c:
        a.add([record(1), won], {"w": "the text"})
        assert a.add([], {"w": "another text never counts"}) == 0
        assert a.comparisons("cpu") == a.comparisons() == [won]
        assert a.comparisons("gpu") == []
        b.merge(a)
        a.export_lines(lines.append)
        assert c.import_lines("".join(lines).splitlines()) == 2
        for other in (b, c):
            assert list(other) == [record(1), won]
            assert other.workloads() == {"w": "the text"}


def test_reading_makes_no_file_and_needs_no_writable_folder(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "r.db"
    with pytest.raises(TuneError) as caught:
        Records(path, read_only=True)
    assert caught.value.code == "records.missing"
    assert not path.exists()
    path.touch()
    with pytest.raises(TuneError, match="has no records"):
        Records(path, read_only=True)
    with Records(path) as writer:
        writer.add([record(1)])
        with Records(path, read_only=True) as reader:
            assert list(reader) == [record(1)]  # still in the log
    folder.chmod(0o500)
    try:
        with Records(path, read_only=True) as reader:
            assert list(reader) == [record(1)]
            with pytest.raises(TuneError):
                reader.add([record(2)])
    finally:
        folder.chmod(0o700)


def test_lines_carry_everything(tmp_path: Path) -> None:
    lines: list[str] = []
    with Records(tmp_path / "a.db") as a, Records(tmp_path / "b.db") as b:
        a.add([record(1), Record("ü\n", "t", "", (), "timeout", 0.1 + 0.2, ())])
        assert a.export_lines(lines.append) == 2
        assert b.import_lines(lines[0].split("\n")) == 2
        assert b.import_lines(lines[0].split("\n")) == 0
        assert list(b) == list(a)
        assert [r.id for r in b] == [r.id for r in a]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        "3",
        "{}",
        f'{{"format": {FORMAT}}}',
        record(1).as_json().replace('"cpu"', "7"),
        record(1).as_json().replace("[0.05]", '["fast"]'),
        record(1).as_json().replace("[0.05]", "3"),
        json.dumps({**json.loads(record(1).as_json()), "more": 1}),
        json.dumps({**json.loads(record(1).as_json()), "versions": []}),
    ],
)
def test_other_lines_are_refused_and_nothing_is_added(tmp_path: Path, line: str) -> None:
    with Records(tmp_path / "r.db") as records:
        with pytest.raises(TuneError, match=r"line 2 of x\.jsonl") as caught:
            records.import_lines([record(0).as_json(), line], "x.jsonl")
        assert caught.value.code == "records.line"
        assert len(records) == 0


@pytest.mark.parametrize(
    ("version", "found"),
    [(FORMAT - 1, f"format {FORMAT - 1}"), ("x", "format x"), (None, "no format number")],
)
def test_lines_of_another_format_are_refused(tmp_path: Path, version: object, found: str) -> None:
    workload = json.dumps({"workload": "w", "text": "t", "format": FORMAT})
    for line in (record(1).as_json(), workload):
        data = json.loads(line)
        assert data.pop("format") == FORMAT
        other = json.dumps(data if version is None else {**data, "format": version})
        with Records(tmp_path / "r.db") as records:
            message = f"line 2 has {found}, this tilewright reads {FORMAT}"
            with pytest.raises(TuneError, match=message) as caught:
                records.import_lines([line, other])
            assert caught.value.code == "records.version"
            assert len(records) == 0


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes(b"no database at all, but long enough for one" * 100)
    with pytest.raises(TuneError) as caught:
        Records(path)
    assert caught.value.code == "records.file"
    with pytest.raises(TuneError):
        Records(tmp_path / "nowhere" / "r.db")


@pytest.mark.parametrize("version", [FORMAT - 1, 99])
def test_another_format_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "r.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(TuneError, match=f"has format {version}, .* reads {FORMAT}") as caught:
        Records(path)
    assert caught.value.code == "records.version"


def test_several_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    writers = [_writer(path, name, 30) for name in "abc"]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    with Records(path) as records:
        for name in "abc":
            assert records.of(name, "cpu") == [record(n, name) for n in range(30)]


def test_killed_at_any_moment_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    rng = random.Random(0)
    for name in "abcd":
        killed, other = _writer(path, name, 10**6), _writer(path, f"other-{name}", 20)
        assert killed.stdout is not None
        killed.stdout.readline()
        time.sleep(0.3 * rng.random())
        os.kill(killed.pid, signal.SIGKILL)
        told = 1 + len(killed.stdout.readlines())
        killed.wait()
        assert other.wait(120) == 0
        with Records(path) as records:
            kept = records.of(name, "cpu")
            # What was told is there; at most the one in flight was written and not told.
            assert len(kept) in (told, told + 1)
            assert kept == [record(n, name) for n in range(len(kept))]
            assert len(records.of(f"other-{name}", "cpu")) == 20
            # Resuming: what is there already is not added again.
            assert records.add(record(n, name) for n in range(len(kept) + 1)) == 1


def test_a_full_disk_keeps_what_was_written(tmp_path: Path) -> None:
    with Records(tmp_path / "r.db") as records:
        records.add([record(1)])
        (pages,) = records._db.execute("PRAGMA page_count").fetchone()
        records._db.execute(f"PRAGMA max_page_count = {pages}")
        long = Record("w", "cpu", "x" * 10**6, (), "", 0.0, ())
        with pytest.raises(TuneError, match="full"):
            records.add([record(2), long])
        assert list(records) == [record(1)]
        records._db.execute("PRAGMA max_page_count = 100000")
        assert records.add([record(2)]) == 1


def test_the_sizes_of_the_last_session_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    first, last = TunedSizes("m.onnx", {"N": 1}, {"S": 64}), TunedSizes("m.onnx", {}, {"N": 8})
    with Records(path) as records:
        assert records.last_session("m.onnx") is None
        for session in (first, TunedSizes("other.onnx", {}, {}), last):
            records.add_session(session)
    with Records(path, read_only=True) as records:
        assert records.last_session("m.onnx") == last
        assert records.last_session("unknown.onnx") is None
