"""The structure of the package in figures: files, folders, lines, circles of imports.

    python -m tests.structure [CHECKOUT ...]      # one row a checkout

Imports at the top of a file count, those under `if TYPE_CHECKING` too. An import inside a function
does not: it runs when both files are there.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(body: Sequence[ast.stmt], modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules that statements outside functions import."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (a.name for a in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            base = statement.module or ""
            for alias in statement.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in modules else base
        elif isinstance(statement, ast.If | ast.Try):
            yield from imported([*statement.body, *statement.orelse], modules)


def import_graph(root: Path) -> dict[str, set[str]]:
    """Which files of the package each file imports."""
    paths = (path.relative_to(root) for path in (root / "tilewright").rglob("*.py"))
    modules = {module_name(path): path for path in paths}
    graph = {}
    for name, path in modules.items():
        tree = ast.parse((root / path).read_text())
        graph[name] = {m for m in imported(tree.body, modules) if m in modules and m != name}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected components of more than one file (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(graph[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            start = stack.index(v)
            component = frozenset(stack[start:])
            del stack[start:]
            if len(component) > 1:
                found.append(component)

    for v in sorted(graph):
        if v not in index:
            visit(v)
    return found


def figures(root: Path) -> dict[str, str]:
    """What a reader meets: how much there is, the largest pieces, what is tied in circles."""
    files = {path.relative_to(root): path for path in (root / "tilewright").rglob("*.py")}
    lines = {name: len(path.read_text().splitlines()) for name, path in files.items()}
    folders = Counter(name.parent for name in files if name.name != "__init__.py")
    folder, crowd = folders.most_common(1)[0]
    longest = max(lines, key=lambda name: lines[name])
    found = cycles(import_graph(root))
    return {
        "lines": f"{sum(lines.values()):,}",
        "files": str(len(files)),
        "folders": str(len(folders)),
        "largest folder": f"{folder.as_posix()} ({crowd})",
        "largest file": f"{longest.as_posix()} ({lines[longest]})",
        "import cycles": str(len(found)),
        "files in cycles": str(sum(map(len, found))),
    }


def main() -> None:
    """Print a table of the checkouts that are named, or of this one."""
    roots = [Path(name) for name in sys.argv[1:]] or [ROOT]
    columns = [figures(root) for root in roots]
    for name in columns[0]:
        print("  ".join([f"{name:16}", *(f"{column[name]:44}" for column in columns)]).rstrip())


if __name__ == "__main__":
    main()
