"""Convergence curves of the benchmark as one self-contained HTML page with SVG drawings.

For each space: trials to the right (logarithmic), the time of the best so far over the optimum
upwards, the median as a line and the quartiles as a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import TypeAlias

from tilewright.tune.benchmark.compare_methods import LeaderboardRow
from tilewright.tune.benchmark.metrics import quartiles

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 380, 60, 40, 10
# What is worse than this is drawn at the edge.
CEILING = 4.0
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
Points: TypeAlias = list[tuple[float, float]]
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>tilewright lab</title>
<style>body {{ font: 14px sans-serif; margin: 2em; max-width: 60em }}
svg text {{ font: 12px sans-serif }} td, th {{ padding: 2px 10px; text-align: right }}
td:first-child, th:first-child {{ text-align: left }}</style></head>
<body><h1>tilewright lab</h1>
{body}
</body></html>
"""


def html_page(leaderboard: Sequence[LeaderboardRow]) -> str:
    """The page for all spaces."""
    spaces = dict.fromkeys(row.space for row in leaderboard)
    parts = [_section(s, [one for one in leaderboard if one.space == s]) for s in spaces]
    return PAGE.format(body="\n".join(parts))


def _section(space: str, leaderboard: Sequence[LeaderboardRow]) -> str:
    trials = trials_of(leaderboard)
    colours = {str(one.method): COLOURS[i % len(COLOURS)] for i, one in enumerate(leaderboard)}
    rows = "".join(_row(one, colours[str(one.method)]) for one in leaderboard)
    head = "<tr><th>method</th><th>t95</th><th>regret@64</th><th>wall, s</th></tr>"
    curves = "".join(_curve(one, colours[str(one.method)], trials) for one in leaderboard)
    return (
        f"<h2>{escape(space)}</h2>\n"
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img">'
        f"{''.join(_axes(trials))}{curves}</svg>\n<table>{head}{rows}</table>"
    )


def _row(row: LeaderboardRow, colour: str) -> str:
    cells = (
        f'<span style="color:{colour}">&#9632;</span> {escape(str(row.method))}',
        t95_text(row),
        f"{row.regret(64).median:.3f}",
        f"{row.wall:.2f}",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def t95_text(row: LeaderboardRow) -> str:
    """The median of t95 for people."""
    t95 = row.t95.median
    return f"{t95:.0f}" if math.isfinite(t95) else "never"


def _curve(row: LeaderboardRow, colour: str, trials: int) -> str:
    low, middle, high = band(row, trials)
    return (
        f'<polygon points="{_points(low + high[::-1])}" fill="{colour}" opacity="0.12"/>'
        f'<polyline points="{_points(middle)}" fill="none" stroke="{colour}" stroke-width="2">'
        f"<title>{escape(str(row.method))}</title></polyline>"
    )


def band(row: LeaderboardRow, trials: int) -> tuple[Points, Points, Points]:
    """The lower quartile, the median and the upper quartile of the runs, as points of a panel."""
    low, middle, high = [], [], []
    for trial in _places(trials):
        spread = quartiles(
            [run.best[min(trial, len(run.best)) - 1] / row.optimum for run in row.runs]
        )
        x = _x(trial, trials)
        low.append((x, _y(spread.low)))
        middle.append((x, _y(spread.median)))
        high.append((x, _y(spread.high)))
    return low, middle, high


def _places(trials: int) -> list[int]:
    """Trials that are worth a point: all at the start, then ever fewer."""
    steps = (round(1.04**power) for power in range(1 + int(math.log(trials, 1.04))))
    return sorted({*steps, trials})


def _axes(trials: int) -> Iterator[str]:
    for y, text in ratio_ticks():
        yield f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    for x, text in trial_ticks(trials):
        y = HEIGHT - BOTTOM + 16
        yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{text}</text>'
    yield f'<text x="{WIDTH // 2}" y="{HEIGHT - 6}" text-anchor="middle">trials</text>'


def ratio_ticks() -> list[tuple[float, str]]:
    """Where the lines of a panel are, and what they say."""
    return [(_y(ratio), f"{ratio:g}x") for ratio in (1.0, 1.05, 1.25, 1.5, 2.0, 3.0, CEILING)]


def trial_ticks(trials: int) -> list[tuple[float, str]]:
    """Where below a panel a number of trials is told."""
    powers = (2**power for power in range(int(math.log2(trials)) + 1))
    return [(_x(trial, trials), str(trial)) for trial in powers]


def trials_of(leaderboard: Sequence[LeaderboardRow]) -> int:
    """The most trials that any run had."""
    return max(len(run.best) for row in leaderboard for run in row.runs)


def _x(trial: int, trials: int) -> float:
    share = math.log(trial) / math.log(trials) if trials > 1 else 0.0
    return LEFT + share * (WIDTH - LEFT - 20)


def _y(ratio: float) -> float:
    share = math.log(min(max(ratio, 1.0), CEILING)) / math.log(CEILING)
    return TOP + (1 - share) * (HEIGHT - BOTTOM - TOP)


def _points(points: Points) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
