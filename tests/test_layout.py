"""House rules on files: each module has its test, no file is too long, no file is a drawer."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAX_LINES = 500

# Modules tested together rather than one by one: a pattern of modules, and the test that covers
# them. A module needs no row here if it has its own `tests/<layer>/test_<module>.py`.
COVERED_BY: dict[str, str] = {
    "tilewright/cli/lab_*.py": "tests/cli/test_lab.py",
    "tilewright/cli/standings.py": "tests/cli/test_lab.py",
    "tilewright/compat/onnxruntime/capi/*.py": "tests/compat/onnxruntime/capi/test_modules.py",
    "tilewright/methods/*.py": "tests/methods/test_table.py",
    "tilewright/tune/cost/*.py": "tests/tune/cost/test_cost_models.py",
    "tilewright/tune/measure/cluster/links.py": "tests/tune/measure/cluster/test_measurer.py",
    "tilewright/tune/space/sketch/*.py": "tests/tune/space/sketch/test_rules.py",
    "tilewright/tune/strategy/*.py": "tests/tune/strategy/test_strategies.py",
    "tilewright/tune/task_scheduler/*.py": "tests/tune/task_scheduler/test_task_schedulers.py",
}

# Files that may be longer than the limit, and how long.
LONG_FILES: dict[str, int] = {}

FORBIDDEN_NAMES = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py", "common.py"}


def _python_files(folder: str) -> list[str]:
    files = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))
    return sorted(path.as_posix() for path in files)


SOURCES = _python_files("tilewright")
MODULES = [path for path in SOURCES if not path.endswith("/__init__.py")]
TESTS = _python_files("tests")


def own_test(module: str) -> str:
    """`tilewright/ir/graph/printer.py` is tested by `tests/ir/graph/test_printer.py`."""
    inner = Path(module).relative_to("tilewright")
    return (Path("tests") / inner.parent / f"test_{inner.name.lstrip('_')}").as_posix()


@pytest.mark.parametrize("module", MODULES)
def test_module_has_a_test(module: str) -> None:
    covering = [test for pattern, test in COVERED_BY.items() if Path(module).match(pattern)]
    candidates = [own_test(module), *covering]
    assert any((ROOT / test).is_file() for test in candidates), (
        f"{module} has no test: write {candidates[0]}, or add a row to COVERED_BY"
    )


@pytest.mark.parametrize("path", [*SOURCES, *TESTS])
def test_file_is_not_too_long(path: str) -> None:
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= LONG_FILES.get(path, MAX_LINES), f"{path} has {lines} lines: split it"


@pytest.mark.parametrize("path", [*SOURCES, *TESTS])
def test_file_is_named_for_what_it_holds(path: str) -> None:
    assert Path(path).name not in FORBIDDEN_NAMES, f"{path}: name it for its one concept"


def test_every_package_has_an_init() -> None:
    folders = {Path(path).parent for path in SOURCES}
    assert not [f.as_posix() for f in sorted(folders) if not (ROOT / f / "__init__.py").is_file()]


def test_tables_have_no_stale_rows() -> None:
    unused = [row for row in COVERED_BY if not any(Path(m).match(row) for m in MODULES)]
    missing = [test for test in COVERED_BY.values() if not (ROOT / test).is_file()]
    needless = [path for path in LONG_FILES if path not in {*SOURCES, *TESTS}]
    assert not unused + missing + needless


def test_every_golden_text_has_its_test_file() -> None:
    golden = ROOT / "tests" / "golden"
    folders = {text.parent.relative_to(golden) for text in golden.rglob("*.txt")}
    orphans = [f for f in folders if not (ROOT / "tests" / f).with_suffix(".py").is_file()]
    assert not orphans
