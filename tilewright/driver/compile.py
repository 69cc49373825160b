"""`tw.compile`: a model in, an executable out."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.disk_cache import open_cache
from tilewright.core.errors import ConfigError, UnsupportedError
from tilewright.core.log import show_log
from tilewright.driver.cache_key import keep_parts, key_parts
from tilewright.driver.compile_in_subprocess import compile_in_subprocess
from tilewright.driver.options import CompileOptions, Progress, make_options, no_progress
from tilewright.driver.sources import read_source, source_name
from tilewright.driver.timings import Timings
from tilewright.driver.trim_memory import release_memory
from tilewright.runtime.container import Container, read_container
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel

if TYPE_CHECKING:
    from tilewright.driver.artifact.artifact import Artifact
    from tilewright.driver.segmented.model import BreakReason, SegmentedModel

_LOG = logging.getLogger(__name__)


def compile(
    source: Any,
    *,
    inputs: Any = None,
    target: str = "native",
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    disable_passes: Collection[str] = (),
    checks: str = "on",
    cache: bool = True,
    overrides: str | os.PathLike[str] | None = None,
    tuned: str | os.PathLike[str] | None = None,
    nearest_workload: bool = False,
    timings: Timings | None = None,
    progress: Progress = no_progress,
) -> CompiledModel | SegmentedModel:
    """Compile a model: a path, an `onnx.ModelProto`, a `torch.nn.Module` or a `Graph`.

    A module of torch is compiled for example `inputs`, a tuple or a mapping by name; a program of
    `torch.export`, which may have dynamic shapes, needs none.

    `dims` gives symbolic sizes a value. `precision="bf16"` allows matrix products and convolutions
    to round their operands to bf16 where that is faster; sums stay in f32. `precision="fp16"` lets
    a machine whose vectors compute in f16 do so from the first product on, only sums of more than a
    few terms in f32; values beyond 65504 become infinite. `precision="tf32"` lets products of f32
    on a GPU round their operands to 11 bits. `disable_passes` names graph passes that are not run
    (`tilewright list passes`): results stay right, most models get slower.

    An index that comes from data and lies outside its tensor, such as a token that an embedding
    does not have, is an error; with `checks="off"` the nearest element is taken instead.

    The result is kept on disk and used again for the same model, target and options, unless `cache`
    is false. A kernel whose file `<kernel>.loops` lies in the folder `overrides` (default:
    TW_OVERRIDE_DIR) is taken from there. `tuned` is a file of records, as `tilewright tune` makes
    it: kernels for which it has a faster schedule than the built-in one are scheduled by it; with
    `nearest_workload`, also those for which it has one of other sizes, faster there.

    A model in which something is known only when it runs is compiled in segments, while it runs.
    """
    show_log()
    options = make_options(
        target,
        precision,
        dims,
        disable_passes=disable_passes,
        checks=checks,
        threads=threads,
        cache=cache,
        overrides=overrides,
        tuned=tuned,
        nearest_workload=nearest_workload,
        timings=timings,
        progress=progress,
    )
    return compile_model(read_source(source, inputs), options)


def compile_model(source: Any, options: CompileOptions) -> CompiledModel | SegmentedModel:
    """Compile a model, whole if that is possible, and load it."""
    try:
        container = compile_container(source, options)
    except UnsupportedError as error:
        from tilewright.driver.segmented.model import BreakReason
        from tilewright.frontends.onnx.segments.data_dependent import DataDependent

        if not isinstance(error, DataDependent):
            raise
        return compile_segmented(source, options, BreakReason(error.message, error.loc.node))
    return open_model(container, threads=options.threads)


def compile_segmented(
    source: Any, options: CompileOptions, reason: BreakReason | None = None
) -> SegmentedModel:
    """A model that is compiled while it runs, for the inputs of the run.

    `reason` says why it is not compiled as a whole.
    """
    from tilewright.driver.segmented.model import SegmentedModel
    from tilewright.driver.segmented.segment_cache import SegmentCache
    from tilewright.frontends.onnx.segments.source import OnnxSegmentSource

    why = "" if reason is None else f": {reason}"
    _LOG.info("%s is compiled in segments%s", source_name(source), why)
    cache = SegmentCache(options, compile_container)
    return SegmentedModel(OnnxSegmentSource(source, options.dims), cache, reason)


def open_segmented(container: Container) -> SegmentedModel:
    """A segmented model from its file; what is not in it is compiled when it is first run."""
    from tilewright.driver.segmented.model import SegmentedModel

    return SegmentedModel.opened(container, compile_container)


def compile_container(source: Any, options: CompileOptions) -> Container:
    """Compile a model, for this machine or another, without loading it."""
    store = open_cache() if options.cache and options.overrides is None else None
    parts = None if store is None else key_parts(source, options, store)
    if store is None or parts is None:
        made = _compiled(source, options).container()
        release_memory()
        return made
    key = parts.key()

    unwritten: list[Artifact] = []

    def write(path: Path) -> None:
        if not compile_in_subprocess(source, options, path):
            unwritten.append(_compiled(source, options))
            unwritten[0].write(path)
            unwritten.clear()
        release_memory()

    found = store.get(key)
    _LOG.info("%s: cache %s, key %s", source_name(source), "hit" if found else "miss", key)
    try:
        container = read_container(found or store.get_or_put(key, write))
        if found is None:
            keep_parts(parts, store)
        return container
    except ConfigError as error:
        store.go_on_without(error)
        return (unwritten[0] if unwritten else _compiled(source, options)).container()


def _compiled(source: Any, options: CompileOptions) -> Artifact:
    name, start = source_name(source), time.perf_counter()
    _LOG.info("compiling %s for %s in %s", name, options.target_name, options.precision)
    # The stages are imported only here: what is in the cache is ready without them.
    from tilewright.driver.compile_graph import compile_source

    made = compile_source(source, options)
    seconds, kernels = time.perf_counter() - start, made.manifest["counters"]["kernels"]
    _LOG.info("compiled %s in %.2f s: %d kernels", name, seconds, kernels)
    return made
