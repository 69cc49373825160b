"""A model → what the explorer shows of it, built with everything recorded.

explored, model = explore_compiled("model.onnx", source, options)
profile = model.profile(x, roofline=roofline)
explorer_document(replace(explored, profile=profile, roofline=roofline))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.driver.compile_graph import compile_source, lower
from tilewright.driver.options import CompileOptions
from tilewright.driver.report.explorer.alternatives import with_estimates
from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.timings import Timings
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.roofline.roofline import Roofline
from tilewright.schedule.choice_log import recorded_choices


def explore(
    name: str, source: Any, options: CompileOptions, roofline: Roofline | None = None
) -> ExploredModel:
    """Build a model without running it; `roofline` is that of the machine it is for."""
    with recorded_choices() as choices:
        build = lower(source, _recording(options))
    estimated = with_estimates(build, choices)
    return ExploredModel(name, build, estimated, roofline, threads=options.threads or 0)


def explore_compiled(
    name: str, source: Any, options: CompileOptions
) -> tuple[ExploredModel, CompiledModel]:
    """The same with machine code, and the model ready to run, so that it can be measured."""
    with recorded_choices() as choices:
        artifact = compile_source(source, _recording(options))
    model = open_model(artifact.container(), threads=options.threads)
    estimated = with_estimates(artifact.build, choices)
    return ExploredModel(name, artifact.build, estimated, threads=model.threads), model


def _recording(options: CompileOptions) -> CompileOptions:
    """The options with a log that keeps the graph after each pass."""
    timings = Timings()
    timings.passes.graphs = []
    return replace(options, timings=timings)
