from __future__ import annotations

import math
from xml.etree import ElementTree

from tilewright.tune.benchmark.compare_methods import LeaderboardRow, Run
from tilewright.tune.benchmark.plot_html import html_page
from tilewright.tune.method import SearchMethod


def _row(space: str, method: SearchMethod, best: tuple[float, ...]) -> LeaderboardRow:
    runs = tuple(Run(s, best, 0, 0.1) for s in range(3))
    return LeaderboardRow(space, method, 1.0, runs)


def test_one_curve_a_method_inside_of_the_picture() -> None:
    page = html_page(
        [
            _row("<a>", SearchMethod("random"), (math.inf, 9.0, 2.0, 1.0)),
            _row("<a>", SearchMethod("evolutionary", "ridge"), (1.5, 1.5, 1.02, 1.0)),
            _row("b", SearchMethod("random"), (1.0,)),
        ]
    )
    assert "<script" not in page
    assert "http" not in page  # nothing is fetched from anywhere
    tree = ElementTree.fromstring(
        page.removeprefix("<!DOCTYPE html>\n").replace('charset="utf-8">', 'charset="utf-8"/>')
    )
    pictures = list(tree.iter("svg"))
    assert [len(list(p.iter("polyline"))) for p in pictures] == [2, 1]
    assert [h.text for h in tree.iter("h2")] == ["<a>", "b"]
    for line in tree.iter("polyline"):
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert all(0 <= x <= 720 and 0 <= y <= 380 for x, y in points)
        assert points == sorted(points)  # to the right and, in a picture, downwards
    assert "never" not in page
