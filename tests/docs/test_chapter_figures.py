"""Measured figures of the design chapters stand in the record or result that the text links to."""

from __future__ import annotations

import re
from pathlib import Path

from tests.for_each import for_each

DESIGN = Path(__file__).parents[2] / "docs" / "design"
CHAPTERS = sorted(DESIGN.glob("[0-9]*.md"))
_FIGURE = re.compile(r"(\d+(?:\.\d+)?)(?= (?:ms|µs|GFLOP/s|TFLOP/s|TOP/s|MB)\b)")
_SOURCE = re.compile(r"\]\((\.\./(?:log|results)/[^)#]+)[^)]*\)")


def sentences_apart(text: str) -> list[str]:
    """Paragraphs and items of lists, each on one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=- )", text)]


def unsupported(text: str, folder: Path) -> list[str]:
    """The figures of a text that no page linked beside them has."""
    wrong = []
    for part in sentences_apart(text):
        sources = [(folder / link).read_text() for link in _SOURCE.findall(part)]
        for figure in _FIGURE.findall(part):
            if not any(re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", s) for s in sources):
                wrong.append(f"{figure} in: {part[:60]}")
    return wrong


def test_a_figure_without_a_source_is_found(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.md").write_text("It took 2.5 ms.")
    folder = tmp_path / "design"
    folder.mkdir()
    good = "It takes 2.5 ms ([record](../log/a.md))."
    assert unsupported(good, folder) == []
    assert len(unsupported("It takes 2.5 ms.", folder)) == 1
    assert len(unsupported("It takes 5 ms ([record](../log/a.md)).", folder)) == 1


@for_each("path", CHAPTERS, ids=lambda p: p.stem)
def test_measured_figures_have_a_source(path: Path) -> None:
    assert unsupported(path.read_text(), path.parent) == []
