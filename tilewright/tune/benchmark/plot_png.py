"""Convergence curves of the benchmark as a PNG; needs the package pillow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.compare_methods import LeaderboardRow
from tilewright.tune.benchmark.plot_html import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    WIDTH,
    band,
    ratio_ticks,
    t95_text,
    trial_ticks,
    trials_of,
)

# Above a panel: the name of its space, then a line a method.
LINE = 16


def write_picture(path: Path, leaderboard: Sequence[LeaderboardRow]) -> None:
    """Draw a panel a space, one below the other, as a PNG."""
    image, draw = _package("Image"), _package("ImageDraw")
    spaces = dict.fromkeys(row.space for row in leaderboard)
    panels = [[one for one in leaderboard if one.space == space] for space in spaces]
    heights = [LINE * (len(panel) + 2) + HEIGHT for panel in panels]
    canvas = image.new("RGB", (WIDTH, sum(heights)), "white")
    pen = draw.Draw(canvas, "RGBA")
    top = 0
    for panel, height in zip(panels, heights, strict=True):
        _panel(pen, panel, top)
        top += height
    canvas.save(path, "PNG")


def _panel(pen: Any, leaderboard: Sequence[LeaderboardRow], top: int) -> None:
    trials = trials_of(leaderboard)
    pen.text((8, top + 4), leaderboard[0].space, fill="black")
    base = top + LINE * (len(leaderboard) + 2)
    for y, text in ratio_ticks():
        pen.line([(LEFT, base + y), (WIDTH, base + y)], fill="#dddddd")
        pen.text((LEFT - 6, base + y), text, fill="black", anchor="rm")
    for x, text in trial_ticks(trials):
        pen.text((x, base + HEIGHT - BOTTOM + 12), text, fill="black", anchor="mm")
    pen.text((WIDTH / 2, base + HEIGHT - 10), "trials", fill="black", anchor="mm")
    for number, one in enumerate(leaderboard):
        colour = COLOURS[number % len(COLOURS)]
        line = top + LINE * (number + 1) + 6
        pen.rectangle([(LEFT, line + 2), (LEFT + 10, line + 12)], fill=colour)
        pen.text((LEFT + 16, line), f"{one.method}: t95 {t95_text(one)}", fill="black")
        low, middle, high = ([(x, base + y) for x, y in part] for part in band(one, trials))
        if len(middle) > 1:
            pen.polygon(low + high[::-1], fill=f"{colour}1e")
            pen.line(middle, fill=colour, width=2)


def _package(module: str) -> Any:
    try:
        return import_module(f"PIL.{module}")
    except ImportError as error:
        raise ConfigError(
            "lab.missing-package",
            f"a picture of the curves cannot be drawn: {error}",
            help="pip install 'tilewright[images]', or write a page with --html",
        ) from error
