from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.invoke import fail, invoke, succeed, succeed_json
from tests.driver.tuning.fakes import use_fakes
from tests.for_each import for_each
from tilewright.cli.commands.tune import seconds
from tilewright.driver.tuning.end_to_end import Latency
from tilewright.tune.measure.cluster import measurer as cluster_measurer
from tilewright.tune.measure.cluster import ray_cluster
from tilewright.tune.records import Records
from tilewright.tune.tuned_schedules import NO_DIFFERENCE, SLOWER

QUICK = ("--batch", 4, "--strategy", "random", "--tune-dim", "N=4")


@for_each(
    ("text", "expected"),
    [("5m", 300), ("90s", 90), ("90", 90), ("1h30m", 5400), ("1h1m1s", 3661), (None, None)],
)
def test_times_for_people(text: str | None, expected: float | None) -> None:
    assert seconds(_NONE, _NONE, text) == expected


@for_each("text", ["", "x", "0", "0m", "-5m", "5 m", "m5", "1.5h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter):
        seconds(_NONE, _NONE, text)


_NONE: Any = None


def test_a_model_is_tuned_and_compiled(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    text = succeed("tune", mlp_file, "--trials", 12, "--db", "r.db", *QUICK)
    assert "matmul_add_relu" in text
    assert "12 measurements" in text
    assert "1000.000 ms before, 500.000 ms after, 2.00 times as fast" in text
    assert "tilewright compile" in text
    data = succeed_json("tune", mlp_file, "--trials", 12, "--db", "r.db", *QUICK)
    assert data["trials"] == 12
    latency = {"before_ms": 1000, "after_ms": 500, "result": "faster", "least_gain_shown": None}
    assert data["latency"] == latency
    rows = succeed_json("records", "show", "r.db")
    assert [row["gain"] for row in rows if row["blocks"] == "the whole model"] == [2]
    assert "of 3 kernels" in succeed("records", "show", "r.db")
    assert any(row["gain"] for row in data["kernels"])
    assert {row["kernel"] for row in data["kernels"]} == {
        "matmul_add_relu",
        "matmul_add",
        "softmax",
    }


def test_a_cluster_measures(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, asked = use_fakes(monkeypatch), []
    command = ("tune", mlp_file, "--trials", 6, "--db", "r.db", *QUICK)
    fail(*command, "--cluster", "local:none", code="cluster.address")

    @contextmanager
    def connect(where: str) -> Iterator[str]:
        asked.append(where)
        yield "a cluster"
        asked.append("left")

    def measurer(cluster: str, build: Any, settings: Any, lost: Any) -> Any:
        asked.append((cluster, build))
        lost("10.0.0.7: its machine is gone")
        return fake()

    monkeypatch.setattr(ray_cluster, "connect", connect)
    monkeypatch.setattr(cluster_measurer, "ClusterMeasurer", measurer)
    result = invoke(*command, "--cluster", "10.0.0.1:6379")
    assert result.exit_code == 0
    assert len(fake.log) == 6
    build = ("-m", "tilewright.driver.tuning.build_worker")
    assert asked == ["10.0.0.1:6379", *[("a cluster", build)] * 2, "left"]
    assert result.stderr.count("lost: 10.0.0.7: its machine is gone") == 1


@pytest.mark.parametrize(
    ("latency", "words"),
    [
        (Latency(1.0, 1.5, SLOWER), "none of them will be used"),
        (
            Latency(1.0, 0.99, NO_DIFFERENCE),
            "the model is not faster with them, 990.000 ms after 1000.000",
        ),
        (
            Latency(1.0, 0.99, NO_DIFFERENCE, 0.04),
            "a gain of less than 4% does not show: leave the",
        ),
        (Latency(0.0, 0.0, "timeout: no answer"), "could not be measured: timeout"),
    ],
)
def test_what_is_said_of_the_model(
    mlp_file: Path, monkeypatch: pytest.MonkeyPatch, latency: Latency, words: str
) -> None:
    use_fakes(monkeypatch, latency)
    assert words in succeed("tune", mlp_file, "--trials", 9, *QUICK)


def test_mistakes(mlp_file: Path) -> None:
    Path("bad.db").write_text("no records at all" * 100)
    fail("tune", mlp_file, "--db", "bad.db", "--trials", 1, code="records.file")
    fail("tune", mlp_file, "--strategy", "luck", code="registry.unknown")
    fail("tune", mlp_file, "--cost", "none", code="registry.unknown")
    fail("tune", mlp_file, "--scheduler", "none", code="registry.unknown")
    fail("tune", mlp_file, "--space", "none", code="registry.unknown")
    fail("tune", mlp_file, "--precision", "f8", code="precision.unknown")
    fail("tune", "nowhere.onnx", code="onnx.file")
    assert invoke("tune", mlp_file, "--budget", "soon").exit_code == 2


@pytest.mark.slow
def test_an_interrupt_at_the_terminal_keeps_everything(mlp_file: Path) -> None:
    command = [sys.executable, "-m", "tilewright", "tune", str(mlp_file), "--trials", "500"]
    command += ["--db", "r.db", "--batch", "2", "--strategy", "random", "--threads", "1"]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    while not Path("r.db").exists() or _measured() < 3:
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    text, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    assert ", interrupted" in text
    assert f"{_measured()} measurements" in text


def _measured() -> int:
    with Records(Path("r.db")) as records:
        return sum(not record.baseline for record in records)


def test_a_model_that_cannot_be_read_leaves_no_records(tmp_path: Path) -> None:
    broken, records = tmp_path / "broken.onnx", tmp_path / "r.db"
    broken.write_bytes(b"nothing of the kind")
    fail("tune", broken, "--trials", 4, "--db", records, code="onnx.damaged")
    assert not records.exists()


@pytest.mark.slow
def test_what_other_records_teach(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    wanted = ("--batch", 4, "--tune-dim", "N=4")
    succeed("tune", mlp_file, "--trials", 36, "--db", "r.db", *QUICK)
    text = succeed(
        "tune", mlp_file, "--trials", 8, "--db", "s.db", "--pretrain-from", "r.db", *wanted
    )
    assert "8 measurements" in text
    assert "learnt from" in succeed("lab", "pretrain", "model.txt", "--records", "r.db")
    both = ("--pretrain-from", "r.db", "--cost", "pretrained:model.txt")
    fail("tune", mlp_file, "--trials", 4, "--db", "t.db", *both, code="tune.two-costs")
    Records(Path("empty.db")).close()
    empty = ("--pretrain-from", "empty.db")
    fail("tune", mlp_file, "--db", "t.db", *empty, code="cost.too-few-records")
    assert not Path("t.db").exists()
