from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.core.config import override
from tilewright.core.disk_cache import DiskCache
from tilewright.core.log import ROOT, show_log


@pytest.fixture(autouse=True)
def _quiet_afterwards() -> Iterator[None]:
    handlers, level = list(ROOT.handlers), ROOT.level
    yield
    ROOT.handlers[:], ROOT.level = handlers, level


def test_nothing_is_shown_unasked() -> None:
    with override(log=""):
        show_log()
    assert not ROOT.handlers


def test_the_switch_shows_the_log_once(capsys: pytest.CaptureFixture[str]) -> None:
    with override(log="info"):
        show_log()
        show_log()
    logging.getLogger("tilewright.driver").info("compiled")
    logging.getLogger("tilewright.driver").debug("a detail")
    shown = capsys.readouterr().err
    assert shown.count("tilewright.driver INFO: compiled") == 1
    assert "a detail" not in shown


def test_the_cache_logs_hits_and_misses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = DiskCache(tmp_path)
    with caplog.at_level(logging.DEBUG, logger="tilewright"):
        for _ in range(2):
            store.get_or_put("key1", lambda path: path.write_text("made"))
    assert [r.getMessage() for r in caplog.records] == ["miss: key1", "hit: key1"]
