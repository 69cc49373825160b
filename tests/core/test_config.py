from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.for_each import for_each
from tilewright.core.config import (
    SWITCHES,
    Config,
    config,
    is_inherited,
    override,
    read_config,
)
from tilewright.core.errors import ConfigError


def test_every_switch_is_a_field_and_the_other_way_round() -> None:
    assert [switch.field for switch in SWITCHES] == [f.name for f in dataclasses.fields(Config)]
    assert all(switch.name.startswith("TW_") and switch.meaning for switch in SWITCHES)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert read_config({}) == Config(
        dump="",
        dump_dir=Path.cwd() / "tw-dump",
        print_after=(),
        verify=1,
        log="",
        time=False,
        override_dir=None,
        cache=True,
        cache_dir=Path("/home/someone/.cache/tilewright"),
        cache_limit_gb=20.0,
        memory_limit_gb=float("inf"),
        compile_limit_s=float("inf"),
        threads=None,
        spin_us=50,
        gpu_sync=False,
        trace_rules=False,
    )


@for_each(
    ("name", "text", "value"),
    [
        ("TW_DUMP", "passes", "passes"),
        ("TW_DUMP_DIR", "/d", Path("/d")),
        ("TW_PRINT_AFTER", "fuse, fold-constants,", ("fuse", "fold-constants")),
        ("TW_VERIFY", "0", 0),
        ("TW_VERIFY", "2", 2),
        ("TW_TIME", "1", True),
        ("TW_OVERRIDE_DIR", "/o", Path("/o")),
        ("TW_SPIN_US", "17", 17),
        ("TW_CACHE", "off", False),
        ("TW_CACHE_LIMIT_GB", "0.5", 0.5),
        ("TW_CACHE_LIMIT_GB", "inf", float("inf")),
        ("TW_THREADS", "8", 8),
        ("TW_TRACE_RULES", "1", True),
    ],
)
def test_reads(name: str, text: str, value: object) -> None:
    field = next(switch.field for switch in SWITCHES if switch.name == name)
    assert getattr(read_config({name: text}), field) == value


@for_each(
    ("name", "text"),
    [
        ("TW_DUMP", "everything"),
        ("TW_VERIFY", "3"),
        ("TW_VERIFY", "-1"),
        ("TW_VERIFY", "yes"),
        ("TW_TIME", "true"),
        ("TW_SPIN_US", "1.5"),
        ("TW_SPIN_US", "9" * 30),
        ("TW_CACHE", "1"),
        ("TW_CACHE_LIMIT_GB", "nan"),
        ("TW_CACHE_LIMIT_GB", "-1"),
        ("TW_THREADS", "0"),
        ("TW_TRACE_RULES", " "),
    ],
)
def test_bad_value_names_the_variable_and_what_it_takes(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({name: text})
    assert caught.value.code == "config.value"
    assert name in caught.value.message
    assert repr(text) in caught.value.message
    assert next(switch.type for switch in SWITCHES if switch.name == name) in caught.value.help


@for_each("name", [switch.name for switch in SWITCHES])
def test_empty_variable_counts_as_unset(name: str) -> None:
    assert read_config({name: ""}) == read_config({})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/x"}, "/x/tilewright"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/someone/.cache/tilewright"),
        ({"XDG_CACHE_HOME": "/x", "TW_CACHE_DIR": "~/mine"}, "/home/someone/mine"),
    ],
)
def test_cache_directory(
    environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert read_config(environ).cache_dir == Path(expected)


def test_no_home_is_an_error_about_the_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ConfigError, match="TW_CACHE_DIR"):
        read_config({})


def test_override_nests_and_ends() -> None:
    before = config()
    with override(verify=0, spin_us=5) as outer:
        assert config() is outer
        assert (outer.verify, outer.spin_us, outer.dump) == (0, 5, before.dump)
        with override(verify="2", print_after=["fuse"]):
            assert (config().verify, config().spin_us) == (2, 5)
            assert config().print_after == ("fuse",)
        assert config().verify == 0
    assert config() is before


def test_override_ends_when_the_block_fails() -> None:
    before = config()
    with pytest.raises(ZeroDivisionError), override(spin_us=1):
        raise ZeroDivisionError
    assert config() is before


@for_each("bad", [{"verify": 7}, {"verify": 1.5}, {"threads": 0}, {"dump": None}])
def test_override_checks_values(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"config\.value"), override(**bad):
        pass


def test_override_of_an_unknown_switch() -> None:
    with pytest.raises(ConfigError) as caught, override(verfy=1):
        pass
    assert caught.value.code == "config.unknown"
    assert "verify" in caught.value.help


def test_other_threads_do_not_see_an_override() -> None:
    seen = []
    with override(spin_us=99):
        thread = threading.Thread(target=lambda: seen.append(config().spin_us))
        thread.start()
        thread.join()
    assert seen == [config().spin_us]


def test_process_reads_its_environment_once() -> None:
    program = """
import os
from tilewright.core.config import config
first = config()
os.environ["TW_SPIN_US"] = "8"
print(first.spin_us, config() is first)
"""
    environ = {**os.environ, "TW_SPIN_US": "7"}
    out = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True)
    assert out.stdout.split() == [b"7", b"True"], out.stderr


def test_under_pytest_there_is_a_cache_of_its_own() -> None:
    assert config().verify == 1
    assert "tilewright-tests-" in config().cache_dir.name


def test_processes_do_not_see_what_is_overridden() -> None:
    with override(verify=read_config(os.environ).verify):
        assert is_inherited()
        with override(spin_us=7):
            assert not is_inherited()
        assert is_inherited()
