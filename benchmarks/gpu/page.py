"""The page of all figures of a GPU, from what `all.py` has written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from results_file import revision

Figures = dict[str, Any]

HEAD = """# On a GPU

<!-- Written by benchmarks/gpu/all.py; run it on a machine with a GPU to renew. -->

On {machine}, {origin}.{others}

Times are milliseconds of one replay of a CUDA graph, medians between two events; operands of
kernels rotate through more memory than L2 has. A ratio is the best peer's time to ours: above one,
ours is faster.
"""
# What a ratio is to be at least, by table.
BARS = {"kernels": 1.0, "products": 0.95, "attention": 1.0, "models": 1.2}
PEERS = ("eager", "inductor", "jax")
# How far results of models may be from f64's, or else twice as far as Inductor's; and from those of
# ONNX Runtime in f32, which are not exact themselves.
ERRORS = {"f32": 1e-4, "fp16": 1e-2}
FILE_ERRORS = {"f32": 2e-3, "fp16": 2e-2}
# Columns of times: head, engine, figure.
TIMES = (
    ("ours", "ours", "ms"),
    ("eager", "eager", "call_ms"),
    ("eager, graph", "eager", "ms"),
    ("Inductor", "inductor", "call_ms"),
    ("Inductor, graph", "inductor", "ms"),
    ("JAX", "jax", "ms"),
)
MODELS = """Eager and Inductor are timed as calls and as a CUDA graph between events; JAX by
the host's clock, as one call among many in flight, which includes what launching costs. JAX is the
only other engine in {alone} of {all} rows: their ratio, in parentheses, compares two clocks and
counts in no mean. In fp16 a module's weights, inputs and results
are f16 for every engine; ours has its batch norms folded before they are rounded. Models that are
ONNX files, which torch has no module of, take and give f32, and ours rounds inside. DLRM's batch
counts 128 examples. Errors are the largest difference from f64, relative to the largest result; of
ONNX files from ONNX Runtime's results in f32, and in fp16 called wrong if they are more than twice
as large as ONNX Runtime's own when its weights alone are rounded. Weights are random but for those
files.
"""
KERNELS = """The share is that of the fastest copy of this run, {fastest:.2f} TB/s, by the bytes
that must move. Copies ran at {slowest:.2f} to {fastest:.2f} TB/s in the same run, so that the one
beside a kernel is no yardstick by itself.
"""
COMPILING = {
    "cold": """## Seconds to compile

With all processors to itself, and empty caches:
""",
    "models": "While others were compiled, each with one process, and empty caches at first:\n",
}


def page(figures: Figures) -> str:
    """The whole page."""
    parts = {name: part["figures"] for name, part in figures["parts"].items()}
    machine = figures.get("machine") or "a GPU"
    texts = [HEAD.format(machine=machine, origin=_origin(figures), others=_others(figures))]
    for make in (_kernels, _products, _attention, _models, _compiling, _shapes, _sanitized, _leaks):
        texts += make(parts)
    texts += _unfinished(figures["parts"])
    return "\n".join(texts)


def _origin(figures: Figures) -> str:
    return f"{figures['date']}, {revision(figures)}"


def _others(figures: Figures) -> str:
    """The parts that were measured on another day or at another commit, and when."""
    by_origin: dict[str, list[str]] = {}
    for name, part in figures["parts"].items():
        if _origin(part) != _origin(figures):
            by_origin.setdefault(_origin(part), []).append(name)
    found = (f"{', '.join(names)} ({origin})" for origin, names in by_origin.items())
    return f" Measured at other times: {'; '.join(found)}." if by_origin else ""


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
    yield "## Memory-bound kernels, and GEMM in f32\n"
    copies = [r["bytes"] / r["ms"]["copy"] / 1e9 for r in found.values()]
    yield KERNELS.format(slowest=min(copies), fastest=max(copies))
    names = ("tilewright", "eager", "inductor", "copy")
    heads = ("", "ours", "eager", "Inductor", "a copy of as much", "share", "ratio", "error")
    yield table(
        heads,
        (
            [
                n,
                *(number(r["ms"].get(k)) for k in names),
                *(number(x, ".2f") for x in (r["tb_s"] / max(copies), r["ratio"])),
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
        yield "## GEMM on tensor cores, beside cuBLAS\n"
        yield from _beside_torch(parts["products"], BARS["products"])


def _attention(parts: Figures) -> Iterator[str]:
    if parts.get("attention"):
        yield "## Attention, beside torch's scaled_dot_product_attention\n"
        yield from _beside_torch(parts["attention"], BARS["attention"])


def peers(row: Figures) -> list[str]:
    """The other engines that ran a model."""
    return [name for name in PEERS if "ms" in row.get(name, {})]


def best_ratio(row: Figures) -> float | None:
    """The fastest peer's time to ours."""
    others = [row[name]["ms"] for name in peers(row)]
    mine = row.get("ours", {}).get("ms")
    return min(others) / mine if others and mine else None


