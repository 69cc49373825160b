"""Random tensor programs: elementwise stages, transposes, reductions, windows; some dims are 1."""

from __future__ import annotations

import random

from tilewright.arith.expr import Expr, Var, as_int, const, maximum
from tilewright.arith.walk import loads
from tilewright.core.dtypes import F32
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Program, Tensor


class RandomProgram:
    """Grows a program stage by stage over tensors of rank 1 to 4."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.b = Builder(f"random{seed}")
        self.sizes = [const(1), const(2), const(3), Var("N")]
        self.tensors = [self.b.input(f"in{i}", F32, self.shape()) for i in range(3)]

    def shape(self) -> tuple[Expr, ...]:
        return tuple(self.rng.choice(self.sizes) for _ in range(self.rng.randint(1, 4)))

    def build(self, outputs: int, stages: int = 6) -> Program:
        steps = (self.elementwise, self.elementwise, self.joined, self.transposed, self.reduced)
        for _ in range(stages):
            self.tensors.append(self.rng.choice((*steps, self.window))())
        chosen = self.rng.sample(self.tensors[3:], outputs)
        return _pruned(self.b.program(*chosen))

    def pick(self) -> Tensor:
        return self.rng.choice(self.tensors)

    def elementwise(self) -> Tensor:
        x = self.pick()
        return self.b.compute("e", x.shape, lambda *i: maximum(x.at(*i) * 2.0, -1.0))

    def joined(self) -> Tensor:
        """Two tensors, the second broadcast where its size is 1."""
        x = self.pick()
        fitting = [t for t in self.tensors if _broadcasts(t, x)]
        y = self.rng.choice(fitting)

        def body(*i: Expr) -> Expr:
            tail = i[len(i) - len(y.shape) :]
            at = [const(0) if d is const(1) else k for d, k in zip(y.shape, tail, strict=True)]
            return x.at(*i) + y.at(*at)

        return self.b.compute("j", x.shape, body)

    def transposed(self) -> Tensor:
        x = self.pick()
        order = list(range(len(x.shape)))
        self.rng.shuffle(order)
        inverse = [order.index(d) for d in range(len(order))]
        shape = tuple(x.shape[d] for d in order)
        return self.b.compute("t", shape, lambda *i: x.at(*(i[p] for p in inverse)))

    def reduced(self) -> Tensor:
        x = self.pick()
        axis = self.rng.randrange(len(x.shape))
        kept = (*x.shape[:axis], *x.shape[axis + 1 :])
        op = self.rng.choice(("sum", "max"))

        def body(*i: Expr) -> Expr:
            return self.b.reduce(
                op, (x.shape[axis],), lambda r: x.at(*i[:axis], r, *i[axis:]) * 0.5
            )

        return self.b.compute("r", kept or (const(1),), body if kept else lambda _: body())

    def window(self) -> Tensor:
        """Neighbours along the first dimension, nothing beyond its ends."""
        x = self.pick()

        def element(i: tuple[Expr, ...], k: Expr) -> Expr:
            at = i[0] + k - 1
            return x.at(at, *i[1:], when=(const(0) <= at) & (at < x.shape[0]))

        return self.b.compute("w", x.shape, lambda *i: self.b.sum((3,), lambda k: element(i, k)))


def _broadcasts(small: Tensor, large: Tensor) -> bool:
    if len(small.shape) > len(large.shape):
        return False
    tail = large.shape[len(large.shape) - len(small.shape) :]
    return all(s is d or as_int(s) == 1 for s, d in zip(small.shape, tail, strict=True))


def _pruned(program: Program) -> Program:
    """The program without the stages that nothing needs."""
    needed = set(program.outputs)
    for stage in reversed(program.stages):
        if stage.name in needed:
            needed |= {load.buffer for load in loads(stage.body)}
    stages = tuple(s for s in program.stages if s.name in needed)
    return Program(program.name, program.inputs, stages, program.outputs)


def random_program(seed: int, outputs: int = 2) -> Program:
    """A random program in which every stage is needed."""
    return RandomProgram(seed).build(outputs)
