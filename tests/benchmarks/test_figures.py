"""What documents show between marks is what the results files say, and every mark is known."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "gpu"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import figures

    return figures


def test_every_page_has_the_figures_of_its_results(figures: ModuleType) -> None:
    for path in figures.pages():
        page = path.read_text()
        assert page == figures.rendered(page), f"{path}: run benchmarks/figures.py"


def test_every_table_is_shown_once(figures: ModuleType) -> None:
    shown = [name for path in figures.pages() for name in figures.names(path.read_text())]
    assert sorted(shown) == sorted(figures.FIGURES)


def test_every_table_says_where_its_figures_come_from(figures: ModuleType) -> None:
    bare = [name for name, text in figures.FIGURES.items() if "commit" not in text()]
    assert not bare


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- figures: nothing -->1<!-- /figures -->", "no figures nothing; there are readme"),
        ("<!-- figures: readme -->\n", "without its counterpart"),
        ("1<!-- /figures -->", "without its counterpart"),
        ("<!-- figures -->1<!-- /figures -->", "without its counterpart, or without a name"),
    ],
)
def test_an_unknown_mark_is_an_error(page: str, message: str, figures: ModuleType) -> None:
    with pytest.raises(figures.UnknownFigures, match=message):
        figures.rendered(page)


def test_marks_as_blocks_and_within_a_line(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(figures.FIGURES, "mean", lambda: "1.5")
    within = "It is <!-- figures: mean -->{}<!-- /figures -->.\n"
    block = "<!-- figures: mean -->\n{}<!-- /figures -->\n"
    page = within.format("1.4") + block.format("")
    assert figures.rendered(page) == within.format("1.5") + block.format("1.5\n")


def test_a_page_that_is_behind_is_found_and_renewed(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- figures: recurrent -->\n| old |\n<!-- /figures -->\n")
    monkeypatch.setattr("sys.argv", ["figures.py", "--check"])
    with pytest.raises(SystemExit, match=r"page\.md is not up to date"):
        figures.main()
    monkeypatch.setattr("sys.argv", ["figures.py"])
    figures.main()
    assert "| geometric mean |" in page.read_text()
    monkeypatch.setattr("sys.argv", ["figures.py", "--check"])
    figures.main()
