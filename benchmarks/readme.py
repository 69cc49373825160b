"""The speed tables of the READMEs, from the newest record of a processor and that of the GPU.

    python benchmarks/readme.py            # write them
    python benchmarks/readme.py --check    # say whether they are up to date

Both READMEs have the same figures; what stands around them is in `readme.toml`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(HERE / "gpu")]

from page import best_ratio as gpu_ratio  # noqa: E402
from page import model_rows  # noqa: E402
from report import (  # noqa: E402
    FEWEST_PEERS,
    LABELS,
    OURS,
    best_peer,
    best_ratio,
    by_model,
    counted,
    geometric_mean,
)
from tables import cell, markdown, milliseconds  # noqa: E402

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
# A few of all measured models: convolutions, transformers, a recurrence, recommendations.
SHOWN = (
    "resnet50",
    "mobilenet_v2",
    "efficientnet_b0",
    "vit_b16",
    "bert_base",
    "gpt2_decode",
    "lstm",
    "dlrm",
)
GPU_CASE = "{} 1 fp16"
GPU_LABELS = {"eager": "torch", "inductor": "torch.compile", "jax": "JAX"}
Report = Mapping[str, Any]


def line(model: str, cpu: Report, gpu: Report) -> list[str]:
    """The cells of one model."""
    engines = cpu[model]
    best = best_peer(engines)
    assert best is not None, f"no other engine ran {model}"
    row = gpu[GPU_CASE.format(model)]
    other = min((p for p in GPU_LABELS if "ms" in row.get(p, {})), key=lambda p: row[p]["ms"])
    return [
        model,
        milliseconds(engines[OURS]["min_ms"]),
        f"{milliseconds(engines[best]['min_ms'])} ({LABELS[best]})",
        cell(best_ratio(engines.values())[model], ".2f"),
        milliseconds(row["ours"]["ms"]),
        f"{milliseconds(row[other]['ms'])} ({GPU_LABELS[other]})",
        cell(gpu_ratio(row), ".2f"),
    ]


def gpu_counted(rows: Report) -> dict[str, float]:
    """The ratios of cases that enough other engines ran."""
    ratios = {name: gpu_ratio(row) for name, row in rows.items()}
    ran = {n: sum("ms" in row.get(p, {}) for p in GPU_LABELS) for n, row in rows.items()}
    return {n: r for n, r in ratios.items() if r is not None and ran[n] >= FEWEST_PEERS}


def measured(words: Mapping[str, Any], cpu_report: Report, gpu_report: Report) -> str:
    """What stands between the marks of a README."""
    cpu = {n: e for n, e in by_model(cpu_report["results"]).items() if "/" not in n}
    gpu = model_rows({name: part["figures"] for name, part in gpu_report["parts"].items()})
    on_cpu, on_gpu = counted(cpu), gpu_counted(gpu)
    slow = [f"{n} ({r:.2f})" for n, r in (on_cpu | on_gpu).items() if r < 1]
    about = words["about"].format(
        threads=cpu[SHOWN[0]][OURS]["threads"],
        cpu=cpu_report["machine"]["cpu"],
        cpu_date=cpu_report["date"],
        gpu=gpu_report["machine"].partition(",")[0],
        gpu_date=gpu_report["date"],
        cpu_mean=f"{geometric_mean(on_cpu.values()):.2f}",
        cpu_count=len(on_cpu),
        gpu_mean=f"{geometric_mean(on_gpu.values()):.2f}",
        gpu_count=len(on_gpu),
        fewest=FEWEST_PEERS,
        slower=", ".join(slow) or words["none"],
    )
    table = markdown(words["heads"], [line(model, cpu, gpu) for model in SHOWN])
    return f"{table}\n\n{about}"


def replaced(page: str, text: str) -> str:
    """The page with a text between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"the page has no {BEGIN} ... {END}")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def main() -> None:
    """Write or check both READMEs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    cpu = json.loads(max((HERE / "results").glob("20*.json")).read_text())
    gpu = json.loads((HERE / "results" / "gpu.json").read_text())
    words_of = tomllib.loads((HERE / "readme.toml").read_text())
    for name, words in words_of.items():
        old = (ROOT / name).read_text()
        new = replaced(old, measured(words, cpu, gpu))
        if args.check and new != old:
            sys.exit(f"{name} is not up to date: run `python benchmarks/readme.py`")
        (ROOT / name).write_text(new)


if __name__ == "__main__":
    main()
