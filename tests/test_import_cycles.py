"""No file imports itself in a circle, not even for annotations alone.

Imports at the top of a file count, those under `if TYPE_CHECKING` too. An import inside a function
does not: it runs when both files are there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Circles that are still to be dissolved, by their files. Take rows away; add none.
WAIVED: tuple[frozenset[str], ...] = (
    frozenset(
        f"tilewright.codegen.llvm.{name}"
        for name in (
            "complex",
            "conversions",
            "expressions",
            "integers",
            "loads_stores",
            "minifloats",
        )
    ),
    frozenset(
        f"tilewright.codegen.gpu.{name}"
        for name in (
            "flash_attention",
            "grid_sync",
            "nvptx",
            "pingpong_gemm",
            "stream_k_gemm",
            "warp_specialized",
        )
    ),
)


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


def test_components() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert cycles(graph) == [frozenset("bc")]


def test_no_import_cycles() -> None:
    found = cycles(import_graph(ROOT))
    new = [sorted(c) for c in found if not any(c <= waived for waived in WAIVED)]
    assert not new, "import what both need from a third file, or name a protocol"


def test_no_waiver_is_stale() -> None:
    left = frozenset[str]().union(*cycles(import_graph(ROOT)))
    stale = [sorted(waived - left) for waived in WAIVED if not waived <= left]
    assert not stale, "take these files out of WAIVED"
