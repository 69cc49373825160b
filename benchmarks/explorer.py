"""How quickly the explorer's pages open, and what a person has to click to find something.

    tilewright profile model.onnx --html model.html
    python -m benchmarks.explorer model.html ...

Each page is opened in a fresh headless Chromium. The person looks for the slowest kernel, its
assembly and the reason of its schedule, then goes through all views. Seconds are those until the
first view is there, and of the slowest change of view.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.browser import Browser

VIEWS = ("graph", "passes", "fusion", "timeline", "memory")
# What the first view says of the number of kernel calls.
CALLS = (
    "[...document.querySelectorAll('.facts div')]"
    ".find((e) => e.innerText.startsWith('kernel calls')).querySelector('dd').innerText"
)
COLUMNS = "{:24} {:>8} {:>8} {:>7} {:>12} {:>7}"


def find_slowest(browser: Browser) -> int:
    """Find the slowest kernel, the reason of its schedule and its assembly; the clicks it took."""
    browser.click(".table-row.kernel")  # the first row is the slowest
    assert browser.wait("document.querySelector('#why p b')?.innerText")
    browser.click(".stages button[data-stage=assembly]")
    assert browser.wait("document.querySelector('.code.assembly .keyword')?.textContent")
    return 2


def slowest_view(browser: Browser) -> float:
    """Seconds of the slowest change of view."""
    longest = 0.0
    for number, view in enumerate(VIEWS, start=2):
        start = time.perf_counter()
        browser.press(str(number))
        browser.wait(f"document.querySelector('main.view-{view} section')")
        longest = max(longest, time.perf_counter() - start)
    return longest


def main() -> None:
    """Print one row a page."""
    print(COLUMNS.format("page", "kernels", "MB", "open s", "find, clicks", "view s"))
    for path in map(Path, sys.argv[1:]):
        with Browser() as browser:
            start = time.perf_counter()
            browser.open(path.resolve().as_uri())
            opened = time.perf_counter() - start
            kernels = browser.value(CALLS)
            clicks = find_slowest(browser)
            view = slowest_view(browser)
            assert browser.errors == [], browser.errors
        size = path.stat().st_size / 1e6
        print(
            COLUMNS.format(
                path.stem, kernels, f"{size:.2f}", f"{opened:.2f}", clicks, f"{view:.2f}"
            )
        )


if __name__ == "__main__":
    main()
