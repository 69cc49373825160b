from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.compare_methods import LeaderboardRow, Run
from tilewright.tune.benchmark.plot_html import COLOURS, WIDTH
from tilewright.tune.benchmark.plot_png import write_picture
from tilewright.tune.method import SearchMethod


def _leaderboard() -> list[LeaderboardRow]:
    runs = tuple(Run(s, (math.inf, 9.0, 2.0, 1.0), 0, 0.1) for s in range(3))
    one = (Run(0, (1.0,), 0, 0.1),)
    methods = (SearchMethod("random"), SearchMethod("evolutionary", "ridge"))
    panel = [LeaderboardRow("a", method, 1.0, runs) for method in methods]
    return [*panel, LeaderboardRow("b", methods[0], 1.0, one)]


def test_a_panel_a_space_with_a_colour_a_method(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    write_picture(tmp_path / "one.png", _leaderboard()[:2])
    write_picture(tmp_path / "two.png", _leaderboard())
    with image.open(tmp_path / "one.png") as one, image.open(tmp_path / "two.png") as two:
        assert one.width == two.width == WIDTH
        assert two.height > one.height
        found = {colour for _, colour in one.getcolors(1 << 20)}
    wanted = [tuple(bytes.fromhex(colour[1:])) for colour in COLOURS]
    assert found & {*wanted} == {*wanted[:2]}


def test_without_the_package_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ConfigError) as caught:
        write_picture(tmp_path / "one.png", _leaderboard())
    assert caught.value.code == "lab.missing-package"
