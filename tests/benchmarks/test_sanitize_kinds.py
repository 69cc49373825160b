"""What compute-sanitizer watches has the kernels that it is there for."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.for_each import for_each
from tests.kernels.generations import build
from tilewright.driver.compile_graph import lower
from tilewright.ir.loop.text import print_func

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"

# Some kinds, the words of their loops, and those that they are without.
WORDS = {
    "whole f16": ("gpu.gemm mma_f16 cp_async_16", "wgmma tma_load"),
    "whole f32": ("gpu.gemm cp_async_16", "mma"),
    "edges f16": ("mma_f16 cp_async_16_padded", ""),
    "fours f16": ("cp_async_8_padded", ""),
    "odd f32": ("cp_async_4_padded", ""),
    "batched f16, 4 SMs": ("wgmma cp_async_16_padded", "tma_load"),
    "large deep bf16, 4 SMs": ("wgmma tma_load mbarrier_init", ""),
    "wide tf32, 4 SMs": ("wgmma_f32 tma_load", "roles"),
    "persistent bf16, 4 SMs": ("roles group( wgmma tma_load", "await"),
    "ping pong edges bf16, 4 SMs": ("roles group( wgmma_bf16_128_nn_issue", ""),
    "stream k edges bf16, 4 SMs": ("roles await signal", ""),
    "few rows f32": ("gpu.gemm allreduce", "mma"),
    "u8i8 large, 4 SMs": ("wgmma_u8i8", ""),
    "zero points": ("mma_i8", ""),
    "conv f16, 4 SMs": ("wgmma cp_async_16_padded", ""),
    "depthwise f32, 4 SMs": ("gpu.depthwise", ""),
    "attention 1 2 2 129 257 96 masked f16": ("gpu.attention wgmma cp_async", "roles"),
    "attention 2 2 2 200 333 32 f16": ("mma_f16 cp_async", "wgmma roles"),
    "attention 1 8 2 1 1000 128 f16": ("gpu.attention parts.o", "roles"),
    "attention 1 4 2 200 333 80 bf16, 4 SMs": ("roles tma_load _of_several", "parts.o"),
    "attention 1 4 4 300 300 256 causal bf16, 4 SMs": ("roles wgmma_bf16_256_rs", ""),
    "attention 1 4 4 256 256 40 causal f32, 4 SMs": ("gpu.thread_blocks at.work", "gpu.gemm"),
    "softmax wide f32": ("gpu.rowwise allreduce", ""),
    "sum of long columns f32": ("gpu.columns", ""),
    "cumsum long f16": ("gpu.thread_blocks allreduce", ""),
    "top 50 of many f32": ("gpu.thread_blocks", ""),
    "transpose odd f32": ("gpu.injective @shared", ""),
    "sort f32": ("gpu.opaque", ""),
    "softmax_columns": ("gpu.fallback", ""),
    "max_pool": ("gpu.thread_per_element", ""),
    "lstm one f32": ("gpu.recurrence grid_sync allreduce", "mma"),
    "lstm groups of rows f32": ("gpu.recurrence grid_sync allreduce", "mma"),
    "lstm batch fp16": ("gpu.recurrence grid_sync mma_f16", ""),
}


@pytest.fixture
def sanitize(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import sanitize

    return sanitize


@for_each("name", WORDS)
def test_a_kind_has_its_kernel(sanitize: ModuleType, name: str) -> None:
    (watched,) = (w for w in sanitize.all_watched() if w.name == name)
    options = sanitize.options_of(watched.kind.precision, watched.sms)
    kernels = lower(build(watched.kind), options).distinct_kernels.values()
    text = "\n".join(f"{k.rule}\n{print_func(k.finalized)}" for k in kernels)
    wanted, absent = (words.split() for words in WORDS[name])
    assert [word for word in wanted if word not in text] == []
    assert [word for word in absent if word in text] == []


def test_parts_have_every_kind_once(sanitize: ModuleType) -> None:
    everything = sanitize.all_work((1, 1), 1)
    names = [sanitize.name_of(w) for n in (1, 2, 3) for w in sanitize.all_work((n, 3), 1)]
    assert len(set(names)) == len(names)
    assert sorted(names) == sorted(map(sanitize.name_of, everything))
