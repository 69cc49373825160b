from __future__ import annotations

from tests.models import mlp, transformer
from tilewright.driver.compile_graph import lower, lower_graph, optimized_graph
from tilewright.driver.kernel.kernel_cache import MAX_CHARACTERS, KernelCache
from tilewright.driver.options import make_options


def test_equal_groups_share_a_kernel() -> None:
    build = lower(transformer("N", "S"), make_options("x86-64-v3"))
    assert len(build.distinct_kernels) < len(build.steps)


def test_every_distinct_kernel_is_told_once() -> None:
    options, told = make_options("x86-64-v3"), dict[str, str]()

    def on_new(name: str, llvm: str) -> None:
        assert name not in told
        told[name] = llvm

    build = lower_graph(optimized_graph(mlp("N"), options), options, on_new)
    assert told == {name: kernel.llvm for name, kernel in build.distinct_kernels.items()}


def test_names_are_distinct_and_short() -> None:
    cache = KernelCache()
    names = [cache.new_name(title) for title in ("relu", "relu", "relu.2", "relu", "x" * 100)]
    assert names == ["relu", "relu.2", "relu.2.2", "relu.3", "x" * MAX_CHARACTERS]