def _beside_jax_alone(row: Figures) -> bool:
    return peers(row) == ["jax"]


def _shown_ratio(row: Figures) -> str:
    """The ratio, in parentheses where it compares two clocks."""
    ratio = best_ratio(row)
    text = number(ratio, ".2f")
    return f"({text})" if ratio is not None and _beside_jax_alone(row) else text


def is_right(name: str, row: Figures) -> bool:
    """Whether the results are as near as their precision lets them be."""
    ours, inductor = (row.get(engine, {}) for engine in ("ours", "inductor"))
    other = inductor.get("error", ours.get("rounding", 0.0))
    bars = FILE_ERRORS if "absent" in row.get("eager", {}) else ERRORS
    return bool(ours.get("error", 0.0) <= max(bars[name.split()[-1]], 2 * other))


def _models(parts: Figures) -> Iterator[str]:
    rows = model_rows(parts)
    if not rows:
        return
    yield "## Models\n"
    yield MODELS.format(alone=sum(map(_beside_jax_alone, rows.values())), all=len(rows))
    yield table(
        ("", "batch", "precision", *(head for head, _, _ in TIMES), "ratio", "error", "Inductor's"),
        (
            [
                *name.split(),
                *(number(row.get(engine, {}).get(key)) for _, engine, key in TIMES),
                _shown_ratio(row),
                *(number(row.get(e, {}).get("error"), ".0e") for e in ("ours", "inductor")),
            ]
            for name, row in rows.items()
        ),
    )
    ratios = {name: best_ratio(row) for name, row in rows.items()}
    yield short_of(BARS["models"], {n: r for n, r in ratios.items() if r is not None})
    wrong = [name for name, row in rows.items() if not is_right(name, row)]
    yield f"Wrong: {', '.join(wrong) or 'none'}.\n"
    again = [name for name, row in rows.items() if row.get("ours", {}).get("again")]
    if again:
        yield f"Measured a second time, by themselves: {', '.join(again)}.\n"
    yield from _failures(rows)


def model_rows(parts: Figures) -> Figures:
    """The figures of all engines."""
    found, jax = parts.get("models", {}), parts.get("jax", {})
    return in_order({name: found.get(name, {}) | jax.get(name, {}) for name in {**found, **jax}})


def in_order(rows: Figures) -> Figures:
    """Rows by model, batch and precision."""

    def key(name: str) -> tuple[str, int, str]:
        model, batch, precision = name.split()
        return model, int(batch), precision

    return {name: rows[name] for name in sorted(rows, key=key)}


def _failures(rows: Figures) -> Iterator[str]:
    """What could not be measured, and why."""
    for name, row in rows.items():
        for engine, figures in row.items():
            if "failure" in figures:
                yield f"{name}, {engine}: {' '.join(figures['failure'].split())}\n"


def _compiling(parts: Figures) -> Iterator[str]:
    for part, text in COMPILING.items():
        found = model_rows(parts) if part == "models" else in_order(parts.get(part, {}))
        rows = {n: r for n, r in found.items() if "compile_s" in r.get("ours", {})}
        if not rows:
            continue
        yield text
        yield table(
            ("", "batch", "precision", "ours", "Inductor", "JAX"),
            (
                [
                    *name.split(),
                    *(number(row.get(e, {}).get("compile_s")) for e in ("ours", "inductor", "jax")),
                ]
                for name, row in rows.items()
            ),
        )


def _shapes(parts: Figures) -> Iterator[str]:
    counted: dict[str, tuple[int, int]] = {}
    for kind, row in parts.get("shapes", {}).items():
        counted[kind] = row["right"], row["right"] + len(row["wrong"])
    for part, word in (
        ("products", "GEMM, 16 bits"),
        ("integers", "GEMM, 8 bits"),
        ("attention", "attention, 16 bits"),
    ):
        found = parts.get(part, {}).get("shapes", {})
        if found:
            counted[word] = sum(r["right"] for r in found.values()), len(found)
    if counted:
        yield "## Random shapes\n"
        yield table(("kind", "right", "of"), ([n, str(a), str(b)] for n, (a, b) in counted.items()))


def _sanitized(parts: Figures) -> Iterator[str]:
    found = {tool: part for tool, part in parts.items() if "summary" in part}
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
