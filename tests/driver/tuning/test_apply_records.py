from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import AXES
from tests.models import mlp, random_inputs, reference
from tilewright.core.config import override
from tilewright.core.errors import TuneError
from tilewright.driver.compile import compile_container
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import CompileOptions, make_options
from tilewright.ir.loop.nodes import Func
from tilewright.runtime.container import write_container
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.registry import CPUS
from tilewright.tune.records import Record, Records
from tilewright.tune.target_key import target_text
from tilewright.tune.workload import workload_hash, workload_text

Made = dict[str, tuple[Record, str]]


def _other_way(func: Func) -> str:
    """A schedule that no built-in rule makes."""
    sch = Schedule(func)
    sch.split("matmul.i1", [None, 4])
    return str(sch.trace)


def verdicts_of(model: object) -> Made:
    """For each kernel with a product a record that another schedule has won, by kernel."""
    made: Made = {}

    def seen(func: Func, constants: frozenset[str], target: CpuTarget) -> ScheduledFunc:
        builtin = schedule_func(func, constants, target)
        if func.name.startswith("matmul"):
            text = workload_text(func, constants)
            key = (workload_hash(text), target_text(target))
            record = Record(*key, _other_way(func), (1.0,), "", 1e9, ())
            won = replace(record, baseline=str(builtin.trace), baseline_times=(1.5,))
            made[func.name] = won, text
        return builtin

    lower(model, CompileOptions(host(), schedules=seen))
    return made


def changed(made: Made, **fields: Any) -> Made:
    return {name: (replace(record, **fields), text) for name, (record, text) in made.items()}


def _written(path: Path, made: Made) -> Path:
    with Records(path) as file:
        for record, text in made.values():
            file.add([record], {record.workload: text})
    return path


@pytest.fixture
def records() -> Made:
    return verdicts_of(mlp("N"))


def _rules(path: Path | None, **options: object) -> dict[str, tuple[str, str]]:
    build = lower(mlp("N"), make_options(tuned=path, **options))  # type: ignore[arg-type]
    return {s.kernel.name: (s.kernel.rule, s.kernel.scheduled.note) for s in build.steps}


def test_records_schedule_their_kernels_and_results_stay_right(
    tmp_path: Path, records: Made
) -> None:
    path = _written(tmp_path / "r.db", records)
    rules = _rules(path)
    assert {name for name, (rule, _) in rules.items() if rule == "tuned"} == {*records}
    assert rules["softmax"] == _rules(None)["softmax"]
    model, inputs = mlp("N"), random_inputs(mlp("N"), {"N": 7})
    with tw.compile(model, tuned=path) as tuned:
        assert "2 of them tuned" in tuned.explain()
        assert (
            "1.50 times as fast as the built-in schedule, record of 2001-09-09" in tuned.explain()
        )
        assert "split(" in tuned.explain()
        np.testing.assert_allclose(tuned(**inputs), *reference(model, inputs).values(), rtol=1e-5)


def test_the_same_records_give_the_same_bytes(tmp_path: Path, records: Made) -> None:
    path = _written(tmp_path / "r.db", records)
    backwards = _written(tmp_path / "b.db", dict(reversed(records.items())))
    files = []
    for number, used in enumerate((path, path, backwards, None)):
        container = compile_container(mlp("N"), make_options(tuned=used, cache=False))
        files.append(tmp_path / f"{number}.tw")
        content = [(0, container.weights)]
        write_container(files[-1], container.manifest, container.objects, content)
    first, second, third, untuned = (file.read_bytes() for file in files)
    assert first == second == third != untuned


def test_the_cache_never_gives_a_stale_answer(tmp_path: Path, records: Made) -> None:
    def tuned_kernels() -> int:
        manifest = compile_container(mlp("N"), make_options(tuned=path)).manifest
        return sum(s["rule"] == "tuned" for s in manifest["schedules"].values())

    first, second = (record for record, _ in records.values())
    with override(cache=True, cache_dir=tmp_path / "cache"):
        path = _written(tmp_path / "r.db", {"": (first, "")})
        assert tuned_kernels() == 1
        with Records(path) as file:
            measured = replace(second, baseline="", baseline_times=())
            file.add([measured])
        before = len(list((tmp_path / "cache").rglob("objects/*/*")))
        assert tuned_kernels() == 1
        assert len(list((tmp_path / "cache").rglob("objects/*/*"))) == before  # used again
        with Records(path) as file:
            file.add([second])
        assert tuned_kernels() == 2
        with Records(path) as file:
            lost = replace(first, measured_at=2e9, failure="slower")
            file.add([lost])
        assert tuned_kernels() == 1
        compile_container(mlp("N"), make_options())
        assert tuned_kernels() == 1


def test_a_trace_that_does_not_replay_costs_only_itself(tmp_path: Path, records: Made) -> None:
    first, second = records
    for trace in ('split("gone", [?, 4])', "never_heard_of(1)", "split(", "no text at all %"):
        stale = {**records, **changed({first: records[first]}, trace=trace)}
        rules = _rules(_written(tmp_path / f"{len(trace)}.db", stale))
        assert rules[second][0] == "tuned"
        rule, note = rules[first]
        assert rule == _rules(None)[first][0]
        assert "record of 2001-09-09 does not replay" in note


def test_a_record_against_another_built_in_schedule_is_not_used(
    tmp_path: Path, records: Made
) -> None:
    rules = _rules(_written(tmp_path / "r.db", changed(records, baseline="split(1)")))
    assert {name: rule for name, (rule, _) in rules.items()} == {
        name: rule for name, (rule, _) in _rules(None).items()
    }
    assert all("tune again" in rules[name][1] for name in records)


def test_records_of_other_machines_are_not_used(tmp_path: Path, records: Made) -> None:
    other = target_text(CPUS["sapphirerapids"])
    path = _written(tmp_path / "r.db", changed(records, target=other))
    assert _rules(path) == _rules(None)
    assert _rules(path, nearest_workload=True) == _rules(None)


def test_the_nearest_workload_is_used_where_asked_for(tmp_path: Path) -> None:
    path = _written(tmp_path / "r.db", verdicts_of(mlp(8, 16, 64, 32)))

    def rules(**options: bool) -> list[str]:
        build = lower(mlp(4, 24, 32, 16), make_options(tuned=path, **options))  # type: ignore[arg-type]
        return [s.kernel.rule for s in build.steps if s.kernel.name.startswith("matmul")]

    assert "tuned" not in rules()
    assert rules(nearest_workload=True) == ["tuned", "tuned"]
    model, inputs = mlp(4, 24, 32, 16), random_inputs(mlp(4, 24, 32, 16))
    with tw.compile(model, tuned=path, nearest_workload=True) as tuned:
        assert "from the nearest, record of" in tuned.explain()
        np.testing.assert_allclose(tuned(**inputs), *reference(model, inputs).values(), rtol=1e-5)


def test_a_model_in_stages_takes_records_too(tmp_path: Path, records: Made) -> None:
    path = _written(tmp_path / "r.db", records)
    given = (np.ones((2, 3), np.float32), np.array([0], np.int64))
    with tw.compile(AXES) as plain, tw.compile(AXES, tuned=path) as tuned:
        np.testing.assert_array_equal(plain(*given), tuned(*given))


def test_a_bad_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("these are no records" * 50)
    for path, code in ((tmp_path / "bad.db", "records.file"), (tmp_path / "no", "records.missing")):
        with pytest.raises(TuneError) as caught:
            tw.compile(mlp("N"), tuned=path)
        assert caught.value.code == code
    assert not (tmp_path / "no").exists()
