"""House rules: each module has its test, no file is too long or a drawer, names are unique."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]

MAX_LINES = 500
# Modules in one folder.
MAX_FILES = 30

# Modules tested together rather than one by one: a pattern of modules, and the test that covers
# them. A module needs no row here if it has its own `tests/<layer>/test_<module>.py`.
COVERED_BY: dict[str, str] = {
    "tilewright/cli/commands/lab/*.py": "tests/cli/commands/lab/test_main.py",
    "tilewright/compat/onnxruntime/capi/*.py": "tests/compat/onnxruntime/capi/test_modules.py",
    "tilewright/methods/*.py": "tests/methods/test_table.py",
    "tilewright/tune/cost/*.py": "tests/tune/cost/test_cost_models.py",
    "tilewright/tune/measure/cluster/transport.py": "tests/tune/measure/cluster/test_measurer.py",
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


def test_every_module_has_a_test() -> None:
    def is_tested(module: str) -> bool:
        covering = [test for pattern, test in COVERED_BY.items() if Path(module).match(pattern)]
        return any((ROOT / test).is_file() for test in (own_test(module), *covering))

    untested = {module: own_test(module) for module in MODULES if not is_tested(module)}
    assert not untested, "write these tests, or add rows to COVERED_BY"


def test_no_file_is_too_long() -> None:
    lengths = {path: len((ROOT / path).read_text().splitlines()) for path in (*SOURCES, *TESTS)}
    long = {path: n for path, n in lengths.items() if n > LONG_FILES.get(path, MAX_LINES)}
    assert not long, "split them"


def test_no_folder_is_crowded() -> None:
    folders = Counter(Path(path).parent.as_posix() for path in MODULES)
    crowded = {folder: n for folder, n in folders.items() if n > MAX_FILES}
    assert not crowded, "divide them"


def test_files_are_named_for_what_they_hold() -> None:
    vague = [path for path in (*SOURCES, *TESTS) if Path(path).name in FORBIDDEN_NAMES]
    assert not vague, "name each for its one concept"


def test_every_public_class_has_a_name_of_its_own() -> None:
    classes = (re.findall(r"^class ([A-Z]\w*)", (ROOT / f).read_text(), re.M) for f in SOURCES)
    counted = Counter(name for names in classes for name in names)
    assert not [name for name, count in counted.items() if count > 1]


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
    kept = {f for f in folders if f.parts[0] == "kernels"}  # by model, see tests/kernels
    tests = (ROOT / "tests" / f for f in folders - kept)
    orphans = [f for f in tests if not f.with_suffix(".py").is_file()]
    assert not orphans
