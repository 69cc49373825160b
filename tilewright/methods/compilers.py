"""Tensor and polyhedral compilers, dynamic shapes, GPU code generation."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import GPU, GPU_RUNTIME, REGIONS, SEARCH, SPEED

_SCHEDULE_LANGUAGES = (
    PublishedMethod(
        "Halide",
        "2013, PLDI",
        "Separate the algorithm from its schedule: what a producer must compute is inferred by "
        "interval bounds, and directives say in which loop that happens and where it is stored.",
        files=(
            "tilewright/schedule/primitives/compute_at.py",
            "tilewright/schedule/primitives/split.py",
            "tilewright/ir/loop/access_regions.py",
            "tilewright/arith/interval.py",
            "tilewright/finalize/compact_buffers.py",
        ),
        missing="sliding windows and `store_at`; ports of its image pipelines",
        command="python -m pytest tests/schedule/primitives tests/ir/loop/test_access_regions.py",
    ),
    PublishedMethod(
        "Halide autoscheduler, Mullapudi",
        "2016, SIGGRAPH",
        "Group the stages of a pipeline greedily and tile each group by an estimate of its "
        "arithmetic and its memory traffic.",
    ),
    PublishedMethod(
        "Halide autoscheduler, Li",
        "2018, SIGGRAPH",
        "Differentiate image pipelines and schedule the gradient code automatically, with "
        "reductions made parallel.",
    ),
    PublishedMethod(
        "Halide autoscheduler, Adams",
        "2019, SIGGRAPH",
        "Beam search over schedules, stage by stage, under a cost model trained on random "
        "programs.",
    ),
    PublishedMethod(
        "Halide autoscheduler, Anderson",
        "2021, OOPSLA",
        "Hierarchical sampling of GPU schedules with features that describe occupancy, coalescing "
        "and shared memory.",
    ),
    PublishedMethod(
        "Tensor Comprehensions",
        "2018, arXiv 1802.04730",
        "Write an operator in Einstein notation with inferred ranges, schedule it polyhedrally for "
        "GPUs, tune the options by a genetic algorithm, and cache the best per sizes.",
    ),
    PublishedMethod(
        "TACO",
        "2017, OOPSLA",
        "Index notation over tensors whose every level has a format; merge lattices give the loops "
        "that iterate several sparse operands together.",
    ),
    PublishedMethod(
        "Tiramisu",
        "2019, CGO",
        "Four layers of a polyhedral IR for the algorithm, its order, its data and its "
        "communication; commands transform each, and dependences decide what is legal.",
        files=(
            "tilewright/schedule/legality/dependences.py",
            "tilewright/schedule/legality/check_trace.py",
            "tilewright/arith/isl.py",
        ),
        missing="skewing; send and receive",
        command="python -m pytest tests/schedule/legality/test_dependences.py",
    ),
    PublishedMethod(
        "PolyMage",
        "2015, ASPLOS",
        "Overlapped tiling and fusion of image pipelines, chosen automatically.",
    ),
    PublishedMethod(
        "AlphaZ",
        "2012, LCPC",
        "Equations over polyhedra with user-given schedules and memory maps.",
    ),
    PublishedMethod(
        "CHiLL",
        "2008, technical report",
        "A script of composable loop transformations, applied to plain loops and checked for "
        "legality.",
        files=("tilewright/schedule/trace.py", "tilewright/schedule/legality/check_trace.py"),
        missing="skewing and loop distribution",
        command="python -m pytest tests/schedule/test_trace.py",
    ),
    PublishedMethod(
        "URUK",
        "2006, IJPP",
        "An algebra in which every loop transformation is an operation on schedule matrices, so "
        "that long sequences compose.",
    ),
    PublishedMethod(
        "Stripe",
        "2019, arXiv 1903.06498",
        "Nested blocks with index ranges, constraints and views of buffers; passes tile them to "
        "the units that a description of the hardware lists.",
        files=(
            "tilewright/ir/loop/nodes.py",
            "tilewright/target/cpu.py",
            "tilewright/target/gpu.py",
        ),
        missing="passes that are configured by the description alone",
        command="python -m pytest tests/target "
        "tests/schedule/builtin/cpu/gemm/test_microkernel_model.py",
    ),
)

_CONSTRUCTION = (
    PublishedMethod(
        "Roller",
        "2022, OSDI",
        "Construct instead of search: grow tiles that are aligned to the hardware, level by level, "
        "while reuse grows and capacity holds, and rate the few candidates by a micro-performance "
        "model.",
        files=(
            "tilewright/schedule/builtin/cpu/select_rule.py",
            "tilewright/schedule/builtin/cpu/gemm/microkernel_model.py",
            "tilewright/schedule/builtin/gpu/gemm/tensor_core_cost.py",
            "tilewright/tune/features/performance_model.py",
        ),
        missing="one growing rule for all levels; measuring the top candidates",
        command="python benchmarks/tuning.py --trials 64",
        result=MethodResult(
            "twelve operators: a search of 64 trials is 1.03 times as fast as the constructed "
            "schedules",
            SEARCH,
        ),
    ),
    PublishedMethod(
        "NNFusion and Rammer",
        "2020, OSDI",
        "Split operators into independent tasks and schedule those of several operators onto the "
        "processors at compile time, with barriers only where data needs them.",
        files=(
            "tilewright/driver/program/inter_op.py",
            "tilewright/codegen/host/parallel_calls.py",
            "tilewright/runtime/cuda/launch_hazards.py",
        ),
        missing="tasks smaller than a kernel; one persistent GPU kernel for several operators",
        command="python -m pytest tests/driver/program/test_inter_op.py",
        result=MethodResult(
            "16 independent products of 8x48x48 on two cores: 42.9 µs one after another, 36.7 µs "
            "together",
            REGIONS,
        ),
    ),
    PublishedMethod(
        "PET",
        "2021, OSDI",
        "Allow rewrites that are right for a part of the output only, find the wrong part by a few "
        "test points, and fuse a kernel that corrects it.",
    ),
    PublishedMethod(
        "Diesel",
        "2018, MAPL",
        "A polyhedral language for linear algebra on GPUs that fuses a matrix product with the "
        "pointwise operators around it.",
        files=(
            "tilewright/schedule/builtin/gpu/gemm/tensor_core.py",
            "tilewright/schedule/primitives/to_gemm.py",
        ),
        missing="the polyhedral language; two chained products in one kernel",
        command="python benchmarks/gpu/products.py --only gelu",
        result=MethodResult(
            "512x3072x768 in bf16 with gelu: 0.008063 ms, torch in two kernels 0.009425 ms",
            GPU,
        ),
    ),
    PublishedMethod(
        "OpenAI Triton",
        "2019, MAPL",
        "A language of blocks: the programmer writes loads, products and stores of tiles, the "
        "compiler does coalescing, shared memory, pipelining and tensor cores.",
        files=(
            "tilewright/ir/loop/tiles.py",
            "tilewright/finalize/gpu/software_pipeline.py",
            "tilewright/finalize/gpu/swizzle.py",
            "tilewright/codegen/gpu/nvptx.py",
        ),
        missing="a language for users",
        command="python benchmarks/gpu/rows.py --only softmax",
        result=MethodResult(
            "softmax 8192x8192 in bf16: 0.06751 ms, the Triton kernel of Inductor 0.1555 ms",
            GPU,
        ),
    ),
    PublishedMethod(
        "nvFuser",
        "2022, NVIDIA",
        "Fuse pointwise, reduction and normalisation operators for GPUs by a few parametric "
        "schedules; a persistent one keeps a row on the chip between its passes.",
        files=(
            "tilewright/schedule/builtin/gpu/rowwise.py",
            "tilewright/schedule/builtin/gpu/rowwise_plan.py",
            "tilewright/schedule/builtin/gpu/thread_per_element.py",
            "tilewright/codegen/gpu/allreduce.py",
        ),
        missing="backward kernels",
        command="python benchmarks/gpu/rows.py --only layernorm",
        result=MethodResult(
            "layernorm 8192x8192 in bf16: 0.06822 ms, by Inductor 0.07478 ms, a copy of as much "
            "0.06345 ms",
            GPU,
        ),
    ),
)

_DYNAMIC = (
    PublishedMethod(
        "BladeDISC and DISC",
        "2021, EuroMLSys; 2023, PACMMOD",
        "Compile once for symbolic sizes: collect which sizes are equal or divisible from the "
        "meaning of operators, fuse by those relations, and emit code that computes sizes and "
        "chooses versions at run time.",
        files=(
            "tilewright/passes/canonicalize/unify_dims.py",
            "tilewright/ops/shape/assumptions.py",
            "tilewright/arith/prove.py",
            "tilewright/lower/dim_params.py",
            "tilewright/finalize/cpu/edge_tiles.py",
        ),
        command="python benchmarks/dynamic.py resnet50 bert_base gpt2 --quick",
        result=MethodResult(
            "time with symbolic sizes over that with fixed ones: bert_base 0.98, gpt2 0.97, "
            "resnet50 1.01",
            SPEED,
        ),
    ),
    PublishedMethod(
        "Nimble, replay of recorded launches",
        "2020, NeurIPS",
        "Run once, record all kernels with their memory, and replay them as one CUDA graph; "
        "independent kernels run side by side with the fewest synchronisations.",
        files=(
            "tilewright/runtime/cuda/cuda_graph.py",
            "tilewright/runtime/cuda/launch_hazards.py",
        ),
        command="python benchmarks/gpu/models.py bert_base --batches 1 --precisions fp16",
        result=MethodResult(
            "bert_base in fp16, 146 launches: 0.476 ms as a graph, 0.600 ms where each launch "
            "waits for the one before",
            GPU_RUNTIME,
        ),
    ),
    PublishedMethod(
        "Nimble, virtual machine for dynamic models",
        "2021, MLSys",
        "Types with unknown sizes, shape functions and a virtual machine let models with control "
        "flow and growing data run compiled.",
        files=(
            "tilewright/ops/control/bind_dim.py",
            "tilewright/codegen/host/carried_loop.py",
            "tilewright/driver/segmented/model.py",
        ),
        missing="placement on several devices",
        command="python -m pytest tests/ops/control/test_bind_dim.py "
        "tests/codegen/host/test_carried_loop.py",
    ),
    PublishedMethod(
        "VELTAIR",
        "2022, ASPLOS",
        "Serve several models on one CPU: blocks of layers are the unit of scheduling, each in "
        "versions that trade parallelism for locality, chosen by the load.",
    ),
)

_HARDWARE = (
    PublishedMethod(
        "TPU1 and TPU2",
        "2017, ISCA",
        "A systolic array multiplies matrices as operands flow through it; software manages all "
        "on-chip memory.",
    ),
    PublishedMethod(
        "GCN",
        "2011, AMD",
        "Wavefronts of 64 lanes on compute units with scalar and vector pipes and a local data "
        "share.",
    ),
    PublishedMethod(
        "TrueNorth",
        "2014, Science",
        "A network of spiking neurons with memory beside each core and no global clock.",
    ),
)

COMPILER_METHODS = MethodSection(
    "Tensor compilers",
    "Schedule languages, polyhedral compilers, construction of kernels, dynamic shapes, hardware.",
    (*_SCHEDULE_LANGUAGES, *_CONSTRUCTION, *_DYNAMIC, *_HARDWARE),
)
