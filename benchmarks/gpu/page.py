"""The page of all figures of a GPU, from what `all.py` has written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Figures = dict[str, Any]

HEAD = """# On a GPU

<!-- Written by benchmarks/gpu/all.py; run it on a machine with a GPU to renew. -->

On {machine}, {date}. Times are milliseconds of one replay of a captured graph, medians between two
events; operands of kernels rotate through more memory than the L2 has. A ratio is the best peer's
time to ours: above one, ours is faster.
"""
# What a ratio is to be at least, by table.
BARS = {"kernels": 1.0, "products": 0.95, "attention": 1.0, "models": 1.2}
PEERS = {"eager": "eager", "inductor": "Inductor", "jax": "JAX"}


def page(figures: Figures) -> str:
    """The whole page."""
    parts = {name: part["figures"] for name, part in figures["parts"].items()}
    texts = [HEAD.format(machine=figures.get("machine") or "a GPU", date=figures.get("date", ""))]
    for make in (_kernels, _products, _attention, _models, _compiling, _shapes, _sanitized, _leaks):
        texts += make(parts)
    texts += _unfinished(figures["parts"])
    return "\n".join(texts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; all columns but the first are numbers."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: Any, form: str = ".4g") -> str:
    """A figure, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def short_of(bar: float, ratios: dict[str, float]) -> str:
    """A line that names what is slower than it should be."""
    slow = ", ".join(f"{name} ({ratio:.2f})" for name, ratio in ratios.items() if ratio < bar)
    return f"\nBelow {bar}: {slow or 'none'}.\n"


def _kernels(parts: Figures) -> Iterator[str]:
    found = {n: r for n, r in parts.get("rows", {}).items() if "ms" in r}
    if not found:
        return
    yield "## Kernels bound by memory, and products in f32\n"
    names = ("tilewright", "eager", "inductor", "copy")
    heads = ("", "ours", "eager", "Inductor", "a copy of as much", "share of it", "ratio", "error")
    yield table(
        heads,
        (
            [
                n,
                *(number(r["ms"].get(k)) for k in names),
                *(number(r[k], ".2f") for k in ("of_copy", "ratio")),
                number(r["error"], ".0e"),
            ]
            for n, r in found.items()
        ),
    )
    yield short_of(BARS["kernels"], {n: r["ratio"] for n, r in found.items()})


def _beside_torch(found: Figures, bar: float) -> Iterator[str]:
    rows = {n: r for n, r in found.get("rows", {}).items() if "ratio" in r}
    yield table(
        ("", "ours", "torch", "TFLOP/s", "ratio", "alone", "torch alone", "error"),
        (
            [
                name,
                *(number(r[k]) for k in ("ours_rotated", "torch_rotated")),
                number(r["tflops"], ".0f"),
                number(r["ratio"], ".2f"),
                *(number(r[k]) for k in ("ours_single", "torch_single")),
                number(r["difference"], ".0e"),
            ]
            for name, r in rows.items()
        ),
    )
    yield short_of(bar, {name: r["ratio"] for name, r in rows.items()})


def _products(parts: Figures) -> Iterator[str]:
    if parts.get("products"):
        yield "## Products on tensor cores, beside cuBLAS\n"
        yield from _beside_torch(parts["products"], BARS["products"])


def _attention(parts: Figures) -> Iterator[str]:
    if parts.get("attention"):
        yield "## Attention, beside torch's scaled_dot_product_attention\n"
        yield from _beside_torch(parts["attention"], BARS["attention"])


def _model_rows(parts: Figures) -> list[Figures]:
    return [row for name in ("models1", "models32") for row in parts.get(name, [])]


def best_ratio(row: Figures) -> float | None:
    """The fastest peer's time to ours."""
    others = [row[p]["ms"] for p in PEERS if "ms" in row.get(p, {})]
    mine = row["ours"].get("ms")
    return min(others) / mine if others and mine else None


def _models(parts: Figures) -> Iterator[str]:
    rows = _model_rows(parts)
    if not rows:
        return
    yield "## Models\n"
    yield (
        "Eager and Inductor are captured as a graph too; beside it, Inductor's calls without one. "
        "JAX's time is that of one call among many under way. DLRM's batch counts 128 examples.\n"
    )
    heads = ("", "batch", "precision", "ours", "eager", "Inductor", "Inductor, calls", "JAX")
    yield table(
        (*heads, "ratio", "error"),
        (
            [
                row["model"],
                str(row["batch"]),
                row["precision"],
                number(row["ours"].get("ms")),
                *(number(row.get(p, {}).get("ms")) for p in ("eager", "inductor")),
                number(row.get("inductor", {}).get("call_ms")),
                number(row.get("jax", {}).get("ms")),
                number(best_ratio(row), ".2f"),
                number(row["ours"].get("error"), ".0e"),
            ]
            for row in rows
        ),
    )
    ratios = {f"{r['model']} {r['batch']} {r['precision']}": best_ratio(r) for r in rows}
    yield short_of(BARS["models"], {n: r for n, r in ratios.items() if r is not None})


def _compiling(parts: Figures) -> Iterator[str]:
    rows = [r for r in parts.get("models1", []) if "compile_s" in r["ours"]]
    if not rows:
        return
    yield "## Seconds to compile\n"
    yield (
        "Peers from empty caches, where they had the processors to themselves; ours while eleven "
        "other models were compiled.\n"
    )
    # Others find in their caches what was compiled beforehand.
    cold = ("resnet50", "bert_base")
    yield table(
        ("", "precision", "ours", "Inductor", "JAX"),
        (
            [
                r["model"],
                r["precision"],
                number(r["ours"]["compile_s"]),
                *(
                    number(r.get(p, {}).get("first_s") if r["model"] in cold else None)
                    for p in ("inductor", "jax")
                ),
            ]
            for r in rows
        ),
    )


def _shapes(parts: Figures) -> Iterator[str]:
    counted: dict[str, tuple[int, int]] = {}
    for part, word in (("shapes", "f32"), ("shapes16", "fp16")):
        for kind, row in parts.get(part, {}).items():
            counted[f"{kind}, {word}"] = row["right"], row["right"] + len(row["wrong"])
    for part in ("products", "attention"):
        found = parts.get(part, {}).get("shapes", {})
        if found:
            counted[f"{part}, 16 bits"] = sum(r["right"] for r in found.values()), len(found)
    if counted:
        yield "## Random shapes\n"
        yield table(("kind", "right", "of"), ([n, str(a), str(b)] for n, (a, b) in counted.items()))


def _sanitized(parts: Figures) -> Iterator[str]:
    found = {tool: parts[tool] for tool in ("memcheck", "racecheck") if parts.get(tool)}
    if found:
        yield "## compute-sanitizer\n"
        yield table(
            ("tool", "kernels", "failed", "its summary"),
            ([t, str(r["kernels"]), str(r["failed"]), r["summary"]] for t, r in found.items()),
        )


def _leaks(parts: Figures) -> Iterator[str]:
    found = {n: r for n, r in parts.get("leaks", {}).items() if "times" in r}
    if found:
        yield "## Memory\n"
        yield "Bytes by which memory in use grows over the last nine tenths of so many runs.\n"
        yield table(
            ("", "times", "GPU", "process"),
            ([n, *(str(r[k]) for k in ("times", "gpu", "host"))] for n, r in found.items()),
        )


def _unfinished(parts: Figures) -> Iterator[str]:
    left = [f"{name}: {part['ended']}" for name, part in parts.items() if part["ended"] != "done"]
    if left:
        yield f"Parts that did not end by themselves: {'; '.join(left)}.\n"
