"""The page in a browser, used as a person would; `make browser` installs one and runs this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, Browser
from tilewright.driver.report.explorer.document import ExploredModel, explorer_document
from tilewright.driver.report.explorer.page import explorer_page, model_texts

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make browser")
VIEWS = ("kernels", "graph", "passes", "fusion", "timeline", "memory")


@pytest.fixture(scope="module")
def page(measured: ExploredModel, tmp_path_factory: pytest.TempPathFactory) -> str:
    text = explorer_page(explorer_document(measured), model_texts(measured))
    path: Path = tmp_path_factory.mktemp("page") / "convnet.html"
    path.write_text(text)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found
        assert found.errors == []


def test_slowest_kernel_assembly_and_reason_in_two_clicks(browser: Browser, page: str) -> None:
    browser.open(page)
    times = "[...document.querySelectorAll('.table-row.kernel .time small')]"
    shares = browser.value(f"{times}.map((e) => parseFloat(e.textContent))")
    assert shares == sorted(shares, reverse=True)
    browser.click(".table-row.kernel")
    why = browser.wait("document.querySelector('#why')?.innerText")
    assert "register tiles" in why
    assert "Second best" in why
    browser.click(".stages button[data-stage=assembly]")
    assert browser.wait("document.querySelector('.code.assembly .keyword')?.textContent")


def test_lines_that_belong_together_light_up(browser: Browser, page: str) -> None:
    browser.open(f"{page}?lit#kernel/0")
    browser.wait("document.querySelector('.code.assembly .line')")
    number = browser.value(
        "[...document.querySelectorAll('[data-stage=finalized] .line')]"
        ".findIndex((e) => e.textContent.includes('+='))"
    )
    line = f"[data-stage=finalized] .line:nth-child({number + 1}) .text"
    lit = "[...document.querySelectorAll('[data-stage={}] .line.lit')].map((e) => e.innerText)"
    browser.move(line)
    browser.wait("document.querySelector('[data-stage=finalized] .line.lit')")
    browser.click(line)  # scrolls the others to what belongs to it
    browser.wait("document.querySelector('[data-stage=llvm] .line.lit')")
    browser.wait("document.querySelector('[data-stage=assembly] .line.lit')")
    assert len(browser.value(lit.format("finalized"))) == 1
    assert any("conv:" in line for line in browser.value(lit.format("tensor")))


def test_a_step_of_the_trace_shows_what_it_changed(browser: Browser, page: str) -> None:
    browser.open(f"{page}?step#kernel/0")
    browser.wait("document.querySelector('[data-stage=trace] .line')")
    browser.click("[data-stage=trace] .line:nth-child(5)")
    head = browser.value("document.querySelector('[data-stage=step] h4').innerText")
    assert head.startswith("Loops after step 5 of ")
    marked = "[...document.querySelectorAll('[data-stage=step] .line.marked')]"
    assert any("conv.i1_i2.2" in t for t in browser.value(f"{marked}.map((e) => e.innerText)"))


def test_search_and_keys(browser: Browser, page: str) -> None:
    browser.open(f"{page}?keys")
    browser.press("/")
    browser.type("max_pool")
    browser.wait("document.querySelectorAll('.table-row.kernel').length === 1")
    browser.press("Escape")
    browser.press("2")
    browser.wait("document.querySelectorAll('.unit.kernel').length > 3")
    browser.click(".unit.kernel")
    assert "transpose_conv_add_relu" in browser.wait(
        "document.querySelector('.detail a').innerText"
    )
    assert "Not fused: " in browser.value("document.querySelector('.refusal title').textContent")


def test_passes_mark_their_difference(browser: Browser, page: str) -> None:
    browser.open(f"{page}?passes#passes")
    browser.wait("document.querySelector('.unit.added, .unit.changed, .unit.removed')")
    fuse = "[...document.querySelectorAll('.pass-list a')].at(-1)"
    assert browser.value(f"{fuse}.innerText").startswith("fuse")
    browser.value(f"{fuse}.click()")
    browser.wait("document.querySelectorAll('.before-after .unit.kernel').length >= 6")


@pytest.mark.parametrize("width", [1400, 420])
def test_nothing_is_wider_than_the_window(browser: Browser, page: str, width: int) -> None:
    browser.resize(width, 860, dark=width < 600)
    for view in (*VIEWS, "kernel/0"):
        browser.open(f"{page}?{width}{view}#{view}")
        assert browser.value("document.documentElement.scrollWidth") <= width, view
        assert browser.value("document.querySelector('main').innerText.length") > 40
    browser.resize(1400, 900)
