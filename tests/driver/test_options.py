from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tests.for_each import for_each
from tilewright.core.config import override
from tilewright.core.errors import ConfigError, Error
from tilewright.driver.options import CompileOptions, make_options, no_progress
from tilewright.driver.timings import Timings
from tilewright.target.host import host
from tilewright.target.registry import resolve_cpu


def test_names_are_resolved_once() -> None:
    options = make_options("x86-64-v3", "bf16", {"N": 1}, threads=2)
    assert options.target == resolve_cpu("x86-64-v3")
    assert (options.target_name, options.precision, options.threads) == ("x86-64-v3", "bf16", 2)
    assert options.dims == {"N": 1}
    assert options.progress is no_progress
    assert make_options() == CompileOptions(host())


def test_wrong_values_are_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(Error, match="pdp11"):
        make_options("pdp11")
    with pytest.raises(ConfigError, match=r"precision\.unknown"):
        make_options(precision="f17")
    with pytest.raises(Error):
        make_options(tuned=tmp_path / "missing.db")


@for_each(
    ("name", "value"),
    [
        ("target", None),
        ("precision", []),
        ("dims", "N=1"),
        ("dims", {5: 1}),
        ("disable_passes", "fuse"),
        ("threads", "2"),
        ("threads", 100_000),
        ("cache", "no"),
        ("overrides", 5),
        ("tuned", b"records.db"),
        ("nearest_workload", None),
        ("timings", 5),
        ("progress", None),
    ],
)
def test_wrong_arguments_are_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"argument\.(type|value)\]: .*{name} is"):
        make_options(**{name: value})


def test_the_switch_gives_a_folder_of_overrides(tmp_path: Path) -> None:
    with override(override_dir=tmp_path):
        assert make_options().overrides == tmp_path
        assert make_options(overrides=tmp_path / "own").overrides == tmp_path / "own"


def test_they_do_not_change() -> None:
    options = make_options()
    with pytest.raises(FrozenInstanceError):
        options.precision = "bf16"  # type: ignore[misc]


def test_each_compilation_has_timings_of_its_own() -> None:
    options = make_options()
    assert options.timed().clock is not options.timed().clock
    own = make_options(timings=Timings())
    assert own.timed() is own
