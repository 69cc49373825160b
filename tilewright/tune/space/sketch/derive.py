"""How a sketch is derived: a rule a block, from the last one back; then what is left open.

On a GPU, blocks that share loops (attention, recurrences) keep the built-in schedule, which asks
for its own decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks, loops_above
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target
from tilewright.tune.space.sketch.annotate import annotate
from tilewright.tune.space.sketch.gpu_annotate import annotate_on_gpu
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch
from tilewright.tune.space.sketch.tiling_structure import tiling_structure


def derive(
    func: Func,
    constants: frozenset[str],
    target: Target,
    rules: Sequence[SketchRule],
    decide: Decide,
) -> ScheduledFunc:
    """A function scheduled by rules; which of them, and all sizes, are decided by `decide`."""
    sketch = Sketch(Schedule(func, decide=decide), constants, target, tiling_structure(target))
    names = [b.name for b in reversed(sketch.graph.blocks)]
    on_gpu = isinstance(target, GpuTarget)
    if on_gpu and not all(_stands_alone(sketch, name) for name in names):
        return schedule_for(func, constants, target, decide)
    for name in names:
        if sketch.has(name):
            _apply_one(sketch, name, rules)
    (annotate_on_gpu if on_gpu else annotate)(sketch)
    return ScheduledFunc(sketch.sch.func, sketch.sch.trace, "sketch")


def _apply_one(sketch: Sketch, name: str, rules: Sequence[SketchRule]) -> None:
    """Choose a rule for a block; one that shares its loops with others stays inside them."""
    if not _stands_alone(sketch, name):
        sketch.pending[name] = "inside"
        return
    found = [rule for rule in rules if rule.applies(sketch, name)]
    if found[0].alone:
        found = found[:1]
    by_name = {rule.name: rule for rule in reversed(found)}
    names = tuple(dict.fromkeys(rule.name for rule in found))
    taken = sketch.sch.choose(f"{name}.rule", names[0], lambda: names)
    by_name[taken].apply(sketch, name)


def _stands_alone(sketch: Sketch, name: str) -> bool:
    """Whether a block has a nest of its own, a loop for each of its iterators."""
    around = loops_above(sketch.sch.func, name)
    alone = not around or len(list(blocks(around[0]))) == 1
    return alone and len(around) == len(sketch.block(name).iters)
