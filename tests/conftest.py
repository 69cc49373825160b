"""What all tests share: their own cache, hypothesis profiles, golden texts, machine markers."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from llvmlite import binding

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
# Folders whose tests verify the program after every pass and every primitive.
VERIFIED = ("autodiff", "passes", "schedule")

# A deadline would fail on a busy machine; in CI the same examples are tried every time.
hypothesis.settings.register_profile("dev", deadline=None, max_examples=50)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("ci" if "CI" in os.environ else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


def pytest_configure(config: pytest.Config) -> None:
    # Set before anything of the package is imported, and so also for processes that tests start.
    os.environ["TW_VERIFY"] = "1"
    if not hasattr(config, "workerinput"):  # the workers of xdist share the controller's cache
        os.environ["TW_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilewright-tests-")
    os.fsync = lambda handle: None  # no test asks what is left after a power failure
    gc.set_threshold(200_000, 20, 50)  # memory is no concern here, see driver/gc_tuning.py


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["TW_CACHE_DIR"], ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.skip("no NVIDIA GPU here")
    if item.get_closest_marker("ptxas") and shutil.which("ptxas") is None:
        pytest.skip("no ptxas here")
    for marker in item.iter_markers("isa"):
        missing = [name for name in marker.args if not _host_features().get(name)]
        if missing:
            pytest.skip(f"this processor has no {', '.join(missing)}")


@functools.cache
def _has_gpu() -> bool:
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


@functools.cache
def _host_features() -> dict[str, bool]:
    return dict(binding.get_host_cpu_features())


@pytest.fixture(scope="module", autouse=True)
def small_heap_for_gc() -> None:
    """Leave what earlier modules made out of garbage collections: code and memos, which stay.

    A process of the suite comes to hold millions of objects, and a collection of all took seconds.
    """
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def kept_memory() -> Iterator[None]:
    """Keep free memory and the pages of LLVM for the thousands of compilations that follow."""
    from tilewright.driver import compile  # reads the environment: not before it is set

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile, "release_memory", lambda: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def verification(request: pytest.FixtureRequest) -> Iterator[None]:
    """Verify after every pass and primitive where these are tested, elsewhere as users do."""
    from tilewright.core.config import override  # reads the environment: not before it is set

    with override(verify=2 if request.path.relative_to(TESTS).parts[0] in VERIFIED else 1):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`golden(text)` compares with `tests/golden/<test file>/<test name>.txt`.

    A test with several texts names them: `golden(text, "after-fusion")`.
    """
    update = request.config.getoption("--update-golden")
    folder = GOLDEN / request.path.relative_to(TESTS).with_suffix("")

    def compare(text: str, name: str | None = None) -> None:
        __tracebackhide__ = True
        stem = re.sub(r"[^\w.-]+", "-", name or request.node.name).strip("-")
        path = folder / f"{stem}.txt"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.rstrip("\n") + "\n")
        if not path.exists():
            pytest.fail(f"{path} is missing: make it with --update-golden and read it")
        # The assertion of whole texts lets pytest show their difference.
        expected = path.read_text().rstrip("\n")
        assert text.rstrip("\n") == expected, f"{path} differs; --update-golden if this is right"

    return compare
