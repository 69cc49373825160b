"""`tw.compile`: a model in, an executable out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.config import config
from tilewright.core.disk_cache import open_cache
from tilewright.core.errors import UnsupportedError
from tilewright.driver.cache_key import model_key
from tilewright.driver.precision import check_precision, machine_for
from tilewright.driver.sources import read_source
from tilewright.driver.trim_memory import release_memory
from tilewright.runtime.container import Container, read_container
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.open import open_model
from tilewright.target.registry import resolve_target

if TYPE_CHECKING:
    from tilewright.driver.compiler import Compiler, Timings
    from tilewright.driver.segmented.model import SegmentedModel
    from tilewright.ir.graph.nodes import Graph
    from tilewright.target.target import Target
    from tilewright.tune.tuned_schedules import Verdicts

Progress = Callable[[str], None]


def compile(
    source: Any,
    *,
    inputs: Any = None,
    target: str = "native",
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    cache: bool = True,
    overrides: Path | None = None,
    tuned: str | os.PathLike[str] | None = None,
    nearest: bool = False,
    timings: Timings | None = None,
    progress: Progress = lambda stage: None,
) -> CompiledModel | SegmentedModel:
    """Compile a model: a path, an `onnx.ModelProto`, a `torch.nn.Module` or a `Graph`.

    A module of torch is compiled for example `inputs`, a tuple or a mapping by name; a program of
    `torch.export`, which may have dynamic shapes, needs none.

    `dims` gives symbolic sizes a value. `precision="bf16"` allows matrix products and convolutions
    to round their operands to bf16 where that is faster; sums stay in f32. `precision="fp16"` lets
    a machine whose vectors compute in f16 do so from the first product on, only sums of more than a
    few terms in f32; values beyond 65504 become infinite. `precision="tf32"` lets products of f32
    on a GPU round their operands to 11 bits.

    The result is kept on disk and used again for the same model, target and options, unless `cache`
    is false. A kernel whose file `<kernel>.loops` lies in the folder `overrides` (default:
    TW_OVERRIDE_DIR) is taken from there. `tuned` is a file of records, as `tilewright tune` makes
    it: kernels for which it has a faster schedule than the built-in one are scheduled by it; with
    `nearest`, also those for which it has one of other sizes, faster there.

    A model in which something is known only when it runs is compiled in segments, while it runs.
    """
    source = read_source(source, inputs)
    options: dict[str, Any] = {
        "target": target,
        "precision": precision,
        "cache": cache,
        "overrides": overrides,
        "tuned": tuned,
        "nearest": nearest,
        "timings": timings,
        "progress": progress,
    }
    try:
        container = compile_container(source, dims=dims, **options)
    except UnsupportedError as error:
        from tilewright.frontends.onnx.segments.data_dependent import Waiting

        if not isinstance(error, Waiting):
            raise
        reason = (error.message, error.loc.node)
        return compile_segmented(source, threads=threads, dims=dims, break_reason=reason, **options)
    return open_model(container, threads=threads)


def compile_segmented(
    source: Any,
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    break_reason: tuple[str, str] | None = None,
    **options: Any,
) -> SegmentedModel:
    """A model that is compiled while it runs, for what it is given; `options` as of `compile`.

    `break_reason` says why it is not compiled as a whole: a message, and the node that it is about.
    """
    from tilewright.driver.segmented.model import BreakReason, SegmentedModel
    from tilewright.driver.segmented.segment_cache import SegmentCache

    def compile_graph(graph: Graph) -> Container:
        return compile_container(graph, **options)

    chosen = {key: options[key] for key in ("target", "precision") if key in options}
    library = SegmentCache(compile_graph, threads=threads, **chosen)
    reason = BreakReason(*break_reason) if break_reason else None
    return SegmentedModel(source, library, dims, reason)


def open_segmented(container: Container) -> SegmentedModel:
    """A model in segments from its file; what is not in it is compiled as it was meant to be."""
    from tilewright.driver.segmented.file import saved_model, saved_segments
    from tilewright.driver.segmented.model import BreakReason, SegmentedModel
    from tilewright.driver.segmented.segment_cache import SegmentCache

    about = container.manifest["segmented"]
    options = {"target": about["target"], "precision": about["precision"]}

    def compile_graph(graph: Graph) -> Container:
        return compile_container(graph, **options)

    library = SegmentCache(compile_graph, **options, saved=saved_segments(container))
    model = saved_model(container)
    reason = BreakReason(*about["break_reason"])
    return SegmentedModel(model, library, about["dims"], reason)


def compile_container(
    source: Any,
    *,
    target: str = "native",
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    cache: bool = True,
    overrides: Path | None = None,
    tuned: str | os.PathLike[str] | None = None,
    nearest: bool = False,
    timings: Timings | None = None,
    progress: Progress = lambda stage: None,
) -> Container:
    """Compile a model, for this machine or another, without loading it; see `compile`."""
    machine = machine_for(resolve_target(target), check_precision(precision))
    sizes = dict(dims or {})
    folder = overrides or config().override_dir
    verdicts = _verdicts(tuned, nearest, machine)

    def compiler() -> Compiler:
        # The stages are imported only here: what is in the cache is ready without them.
        from tilewright.driver.compiler import Compiler
        from tilewright.driver.tuning.apply_records import TunedSchedules

        schedule = None if verdicts is None else TunedSchedules(verdicts)
        return Compiler(source, machine, sizes, precision, folder, timings, progress, schedule)

    store = open_cache() if cache and folder is None else None
    identity = "" if verdicts is None else verdicts.identity
    key = None if store is None else model_key(source, machine, sizes, precision, store, identity)
    if store is None or key is None:
        made = compiler().container()
        release_memory()
        return made

    def write(path: Path) -> None:
        compiler().write(path)
        release_memory()

    return read_container(store.get_or_put(key, write))


def _verdicts(
    tuned: str | os.PathLike[str] | None, nearest: bool, target: Target
) -> Verdicts | None:
    """What the records that were named say, if any were."""
    if tuned is None:
        return None
    from tilewright.tune.tuned_schedules import read_verdicts

    return read_verdicts(Path(tuned), target, nearest)
