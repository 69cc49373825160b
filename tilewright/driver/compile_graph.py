"""A model → an artifact: passes, steps, kernels, buffers, host program, object code.

Importing this imports every stage, so a model that is in the cache already never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tilewright.codegen.objects.queue import ObjectQueue
from tilewright.core.errors import UnsupportedError
from tilewright.driver.artifact.artifact import Artifact
from tilewright.driver.artifact.entry_point import emit_entry
from tilewright.driver.artifact.manifest import make_manifest
from tilewright.driver.artifact.runtime_objects import support_objects
from tilewright.driver.gc_tuning import relaxed_gc
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.kernel.kernel_cache import KernelCache, OnNew
from tilewright.driver.kernel.make_kernel import make_kernel
from tilewright.driver.kernel.overrides import check_overrides
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import CompileOptions
from tilewright.driver.pipeline import passes_for
from tilewright.driver.program.buffer_assignment import BufferAssignment
from tilewright.driver.program.host_program import host_program
from tilewright.driver.program.linearize import linearize
from tilewright.driver.report.dump import dump_stages
from tilewright.driver.sources import import_graph, is_fused, source_name
from tilewright.driver.timings import Timings
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.canonicalize.name_outputs import name_outputs
from tilewright.passes.context import Pass, PassContext
from tilewright.passes.manager import run_passes

# So many nodes of a model before all passes surely make a kernel.
NODES_PER_KERNEL = 8


def compile_source(source: Any, options: CompileOptions) -> Artifact:
    """Compile a model: a graph, or what `import_graph` takes."""
    try:
        return _compile(source, options.timed())
    except RecursionError:
        message = f"{source_name(source)} has sizes or expressions that are nested too deeply"
        raise UnsupportedError("compile.nesting", message) from None


def _compile(source: Any, options: CompileOptions) -> Artifact:
    with ObjectQueue(options.target) as objects, relaxed_gc():  # LLVM runs in other processes
        graph = _imported(source, options)
        objects.expect(len(graph.nodes) // NODES_PER_KERNEL)
        graph = _optimized(graph, options)
        objects.expect(len(graph.nodes))
        build = lower_graph(graph, options, objects.add)
        with options.clock.measure("emit LLVM"):
            # The entry is long and runs once a call: optimizing it would take longer than it saves.
            for name, text in emit_entry(build).items():
                objects.add(name, text, optimized=False)
        dump_stages(build)
        options.progress("machine code")
        with options.clock.measure("LLVM"):
            runtime = support_objects(options.target)
            code = objects.finish() | runtime
    return Artifact(build, make_manifest(build), code)


def lower(source: Any, options: CompileOptions) -> ModelBuild:
    """Everything up to object code: the fused graph, its kernels, the memory plan, the calls."""
    options = options.timed()
    return lower_graph(optimized_graph(source, options), options)


def optimized_graph(source: Any, options: CompileOptions) -> Graph:
    """A model after all graph passes: its nodes are kernels."""
    options = options.timed()
    return _optimized(_imported(source, options), options)


def _imported(source: Any, options: CompileOptions) -> Graph:
    options.progress("graph")
    with options.clock.measure("import"):
        return import_graph(source, options.dims)


def _optimized(graph: Graph, options: CompileOptions) -> Graph:
    with options.clock.measure("graph passes"):
        names = graph.outputs
        context = PassContext(options.target, options.precision, options.clock.passes)
        passes = _in_time(passes_for(options.target, options.disable_passes), options.clock)
        graph = graph if is_fused(graph) else run_passes(graph, passes, context)
        return name_outputs(graph, names)


def _in_time(passes: Iterable[Pass], clock: Timings) -> Iterator[Pass]:
    """The passes, as long as there is time for one more."""
    for p in passes:
        clock.check_limit()
        yield p


def lower_graph(
    graph: Graph, options: CompileOptions, on_new: OnNew = lambda name, llvm: None
) -> ModelBuild:
    """A fused graph with a kernel for each step, a place for each value, and the host program.

    `on_new` is given each kernel's LLVM text as soon as there is one.
    """
    options = options.timed()
    options.progress("kernels")
    with options.clock.measure("linearize"):
        program = linearize(graph, backend_of(options.target).host_predicates)
    cache = KernelCache(on_new)
    kernels = [make_kernel(step, options, cache) for step in program.steps]
    check_overrides(options.overrides, cache.names)
    with options.clock.measure("assign buffers"):
        memory = BufferAssignment(graph, program, kernels, options.target)
        host = host_program(graph, program, kernels, memory)
    return ModelBuild(graph, options, program, kernels, memory, host)
