"""Forward and backward graphs of what `torch.compile` is to differentiate.

AOTAutograd traces a function together with its gradient and parts the joint graph in two: what the
forward graph saves is chosen by a minimum cut over bytes, the rest is computed again. Both are
compiled with parameters as inputs, so that steps of an optimizer between calls change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.nn.parallel import DistributedDataParallel

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.decompositions import decompositions

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


def differentiated(
    module: GraphModule, inputs: Sequence[Any], *, inference: Compiler, training: Compiler
) -> Callable[..., Any]:
    """A graph of Dynamo's as a callable; `training` compiles its parts where gradients are asked.

    A graph without gradients that writes to its arguments keeps `copy_` to them at its end.
    """
    compiler: Callable[..., Callable[..., Any]] = aot_autograd(
        fw_compiler=training,
        bw_compiler=training,
        inference_compiler=inference,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    return compiler(module, inputs)


def refuse_distributed() -> None:
    """Raise where the graph is that of a module that shares its gradients with other processes.

    Its hooks share each gradient as soon as that is there; a backward graph gives all at once.
    """
    if DistributedDataParallel._active_ddp_module is not None:
        raise UnsupportedError(
            "torch.distributed",
            "a module within DistributedDataParallel",
            help="compile it for one process; Inductor compiles modules that many processes train",
        )
