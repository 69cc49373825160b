"""Graph compilers and runtimes of frameworks, and their intermediate representations."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import CONCATENATIONS, FUZZING, SPEED

_XLA_FAMILY = (
    PublishedMethod(
        "XLA",
        "2017, Google",
        "Compile the whole graph: decompose into small operators, fuse, assign layouts, assign "
        "buffers by liveness, run in a fixed order, and cache the result.",
        files=(
            "tilewright/driver/pipeline.py",
            "tilewright/passes/fuse.py",
            "tilewright/passes/layout/choose_layouts.py",
            "tilewright/passes/memory/plan_memory.py",
            "tilewright/driver/cache_key.py",
        ),
        missing="fusions with several outputs; horizontal fusion of elementwise kernels",
        command="make bench",
        result=MethodResult("resnet50 91.3 ms, by XLA through JAX 227 ms", SPEED),
    ),
    PublishedMethod(
        "HLO",
        "2017, Google",
        "One short list of orthogonal operators with nested computations, used from the front end "
        "down to code generation.",
        files=("tilewright/ops/op.py", "tilewright/ops/registry.py", "tilewright/ops/interpret.py"),
        command="tilewright fuzz --seed 10011 --seconds 1800",
        result=MethodResult(
            "2,646 random graphs of 177 operators against the interpreter: no difference found",
            FUZZING,
        ),
    ),
    PublishedMethod(
        "MLIR-HLO",
        "2020, Google",
        "Three levels of one program: implicit broadcasts near the front end, then dynamic "
        "shapes, then explicit buffers.",
        files=(
            "tilewright/ir/graph/text.py",
            "tilewright/ir/graph/parse.py",
            "tilewright/ir/tensor/text.py",
            "tilewright/ir/loop/text.py",
            "tilewright/ir/loop/parse.py",
        ),
        command=(
            "python -m pytest tests/ir/graph/test_text.py tests/ir/tensor/test_text.py "
            "tests/ir/loop/test_parse.py"
        ),
    ),
    PublishedMethod(
        "StableHLO",
        "2022, OpenXLA",
        "A versioned operator set with a specification, a reference interpreter and guaranteed "
        "compatibility between versions.",
    ),
    PublishedMethod(
        "JAX",
        "2018, SysML",
        "Trace Python functions into a small language on which differentiation, vectorisation and "
        "compilation compose.",
    ),
    PublishedMethod(
        "torch_xla FSDP",
        "2022, PyTorch/XLA",
        "Shard the parameters, gather each before its use and free it after; an optimization "
        "barrier keeps CSE from merging the gathers again.",
    ),
    PublishedMethod(
        "Auto-clustering",
        "2017, TensorFlow",
        "Merge neighbouring operators that can be compiled into the largest acyclic clusters, "
        "compile those, and leave the rest to the host.",
        files=(
            "tilewright/frontends/onnx/segments/partition.py",
            "tilewright/driver/segmented/model.py",
            "tilewright/frontends/onnx/segments/host/table.py",
        ),
        missing="a list of unsupported operators given by the user",
        command="python -m pytest tests/driver/segmented/test_model.py "
        "tests/frontends/onnx/segments/test_partition.py",
    ),
    PublishedMethod(
        "Grappler",
        "2017, TensorFlow",
        "A list of graph passes (folding, arithmetic, remapping, layout, memory, dependencies) "
        "that run in order before any code is made.",
        files=(
            "tilewright/driver/pipeline.py",
            "tilewright/passes/manager.py",
            "tilewright/passes/algebra/simplify_algebra.py",
        ),
        missing="export of the optimised graph back to ONNX",
        command="tilewright opt model.onnx --print-after all --time-passes",
    ),
    PublishedMethod(
        "TFRT",
        "2020, Google",
        "A host runtime whose dispatch costs next to nothing and stays off the critical path: "
        "precompiled steps, asynchronous values.",
        files=(
            "tilewright/codegen/host/plan.py",
            "tilewright/runtime/cpu/execution_context.py",
            "tilewright/runtime/binding.py",
        ),
        missing="asynchronous values on the CPU",
        command="python benchmarks/calls.py",
        result=MethodResult(
            "a call of a two-layer MLP: 0.52 µs from C, 6.07 µs from Python, by ONNX Runtime "
            "17.88 µs",
            SPEED,
        ),
    ),
    PublishedMethod(
        "IREE",
        "2019, Google",
        "Divide a program into dispatch regions, compile those ahead of time for several devices, "
        "and run them by a small virtual machine over a hardware abstraction.",
        files=(
            "tilewright/runtime/container.py",
            "tilewright/runtime/linker/link.py",
            "tilewright/runtime/export/shared_library.py",
        ),
        missing="a virtual machine; Vulkan, Metal and ROCm",
        command="python -m pytest tests/runtime/export/test_shared_library.py "
        "tests/runtime/linker/test_link.py",
        result=MethodResult("resnet50 91.3 ms, by IREE 1409 ms", SPEED),
    ),
    PublishedMethod(
        "MLIR",
        "2021, CGO",
        "Operations with regions and verifiers in dialects that are lowered step by step, by "
        "patterns, under one pass manager.",
        files=(
            "tilewright/passes/manager.py",
            "tilewright/passes/rewriter.py",
            "tilewright/passes/algebra/patterns.py",
            "tilewright/ir/graph/verify.py",
            "tilewright/ir/loop/verify.py",
        ),
        missing="dialects: the three levels are fixed",
        command="python benchmarks/compile_cost.py depth",
        result=MethodResult(
            "12 equal layers of an encoder compile in 2.53 s, 96 in 3.33 s",
            SPEED,
        ),
    ),
    PublishedMethod(
        "LLVM and let-bound graphs",
        "2004, CGO",
        "Machine code from a typed SSA form; a graph is either a DAG or let-bound, where each "
        "value has a scope and is evaluated once.",
        files=("tilewright/codegen/objects/compile.py", "tilewright/codegen/llvm/builder.py"),
        missing="the let form of graphs",
        command="python benchmarks/compile_cost.py resnet50",
        result=MethodResult("resnet50 compiles in 5.69 s, from the cache in 0.21 s", SPEED),
    ),
    PublishedMethod(
        "TorchScript",
        "2018, PyTorch",
        "Trace or script a module into a typed graph with control flow that runs without Python.",
        files=(
            "tilewright/frontends/torch/importer.py",
            "tilewright/frontends/torch/capture.py",
            "tilewright/compat/torch_backend.py",
        ),
        missing="graphs of `torch.jit`: modules come by `torch.export` or `torch.compile`",
        command="python -m pytest tests/frontends/torch tests/compat/test_torch_backend.py",
    ),
)

_ENGINES = (
    PublishedMethod(
        "nGraph",
        "2018, arXiv 1801.08058",
        "An operator graph whose shapes may be partly known, down to an unknown rank, with "
        "bridges from frameworks and kernels from libraries.",
        files=(
            "tilewright/ir/types.py",
            "tilewright/ops/shape/assumptions.py",
            "tilewright/frontends/onnx/segments/partition.py",
        ),
        missing="a back end that calls a kernel library",
        command="python -m pytest tests/ops/shape/test_assumptions.py "
        "tests/driver/segmented/test_model.py",
    ),
    PublishedMethod(
        "Glow",
        "2018, arXiv 1805.00907",
        "Lower nodes to few primitives, then to instructions on addresses whose memory is planned "
        "statically; write the model as a bundle that C code links.",
        files=(
            "tilewright/passes/canonicalize/decompose.py",
            "tilewright/driver/program/linearize.py",
            "tilewright/passes/memory/plan_memory.py",
            "tilewright/runtime/export/shared_library.py",
        ),
        missing="profile-guided int8",
        command="python -m pytest tests/driver/program/test_linearize.py "
        "tests/runtime/export/test_shared_library.py",
    ),
    PublishedMethod(
        "MindSpore with AKG graph kernels",
        "2020, Huawei",
        "Expand large operators into small ones and fuse those again into graph kernels; "
        "differentiate source to source.",
        files=("tilewright/passes/canonicalize/decompose.py", "tilewright/passes/fuse.py"),
        missing="source-to-source differentiation; a count of kernels before and after",
        command="python benchmarks/compile_cost.py bert_base",
        result=MethodResult("bert_base is 8 different kernels in 110 steps", SPEED),
    ),
    PublishedMethod(
        "Paddle SSA graph passes",
        "2018, Baidu",
        "A program becomes an SSA graph on which named passes fuse, plan memory, prune, quantise "
        "and distribute.",
        files=("tilewright/driver/pipeline.py", "tilewright/passes/canonicalize/dce.py"),
        missing="passes for several devices, for int8 and for distribution",
        command="tilewright list passes",
    ),
    PublishedMethod(
        "BYOC",
        "2021, arXiv 2105.03215",
        "Mark the patterns that an external code generator supports, partition the graph along "
        "them, and link what it makes into the model.",
    ),
    PublishedMethod(
        "TensorRT",
        "2016, NVIDIA",
        "Fuse vertically and horizontally, let parts be computed where a concatenation needs them, "
        "choose kernels by timing, calibrate int8, plan memory, and keep one engine per device.",
        files=(
            "tilewright/passes/fuse.py",
            "tilewright/passes/algebra/combine_parallel_matmuls.py",
            "tilewright/passes/memory/eliminate_concat.py",
            "tilewright/driver/tuning/session.py",
        ),
        missing="int8 calibration; a flag and a figure for each item",
        command="tilewright explain model.onnx",
        result=MethodResult(
            "densenet121 156.2 ms before concatenations were computed in place, 127.3 ms after",
            CONCATENATIONS,
        ),
    ),
    PublishedMethod(
        "OpenVINO",
        "2018, Intel",
        "Read many formats into versioned operator sets, compile by plugins per device, keep "
        "compiled models, and choose the device automatically. The bar for speed on CPUs.",
        files=("tilewright/frontends/onnx/importer.py", "tilewright/core/disk_cache.py"),
        missing="TensorFlow and Paddle models; quantisation; choice among devices",
        command="make bench",
        result=MethodResult(
            "14 models in f32: 1.26 times as fast as the best other engine, by the geometric mean",
            SPEED,
        ),
    ),
    PublishedMethod(
        "HALO and ODLA",
        "Alibaba",
        "Compile a model to C source that calls an abstract API of values, operators and devices; "
        "every vendor library implements that API.",
    ),
    PublishedMethod(
        "NVIDIA Triton server",
        "2018, NVIDIA",
        "Serve models of several frameworks over the network, with batching and versions.",
    ),
)

FRAMEWORK_METHODS = MethodSection(
    "Frameworks, IRs and runtimes",
    "Whole-graph compilers, their intermediate representations, and what runs their code.",
    (*_XLA_FAMILY, *_ENGINES),
)
