"""Run the Python blocks of pages and put what they print into the `text` block after each.

    python docs/scripts/blocks.py README.md            # update the page
    python docs/scripts/blocks.py --check README.md    # say whether it is up to date

The blocks of a page share their names and run in order, in a folder that holds only `model.onnx`,
a small classifier. A block that is followed by no `text` block may print what it likes. Each page
has a process of its own, forked from one that has imported the compiler.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import sys
import tempfile
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:(?P<gap>\n)```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


def refreshed(page: str, file: str) -> str:
    """The page with every `text` block as the code before it prints it now."""
    names: dict[str, object] = {"__name__": "__main__"}

    def run(block: re.Match[str]) -> str:
        line = page.count("\n", 0, block.start("code"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Empty lines make the line numbers of a traceback those of the page.
            exec(compile("\n" * line + block["code"], file, "exec"), names)
        if block["printed"] is None:
            return block[0]
        text = "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").splitlines())
        return f"```python\n{block['code']}```\n\n```text\n{text}\n```\n"

    return _BLOCK.sub(run, page)


def refresh(path: Path, check: bool) -> None:
    """Update a page; with `check` end with an error if that would change it."""
    from tests.models import mlp, save

    page = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        save(mlp("N"), Path("model.onnx"))
        new = refreshed(page, str(path))
        os.chdir(ROOT)
    if not check:
        path.write_text(new)
    elif new != page:
        change = difflib.unified_diff(page.splitlines(), new.splitlines(), "page", "now", "", "", 1)
        sys.exit("\n".join([f"{path.name} is not up to date: run `make docs`", *change]))


def main() -> None:
    """Update or check the pages that are named on the command line."""
    pages = [Path(name).resolve() for name in sys.argv[1:] if name != "--check"]
    sys.path.insert(0, str(ROOT))
    for name in ("tests.models", "tilewright.driver.compile_graph"):
        import_module(name)
    failed = []
    for path in pages:
        process = get_context("fork").Process(target=refresh, args=(path, "--check" in sys.argv))
        process.start()
        process.join()
        failed += [str(path)] if process.exitcode else []
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
