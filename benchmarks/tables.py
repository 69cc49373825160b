"""Figures as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table whose columns after the first `left` are set to the right."""
    marks = ["---" if i < left else "--:" for i in range(len(heads))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, marks, *rows])


def details(title: str, *parts: str) -> str:
    """Text that is folded away under a title."""
    return "\n\n".join([f"<details><summary>{title}</summary>", *parts, "</details>"])


def cell(value: float | None, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def milliseconds(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}" if value >= 1 else f"{value:.3g}"
