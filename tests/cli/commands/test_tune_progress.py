from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.driver.tuning.fakes import database, session, use_fakes
from tilewright.cli.commands.tune_progress import View, watching
from tilewright.tune.records import Records


def test_a_terminal_sees_every_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=160)
    with Records(database(tmp_path)) as records, watching(console) as show:
        session(records, show, trials=12).run()
    text = screen.getvalue()
    for words in ("finding the kernels", "matmul_add_relu", "searching", "comparing", "left"):
        assert words in text


def test_elsewhere_nothing_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    file = StringIO()
    with Records(database(tmp_path)) as records, watching(Console(file=file)) as show:
        session(records, show, trials=4).run()
    assert file.getvalue() == ""


def test_the_line_tells_what_was_gained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    view, lines = View(), []
    with Records(database(tmp_path)) as records:
        session(records, lambda s: lines.append(view.line(s)), trials=12).run()
    assert "12 measurements" in lines[-1]
    assert any(" to " in line and "gained a second" in line for line in lines)
