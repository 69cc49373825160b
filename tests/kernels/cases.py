"""The models whose kernels are kept as golden texts, and the machines they are compiled for.

A model is written in ONNX's own text, so that no renaming inside the compiler touches it. A graph
input with a capital letter is a weight: it becomes an initializer of seeded random values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from tests.kernels.models import GPU_MODELS, KERNELS, MODELS

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'

# Every model is compiled for these.
EVERYWHERE = (
    ("x86-64-v4", "f32"),
    ("x86-64-v3", "f32"),
    ("neoverse-n1", "f32"),
    ("cuda -arch=sm_90a", "f32"),
)
# Models with GEMMs, which lower precisions are about, also where matrix instructions differ.
NARROW = (
    ("neoverse-n1", "fp16"),
    ("neoverse-v1", "bf16"),
    ("sapphirerapids", "bf16"),
    ("sapphirerapids", "fp16"),
    ("cuda -arch=sm_90a", "fp16"),
    ("cuda -arch=sm_90a", "tf32"),
    ("cuda -arch=sm_80", "fp16"),
)
# Large models, whose only purpose is a choice that a GPU makes by size.
LARGE = (
    *(row for row in (*EVERYWHERE, *NARROW) if row[0].startswith("cuda")),
    ("cuda -arch=sm_90a", "bf16"),
)

# Generations of GPUs that take other tiles, or other instructions; `gpu_kinds.py` compiles all
# kinds of kernels for them.
GENERATIONS = tuple(
    (f"cuda -arch={arch}", "fp16") for arch in ("sm_75", "sm_86", "sm_89", "sm_100")
)
ON_GENERATIONS = ("gemm", "attention", "softmax")


@dataclass(frozen=True)
class Case:
    """One model, compiled for one machine in one precision."""

    model: str
    target: str
    precision: str

    @property
    def file(self) -> str:
        """The golden file, relative to the folder of all."""
        machine = self.target.rpartition("=")[2]
        return f"{self.model}/{machine}.{self.precision}.txt"


def all_cases() -> tuple[Case, ...]:
    """The whole table."""
    rows = {name: EVERYWHERE for name in KERNELS}
    rows |= {name: (*EVERYWHERE, *NARROW) for name in MODELS}
    rows |= {name: LARGE for name in GPU_MODELS}
    rows |= {name: (("cuda -arch=sm_90a", "f32"),) for name in GPU_MODELS if "_f16" in name}
    rows |= {name: (*rows[name], *GENERATIONS) for name in ON_GENERATIONS}
    return tuple(Case(name, *row) for name, machines in rows.items() for row in machines)


@cache
def build_model(name: str) -> onnx.ModelProto:
    """A model of the table, its weights filled in."""
    text = {**KERNELS, **MODELS, **GPU_MODELS}[name]
    model = parser.parse_model(f"{HEADER} {name} {text}")
    weights = [v for v in model.graph.input if v.name[0].isupper()]
    rng = np.random.default_rng(len(text))
    for value in weights:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        data = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(1, 9, shape)
        model.graph.initializer.append(numpy_helper.from_array(data.astype(dtype), value.name))
        model.graph.input.remove(value)
    return model
