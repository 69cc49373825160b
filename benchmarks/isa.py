"""Hold all engines to older instructions than the machine has: `--isa avx2`.

Tilewright compiles for the named target; the others heed variables of the environment, which their
processes inherit. Engines without such a switch, and bf16, which needs newer ones, are left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

# Says to the workers which limit they are under.
VARIABLE = "BENCHMARK_ISA"


@dataclass(frozen=True)
class Limit:
    """Tilewright's name of the target, and what tells the others."""

    target: str
    environment: dict[str, str]


LIMITS = {
    "avx2": Limit(
        "x86-64-v3",
        {
            "ONEDNN_MAX_CPU_ISA": "AVX2",  # OpenVINO and torch
            "DNNL_MAX_CPU_ISA": "AVX2",  # the same, by its older name
            "ATEN_CPU_CAPABILITY": "avx2",  # torch's own kernels and what it compiles
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        },
    ),
}
NOT_LIMITED = ("onnxruntime", "iree", "tvm-untuned", "tvm-tuned", "tilewright-bf16")


def limit_to(isa: str) -> None:
    """Have this process, and all that it starts, use no newer instructions."""
    os.environ.update({**LIMITS[isa].environment, VARIABLE: isa})


def limited_target() -> str:
    """The target that Tilewright is to compile for in this process."""
    isa = os.environ.get(VARIABLE)
    return LIMITS[isa].target if isa else "native"
