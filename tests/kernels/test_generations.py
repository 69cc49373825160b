from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kernels.generations import Launched, build, cell, page, problems
from tests.kernels.gpu_kinds import HEADS, Kind, all_kinds
from tilewright.target.registry import GPUS, resolve_gpu

PAGE = Path(__file__).parents[2] / "docs" / "results" / "gpu-generations.md"
KINDS = {k.name: k for k in all_kinds()}
# In CI: a kind of each family, the generations in turn; `make slow` compiles the whole table.
IN_CI = (
    ("gemm_square f16", "sm_75"),
    ("gemm_odd f16", "sm_100"),
    ("gemm_i8i8", "sm_75"),
    ("gemm_skinny fp16", "sm_86"),
    ("gemm_split_k bf16", "sm_89"),
    ("conv3x3 fp16", "sm_75"),
    ("conv3x3 f32", "sm_90"),
    ("depthwise_7x7 f16", "sm_86"),
    ("attention causal d64 f16", "sm_75"),
    ("attention decode d160 f16", "sm_90a"),
    ("attention masked d192 bf16", "sm_100"),
    ("attention decode d256 f16", "sm_86"),
    ("softmax f16", "sm_75"),
    ("sort f32", "sm_75"),
    ("lstm_batch fp16", "sm_75"),
    ("cumsum_long bf16", "sm_80"),
    ("transformer_layer bf16", "sm_75"),
)
BATCHES = 16
HALVES = ("f16", "bf16")
# Bytes that are known to spill, by kind and architecture.
KNOWN = {
    # Packed arithmetic on two f32 needs pairs of registers, and the widest heads have none.
    **{(f"attention plain d256 {t}", "sm_100"): 8 for t in HALVES},
    **{(f"attention masked d256 {t}", "sm_100"): 64 for t in HALVES},
    # The assembler prefers more blocks on an SM, 96 to 168 registers of a thread.
    **{(f"attention causal d40 {t}", "sm_100"): 24 for t in HALVES},
    **{(f"attention plain d96 {t}", arch): 8 for t in HALVES for arch in ("sm_86", "sm_89")},
    **{(f"attention masked d136 {t}", "sm_80"): 32 for t in HALVES},
    ("conv_grouped_wide tf32", "sm_80"): 16,
    # What a thread holds leaves too few: a gelu of 128 accumulators, the masks of a stem's windows,
    # and copies through registers beside results of 256 columns.
    **{("gemm_epilogue tf32", arch): 16 for arch in ("sm_80", "sm_86", "sm_89")},
    **{("conv7x7_stem f32", arch): 140 for arch in ("sm_90", "sm_90a", "sm_100")},
    ("conv7x7_stem f32", "sm_80"): 96,
    ("attention decode d256 f16", "sm_75"): 96,
}


def test_every_generation_and_every_head_size_is_in_the_table() -> None:
    assert len(KINDS) == len(all_kinds())
    assert {arch for _, arch in IN_CI} == {*GPUS}
    assert {f"attention {w} d{d} bf16" for w in ("plain", "decode") for d in HEADS} <= {*KINDS}
    assert {k.precision for k in KINDS.values()} == {"f32", "tf32", "fp16", "bf16"}


@pytest.mark.ptxas
@pytest.mark.parametrize(("name", "arch"), IN_CI)
def test_kernels_assemble_without_spills(name: str, arch: str) -> None:
    assert problems(KINDS[name], arch) == []


@pytest.mark.slow
@pytest.mark.ptxas
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("arch", GPUS)
def test_the_whole_table_assembles_without_spills(arch: str, batch: int) -> None:
    found = {}
    for kind in list(KINDS.values())[batch::BATCHES]:
        wrong = problems(kind, arch)
        known = KNOWN.get((kind.name, arch))
        if wrong and not (len(wrong) == 1 and wrong[0].endswith(f"spills {known} bytes")):
            found[kind.name] = wrong
    assert found == {}


def test_what_is_known_to_spill_is_on_the_page() -> None:
    rows = PAGE.read_text().splitlines()
    archs = rows[next(n for n, row in enumerate(rows) if row.startswith("| kind"))].split(" | ")[1:]
    told = {}
    for row in rows:
        kind, *cells = row.strip("| ").split(" | ")
        for arch, text in zip(archs, cells, strict=False):
            found = re.search(r"spills (\d+) bytes", text)
            told |= {(kind, arch.strip(" |")): int(found[1])} if found else {}
    assert told == KNOWN


def test_weights_are_filled_in() -> None:
    model = build(
        Kind("two words", "(float[2, 3] x, float[3, 4] W) => (float[2, 4] y) { y = MatMul(x, W) }")
    )
    assert [i.name for i in model.graph.input] == ["x"]
    assert [list(w.dims) for w in model.graph.initializer] == [[3, 4]]


def test_what_is_wrong_with_a_launch() -> None:
    target = resolve_gpu("cuda -arch=sm_75")
    fine = Launched("mm", 128, 48 << 10, 200, 0, 64, 64)
    assert list(fine.problems(target)) == []
    wrong = Launched("mm", 1024, 65 << 10, 72, 8, 8, 0)
    assert list(wrong.problems(target)) == [
        "spills 8 bytes",
        "needs 66560 bytes of shared memory",
        "needs 72 registers of 1024 threads",
    ]
    framed = Launched("mm", 32, 0, 40, 0, 128, 64)
    assert list(framed.problems(target)) == ["has a stack frame of 128 bytes"]


def test_the_page() -> None:
    target = resolve_gpu("cuda -arch=sm_75")
    small, large = (Launched("mm", 128, n << 10, n, 0, 0, 0) for n in (16, 40))
    spilled = Launched("mm", 128, 0, 255, 8, 8, 0)
    assert cell([small, large], target) == "40, 40"
    assert cell([spilled], target) == "**255, 0: spills 8 bytes**"
    assert cell([], target) == "no kernel"
    assert cell("CodegenError: no", target) == "**CodegenError: no**"
    text = page({("gemm", "sm_75"): "40, 40", ("gemm", "sm_80"): "**no**"}, "13.0")
    assert "| kind | sm_75 | sm_80 |" in text
    assert "| gemm | 40, 40 | **no** |" in text
    assert "1 of 2 cells" in text
