"""The classic techniques of compilers, tuners and runtimes."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import (
    CONFORMANCE,
    CPU_RESULTS,
    FEATURES,
    FUZZING,
    GPU,
    LAYOUTS,
    SEARCH,
    SPEED,
    TENSOR_CORES,
)

CLASSIC = "classic"

_GRAPH = (
    PublishedMethod(
        "No-op and zero-size elimination",
        CLASSIC,
        "Remove operators that give back their operand, and compute nothing for tensors without "
        "elements.",
        files=("tilewright/passes/canonicalize/eliminate_noop.py",),
        command="python -m pytest tests/passes/canonicalize/test_eliminate_noop.py",
    ),
    PublishedMethod(
        "Algebraic rewriting",
        CLASSIC,
        "Replace formulas by cheaper equal ones: identities, strength reduction, folded constants, "
        "whole activations and norms recognised in any spelling.",
        files=(
            "tilewright/passes/algebra/rules.py",
            "tilewright/passes/algebra/simplify_algebra.py",
            "tilewright/passes/canonicalize/fold_constants.py",
            "tilewright/passes/algebra/fold_scale_bias.py",
            "tilewright/arith/rules.py",
        ),
        missing="transposes moved across a product",
        command="python -m pytest tests/passes/algebra/test_rules.py",
    ),
    PublishedMethod(
        "Equality saturation",
        "2009, POPL",
        "Keep all forms that rewriting finds in one e-graph and extract the cheapest at the end, "
        "so that the order of the rules does not matter.",
    ),
    PublishedMethod(
        "Fusion by operator class",
        CLASSIC,
        "Injective, reduction, complex and opaque operators: the class of both decides whether a "
        "producer joins the kernel of its consumer, and every refusal has a reason.",
        files=("tilewright/passes/fuse.py", "tilewright/ops/op.py"),
        command="python benchmarks/gpu/rows.py --only gelu",
        result=MethodResult(
            "bias+gelu+add 8192x8192 in bf16 as one kernel: 0.09442 ms, eager 0.3411 ms", GPU
        ),
    ),
    PublishedMethod(
        "Operator sinking",
        CLASSIC,
        "Move transposes and reshapes toward the outputs until they meet, cancel, or leave the "
        "way free for fusion.",
        files=(
            "tilewright/passes/layout/sink_transposes.py",
            "tilewright/passes/layout/sink_reshapes.py",
        ),
        command=(
            "python -m pytest tests/passes/layout/test_sink_transposes.py "
            "tests/passes/layout/test_sink_reshapes.py"
        ),
    ),
    PublishedMethod(
        "CSE, DCE and DSE",
        CLASSIC,
        "Compute equal values once; drop what no output needs; drop stores that nothing reads.",
        files=("tilewright/passes/canonicalize/cse.py", "tilewright/passes/canonicalize/dce.py"),
        missing="dead stores in loops; optimization barriers",
        command=(
            "python -m pytest tests/passes/canonicalize/test_cse.py "
            "tests/passes/canonicalize/test_dce.py"
        ),
    ),
    PublishedMethod(
        "Static memory planning",
        CLASSIC,
        "Place all values of a run in one arena by their live ranges; a result may take over the "
        "bytes of an operand that dies.",
        files=(
            "tilewright/passes/memory/plan_memory.py",
            "tilewright/codegen/host/arena_layout.py",
        ),
        missing="a second planner to compare with",
        command="python benchmarks/compile_cost.py resnet50",
        result=MethodResult("resnet50: arena 6823936 bytes; lower bound 6823936", CPU_RESULTS),
    ),
    PublishedMethod(
        "Layout transformation",
        CLASSIC,
        "Choose for each region of a graph whether channels come first or last, by the cost of "
        "its operators and of the transposes at its borders; the exact answer is a minimum cut.",
        files=(
            "tilewright/passes/layout/choose_layouts.py",
            "tilewright/passes/layout/layout_costs.py",
            "tilewright/passes/layout/min_cut.py",
        ),
        command="python -m pytest tests/passes/layout/test_choose_layouts.py "
        "tests/passes/layout/test_min_cut.py",
        result=MethodResult(
            "a 1x1 convolution alone, 56x56, 256 to 64 channels: 7.7 ms in one layout for all, "
            "3.8 ms by cost",
            LAYOUTS,
        ),
    ),
)

_LOOPS = (
    PublishedMethod(
        "Intrinsic mapping",
        CLASSIC,
        "Match the innermost loops with the meaning of an instruction and emit that: dot products "
        "of bytes, AMX tiles, `mma.sync`, `wgmma`.",
        files=(
            "tilewright/schedule/intrin/table.py",
            "tilewright/schedule/intrin/match.py",
            "tilewright/schedule/primitives/tensorize.py",
            "tilewright/tune/space/sketch/tensorize.py",
        ),
        command="python -m pytest tests/schedule/intrin",
        result=MethodResult("4096x4096x4096 in bf16 on an H200: 761 TFLOP/s, 0.96 of cuBLAS", GPU),
    ),
    PublishedMethod(
        "Memory hierarchy and latency hiding",
        CLASSIC,
        "Let neighbouring threads read neighbouring elements, stage tiles in shared memory without "
        "bank conflicts, and copy several steps ahead of the arithmetic.",
        files=(
            "tilewright/finalize/gpu/software_pipeline.py",
            "tilewright/finalize/gpu/swizzle.py",
            "tilewright/finalize/gpu/pad_shared.py",
            "tilewright/schedule/intrin/nvidia/tma.py",
        ),
        missing="hardware counters",
        command="python benchmarks/gpu/products.py --only 4096",
        result=MethodResult(
            "4096 x 4096 x 4096 in bf16, TFLOP/s: 550 waiting for each step, 750 with one step "
            "under way, turned sums and the copy engine",
            TENSOR_CORES,
        ),
    ),
    PublishedMethod(
        "Loop transformations",
        CLASSIC,
        "Split, fuse, reorder, unroll and tile loops, and compute a producer inside the loop of "
        "its consumer.",
        files=(
            "tilewright/schedule/primitives/split.py",
            "tilewright/schedule/primitives/reorder.py",
            "tilewright/schedule/primitives/fuse.py",
            "tilewright/schedule/primitives/unroll.py",
            "tilewright/schedule/primitives/compute_at.py",
        ),
        missing="sliding windows",
        command="python -m pytest tests/schedule/primitives",
    ),
    PublishedMethod(
        "Parallel loops and SIMD",
        CLASSIC,
        "Share outer iterations among the threads of a pool and run inner ones as vector "
        "instructions.",
        files=(
            "tilewright/schedule/primitives/parallel.py",
            "tilewright/schedule/primitives/vectorize.py",
            "tilewright/schedule/builtin/cpu/parallelize.py",
            "tilewright/codegen/host/threadpool/pool.py",
        ),
        missing="a table of speed-ups by the number of threads",
        command="python -m pytest tests/codegen/host/threadpool/test_pool.py",
    ),
    PublishedMethod(
        "Bound inference",
        CLASSIC,
        "Intervals of index expressions say what a block reads, how large a buffer must be and "
        "which guards are needless.",
        files=("tilewright/arith/bounds.py", "tilewright/ir/loop/access_regions.py"),
        command="python -m pytest tests/arith/test_bounds.py tests/ir/loop/test_access_regions.py",
    ),
    PublishedMethod(
        "Polyhedral legality",
        CLASSIC,
        "Dependences as exact integer relations decide whether a transformation may be applied; "
        "the message names two instances whose order was turned round.",
        files=(
            "tilewright/schedule/legality/dependences.py",
            "tilewright/schedule/legality/instances.py",
        ),
        command="python -m pytest tests/schedule/legality/test_dependences.py",
    ),
)

_TUNERS = (
    PublishedMethod(
        "Cost models",
        CLASSIC,
        "Predefined, learned or none at all: three kinds behind one interface.",
        files=("tilewright/tune/cost/cost_model.py", "tilewright/tune/cost/table.py"),
        command="tilewright lab accuracy --train 40 --seeds 3",
        result=MethodResult(
            "Kendall's tau on linear_128x768x3072: `analytical` 0.58, `lightgbm` 0.79, `residual` "
            "0.82",
            FEATURES,
        ),
    ),
    PublishedMethod(
        "Search strategies",
        CLASSIC,
        "Random, grid, genetic, annealing and evolutionary search propose and observe through one "
        "interface; the built-in schedule is measured first.",
        files=("tilewright/tune/strategy/strategy.py", "tilewright/tune/strategy/table.py"),
        missing="reinforcement learning; Bayesian optimisation",
        command="tilewright lab --strategies random,genetic,annealing,evolutionary --seeds 100",
        result=MethodResult(
            "convolution-a100, trials to within 5 % of the optimum: evolutionary 110, annealing "
            "105, genetic 175",
            SEARCH,
        ),
    ),
    PublishedMethod(
        "Parallel measurement and reuse",
        CLASSIC,
        "Build on all cores, measure on many machines, and never measure again what the records "
        "already hold.",
        files=(
            "tilewright/tune/measure/build_pool.py",
            "tilewright/tune/measure/cluster/ray_cluster.py",
            "tilewright/tune/warm_start.py",
            "tilewright/driver/tuning/apply_records.py",
        ),
        command="tilewright tune model.onnx --cluster local:2",
    ),
)

_MODELS = (
    PublishedMethod(
        "Control flow",
        CLASSIC,
        "Branches and loops are nodes with nested graphs, optimised like any other graph and "
        "compiled into the entry function.",
        files=(
            "tilewright/ops/control/conditional.py",
            "tilewright/ops/control/loop.py",
            "tilewright/passes/canonicalize/simplify_conditionals.py",
            "tilewright/codegen/host/carried_loop.py",
        ),
        command="python -m pytest tests/differential/test_random_control.py",
    ),
    PublishedMethod(
        "Derivatives",
        CLASSIC,
        "Reverse mode: walk back from the result and let each operator hand its gradient on to "
        "its operands.",
        files=("tilewright/frontends/onnx/convert/training/gradient.py",),
        missing="convolutions, norms, indexing and control flow; gradients of torch modules",
        command="python -m pytest tests/frontends/onnx/convert/training/test_gradient.py",
    ),
    PublishedMethod(
        "Custom operators",
        CLASSIC,
        "A row with a type rule and a formula is printed, checked, fused and compiled like any "
        "built-in operator.",
        files=("tilewright/ops/op.py", "tilewright/ops/elementwise/define.py"),
        missing="registration without editing the table",
        command="python -m pytest tests/docs/test_howto_diffs.py",
    ),
    PublishedMethod(
        "Unknown shapes",
        CLASSIC,
        "Sizes may be symbolic, learnt while the model runs, or decided with the rank by a value "
        "that an earlier stage computes.",
        files=(
            "tilewright/ops/control/bind_dim.py",
            "tilewright/ops/shape/assumptions.py",
            "tilewright/arith/symbolic_bounds.py",
            "tilewright/driver/segmented/model.py",
        ),
        command="python -m pytest tests/ops/control/test_bind_dim.py "
        "tests/driver/segmented/test_model.py",
        result=MethodResult("2,024 of 2,033 of ONNX's own backend tests pass", CONFORMANCE),
    ),
    PublishedMethod(
        "Quantisation",
        CLASSIC,
        "Integers with scales and zero points stand for floats; products of bytes are summed in "
        "32 bits.",
        files=(
            "tilewright/frontends/onnx/convert/quantize.py",
            "tilewright/frontends/onnx/convert/qlinear.py",
            "tilewright/passes/precision/pack_subbyte_constants.py",
        ),
        missing="calibration of float models; int8 convolutions on tensor cores",
        command="python benchmarks/gpu/products.py --only i8",
        result=MethodResult("4096x4096x4096 in i8 on an H200: 1316 TOP/s, 1.55 times cuBLAS", GPU),
    ),
    PublishedMethod(
        "Half precision",
        CLASSIC,
        "Where the user allows it, compute products in 16 bits and choose per operator what stays "
        "in f32; sums keep enough digits.",
        files=(
            "tilewright/passes/precision/bf16_matmuls.py",
            "tilewright/passes/precision/to_mixed_precision.py",
            "tilewright/ops/accumulation.py",
        ),
        command="python benchmarks/latency.py resnet50 --engines tilewright,tilewright-fp16",
        result=MethodResult("resnet50: 91.3 ms in f32, 50.1 ms in fp16", SPEED),
    ),
    PublishedMethod(
        "Training",
        CLASSIC,
        "A step computes gradients and updates weights in one compiled model.",
        files=(
            "tilewright/frontends/onnx/convert/training/optimizers.py",
            "tilewright/frontends/onnx/convert/training/gradient.py",
        ),
        missing="training of torch modules",
        command="python -m pytest tests/frontends/onnx/convert/training/test_optimizers.py",
    ),
    PublishedMethod(
        "Ahead of time and just in time",
        CLASSIC,
        "The same compiler runs on first use, or writes a file or a C library that needs no "
        "compiler.",
        files=("tilewright/driver/compile.py", "tilewright/runtime/export/shared_library.py"),
        command="python benchmarks/calls.py",
        result=MethodResult("a call of the exported library from C takes 0.52 µs", SPEED),
    ),
    PublishedMethod(
        "Constant-time checking",
        "privacy",
        "Mark tensors as secret and prove that no branch and no address depends on them.",
    ),
)

_TESTING = (
    PublishedMethod(
        "Bisection",
        CLASSIC,
        "Compare the program after every pass with its meaning and halve inside the first bad "
        "kernel, until one pass, fusion or schedule step is named.",
        files=(
            "tilewright/driver/bisect/bisect.py",
            "tilewright/driver/bisect/passes.py",
            "tilewright/driver/bisect/kernel_stages.py",
        ),
        command="tilewright bisect model.onnx",
    ),
    PublishedMethod(
        "Differential fuzzing",
        CLASSIC,
        "Random graphs must compute what the interpreter computes, within a tolerance derived "
        "from rounding; damaged files must end in one clear error.",
        files=(
            "tilewright/fuzz/campaign.py",
            "tilewright/fuzz/oracle.py",
            "tilewright/fuzz/shrink.py",
        ),
        command="tilewright fuzz --mutate --seed 10012 --seconds 1800",
        result=MethodResult("13,874 damaged models: nothing found", FUZZING),
    ),
)

TECHNIQUE_METHODS = MethodSection(
    "Classic techniques",
    "What textbooks and surveys list, each with its test.",
    (*_GRAPH, *_LOOPS, *_TUNERS, *_MODELS, *_TESTING),
)
