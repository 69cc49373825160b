"""Every kind of kernel for every generation of NVIDIA GPUs, through NVIDIA's assembler.

    python -m tests.kernels.generations [--only WORD] [--arch sm_75,sm_80] [--jobs 2] [--page FILE]

`make generations` writes `docs/results/gpu-generations.md`: registers and shared memory of every
kind (`gpu_kinds.py`) on every architecture (`tilewright/target/models/nvidia.py`), and what is
wrong, if anything: spills, stack frames that no schedule asked for, blocks that no SM can hold.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from tests.codegen.gpu.ptxas import assemble, ptxas_version
from tests.kernels.gpu_kinds import Kind, all_kinds
from tilewright.arith.expr import as_int
from tilewright.arith.expr import product as product_of
from tilewright.codegen.gpu.launches import Launch, launches
from tilewright.codegen.objects.compile import compile_object
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.ir.loop.nodes import Alloc
from tilewright.ir.loop.walk import statements_in
from tilewright.target.gpu import GpuTarget
from tilewright.target.registry import GPUS, resolve_gpu

# Arrays on the stack of a thread begin at multiples of this.
STACK_ALIGNMENT = 64


@dataclass(frozen=True)
class Launched:
    """A launch of a kind: what a thread and a block take. `arrays` are bytes of its own arrays."""

    name: str
    threads: int
    shared: int
    registers: int
    spilled: int
    stack: int
    arrays: int

    def problems(self, target: GpuTarget) -> Iterator[str]:
        """What keeps it from running, or from running well."""
        if self.spilled:
            yield f"spills {self.spilled} bytes"
        elif self.stack > self.arrays:
            yield f"has a stack frame of {self.stack} bytes"
        if self.shared > target.max_shared_per_block:
            yield f"needs {self.shared} bytes of shared memory"
        if self.threads > target.threads_per_block:
            yield f"has {self.threads} threads"
        if self.registers * self.threads > target.registers_per_sm:
            yield f"needs {self.registers} registers of {self.threads} threads"


def build(kind: Kind) -> onnx.ModelProto:
    """The model of a kind; inputs with a capital letter are weights."""
    imports = f'["" : {kind.opset}, "com.microsoft" : 1]'
    name = kind.name.replace(" ", "_")
    model = parser.parse_model(f"<ir_version: 10, opset_import: {imports}> {name} {kind.text}")
    rng = np.random.default_rng(len(kind.text))
    for value in [v for v in model.graph.input if v.name[0].isupper()]:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        whole = np.issubdtype(dtype, np.integer)
        data = rng.integers(1, 9, shape) if whole else rng.standard_normal(shape)
        model.graph.initializer.append(numpy_helper.from_array(data.astype(dtype), value.name))
        model.graph.input.remove(value)
    return model


def assembled(kind: Kind, arch: str) -> list[Launched]:
    """The launches of a kind on an architecture, assembled."""
    target = f"cuda -arch={arch}"
    options = make_options(target=target, precision=kind.precision, cache=False)
    found = []
    for kernel in lower(build(kind), options).distinct_kernels.values():
        ptx = compile_object(kernel.llvm, resolve_gpu(target)).decode()
        with tempfile.TemporaryDirectory() as folder:
            reports = assemble(ptx, Path(folder), arch)
        for launch in launches(kernel.finalized):
            report = reports[launch.name]
            shared = max(launch.shared, report.shared)
            about = launch.threads, shared, report.registers, report.spilled, report.stack
            found.append(Launched(launch.name, *about, _arrays(launch)))
    return found


def _arrays(launch: Launch) -> int:
    """The bytes of the arrays that a schedule leaves on the stack of a thread."""
    allocs = (s.buffer for s in statements_in(launch.body) if isinstance(s, Alloc))
    sizes = (
        (as_int(product_of(b.shape)) or 0) * b.dtype.bytes for b in allocs if b.scope == "local"
    )
    return sum(-(-size // STACK_ALIGNMENT) * STACK_ALIGNMENT for size in sizes)


def problems(kind: Kind, arch: str) -> list[str]:
    """What is wrong with the launches of a kind."""
    target = resolve_gpu(f"cuda -arch={arch}")
    return [
        f"{kind.name} on {arch}: {launch.name} {what}"
        for launch in assembled(kind, arch)
        for what in launch.problems(target)
    ]


HEAD = """# Generations of GPUs

<!-- Written by `make generations`; renew it instead of editing. -->

What every kind of kernel takes on every architecture that `target="cuda -arch=..."` names, by
ptxas {version}: registers of a thread and KiB of shared memory of a block, of the launch that takes
most registers. A bold cell says what is wrong: bytes that are spilled, or a block that does not
fit. The cards are those of `tilewright/target/models/nvidia.py`; only sm_90a was run on hardware.

{count} of {all} cells are as they should be.
"""


def page(cells: Mapping[tuple[str, str], str], version: str) -> str:
    """The cells, by kind and architecture, as a page."""
    kinds, archs = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    lines = [f"| kind | {' | '.join(archs)} |", f"| --- |{' --: |' * len(archs)}"]
    lines += [f"| {kind} | {' | '.join(cells[kind, a] for a in archs)} |" for kind in kinds]
    right = sum("**" not in text for text in cells.values())
    head = HEAD.format(version=version, count=right, all=len(cells))
    return "\n".join([head, *lines]) + "\n"


def cell(found: Sequence[Launched] | str, target: GpuTarget) -> str:
    """One cell: the launch with most registers, or what is wrong."""
    if isinstance(found, str):
        return f"**{found}**"
    wrong = [what for launch in found for what in launch.problems(target)]
    most = max(found, key=lambda x: x.registers, default=None)
    if most is None:
        return "no kernel"
    text = f"{most.registers}, {-(-most.shared // 1024)}"
    return f"**{text}: {wrong[0]}**" if wrong else text


def _result(job: tuple[Kind, str]) -> tuple[str, str, list[Launched] | str]:
    kind, arch = job
    try:
        return kind.name, arch, assembled(kind, arch)
    except Exception as error:  # told where the others are
        return kind.name, arch, f"{type(error).__name__}: {error}"[:200].replace("\n", " ")


def main() -> None:
    """Compile what is asked for, tell of each kind, write the page."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="kinds whose names have this in them")
    arguments.add_argument("--arch", default=",".join(GPUS))
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--page", type=Path)
    args = arguments.parse_args()
    kinds = [k for k in all_kinds() if args.only in k.name]
    cells: dict[tuple[str, str], str] = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        for name, arch, found in pool.map(_result, product(kinds, args.arch.split(","))):
            cells[name, arch] = cell(found, resolve_gpu(f"cuda -arch={arch}"))
            print(f"{name} | {arch} | {cells[name, arch]}", flush=True)
    if args.page:
        args.page.write_text(page(cells, ptxas_version()))


if __name__ == "__main__":
    main()
