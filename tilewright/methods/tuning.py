"""Tuning: search strategies, spaces of schedules, cost models, measurement."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import FEATURES, MEASURING, SEARCH, SPACES, TUNING

RING = (
    "tilewright lab --space convolution-a100 --space dedispersion-a4000 "
    "--strategies random,genetic,annealing,evolutionary --seeds 100"
)

_SYSTEMS = (
    PublishedMethod(
        "TVM",
        "2018, OSDI",
        "Keep what an operator computes, as an index expression, apart from how its loops run. A "
        "graph is fused by the class of its operators; each kernel is then rewritten by schedule "
        "primitives that are legal by construction.",
        files=(
            "tilewright/ops/op.py",
            "tilewright/passes/fuse.py",
            "tilewright/ir/tensor/nodes.py",
            "tilewright/schedule/schedule.py",
            "tilewright/schedule/primitives/table.py",
        ),
        command=(
            "python -m pytest tests/tune/space/test_constructed.py "
            "tests/tune/space/sketch/test_space.py"
        ),
        result=MethodResult(
            "480 schedules of the constructed space and 192 sketches of sixteen small kernels "
            "agree with the interpreter",
            SPACES,
        ),
    ),
    PublishedMethod(
        "AutoTVM",
        "2018, NeurIPS",
        "Learn to rank programs of one task from features of their loops, walk many chains of "
        "simulated annealing with the model as energy, measure a batch that is both promising and "
        "diverse, and refit. Features mean the same in all tasks, so a global model plus a local "
        "correction transfers.",
        files=(
            "tilewright/tune/strategy/annealing.py",
            "tilewright/tune/strategy/batch_selection.py",
            "tilewright/tune/cost/lightgbm.py",
            "tilewright/tune/cost/pretrained.py",
            "tilewright/tune/features/columns.py",
            "tilewright/tune/space/template.py",
        ),
        command=RING,
        result=MethodResult(
            "trials to within 5 % of the optimum of convolution-a100, medians of 100 seeds: "
            "annealing with LightGBM 105, the genetic algorithm 175, random search never",
            SEARCH,
        ),
    ),
    PublishedMethod(
        "MetaSchedule",
        "2022, NeurIPS",
        "A schedule is a probabilistic program: sampling steps and transformations recorded as a "
        "trace. Search changes decisions of the trace, replays it and keeps what the cost model "
        "and measurements favour; a user adds a rule as a module.",
        files=(
            "tilewright/schedule/trace.py",
            "tilewright/tune/space/schedule_space.py",
            "tilewright/tune/space/variation.py",
            "tilewright/tune/records.py",
        ),
        command="python benchmarks/tuning.py --trials 64",
        result=MethodResult(
            "twelve operators, 64 trials each, which MetaSchedule takes as one batch: 2.00 times "
            "as fast as what it finds, 1.56 over the 9 that it does not lose to Winograd",
            SEARCH,
        ),
    ),
    PublishedMethod(
        "Ansor",
        "2020, OSDI",
        "Derive sketches of a kernel by rules (tiling, fusion, cache stages, r-factor), fill them "
        "in at random, evolve the fastest under a learned model, and give each batch of trials to "
        "the task whose expected gain in end-to-end latency is largest.",
        files=(
            "tilewright/tune/space/sketch/table.py",
            "tilewright/tune/space/sketch/derive.py",
            "tilewright/tune/space/sketch/annotate.py",
            "tilewright/tune/space/sketch/gpu_tiling.py",
            "tilewright/tune/strategy/evolutionary.py",
            "tilewright/tune/task_scheduler/ansor.py",
            "tilewright/tune/task_scheduler/gradient.py",
        ),
        missing="a reported speed that its space has found",
        command=(
            "tilewright lab tasks --task-schedulers round-robin,ansor,gradient --batch 4 "
            "--trials 192 --seeds 100"
        ),
        result=MethodResult(
            "trials until twelve tasks as one model are within 5 % of the best latency: gradient "
            "94, ansor 100, round-robin 123; latency at the end over the best: 1.7 %, 4.1 %, 2.2 %",
            TUNING,
        ),
    ),
    PublishedMethod(
        "FlexTensor",
        "2020, ASPLOS",
        "Analyse the loops of an operator to span a schedule space without a template. Start "
        "points are drawn by an annealing probability; Q-learning chooses which knob to move from "
        "each of them.",
    ),
    PublishedMethod(
        "FamilySeer",
        "2022, arXiv 2201.00194",
        "Cluster subgraphs with the same sequence of anchor operators into families. A family "
        "shares one cost model and one pool of samples, so every measurement teaches all members.",
    ),
    PublishedMethod(
        "Woodpecker-DL",
        "2020, arXiv 2008.04567",
        "Search schedules by a genetic algorithm and by reinforcement learning, then race the "
        "generated kernel of each operator against the vendor libraries and keep the fastest.",
        files=("tilewright/tune/strategy/genetic.py",),
        missing="reinforcement learning; the race against vendor libraries",
        command=RING,
        result=MethodResult(
            "trials to within 5 % of the optimum of convolution-a100: genetic 175, reached in 71 % "
            "of 100 runs; random reached it in 3 %",
            SEARCH,
        ),
    ),
    PublishedMethod(
        "AdaTune",
        "2020, NeurIPS",
        "Stop timing a candidate as soon as its mean is stable or it is known to be slower than "
        "the best; a surrogate with a variance then balances exploration and exploitation.",
        files=("tilewright/tune/measure/evaluator.py",),
        missing="the random-forest surrogate with its contextual expected improvement",
        command="python -m pytest tests/tune/measure/test_evaluator.py",
        result=MethodResult(
            "convolution with 3 % of the runs disturbed: 0.24 of the time of ten repeats, the best "
            "candidate rejected in 0.0 % of the searches",
            MEASURING,
        ),
    ),
    PublishedMethod(
        "ProTuner",
        "2020, arXiv 2005.13685",
        "Monte Carlo tree search over schedule decisions that scores only complete schedules, so "
        "a cost model that is wrong about partial ones does no harm; several trees vote on the "
        "next decision.",
    ),
    PublishedMethod(
        "Chameleon",
        "2020, ICLR",
        "An actor-critic policy (PPO) proposes knob changes; the visited configurations are "
        "clustered and only the centroids are measured.",
    ),
    PublishedMethod(
        "DynaTune",
        "2021, ICLR",
        "Treat the operators of a model as arms of a bandit. A Bayesian fit of each operator's "
        "progress curve predicts what more tuning would gain, and an upper confidence bound "
        "decides who is tuned next.",
    ),
    PublishedMethod(
        "Lorien",
        "2021, SoCC",
        "A service around tuners: tasks extracted from model zoos, fault-tolerant workers, one "
        "data model for the records of all tuners, and a ranking model that answers for unseen "
        "shapes at once.",
        files=(
            "tilewright/driver/tuning/extract_tasks.py",
            "tilewright/tune/measure/cluster/measurer.py",
            "tilewright/tune/records.py",
            "tilewright/tune/tuned_schedules.py",
        ),
        missing="the zero-shot ranking model; jobs of several tuners in one queue",
        command="python benchmarks/kills.py --trials 64 --times 8",
        result=MethodResult(
            "a tuner killed 8 times in a search of 64 trials: 0 records lost, 0 candidates "
            "measured twice",
            MEASURING,
        ),
    ),
    PublishedMethod(
        "TenSet",
        "2021, NeurIPS",
        "Publish a large set of measured programs, pre-train a cost model on it, and start every "
        "new search from that model.",
        files=(
            "tilewright/tune/cost/pretrained.py",
            "tilewright/tune/cost/training_data.py",
            "tilewright/tune/benchmark/transfer.py",
        ),
        missing="a published set of 50,000 programs or more; the top-k score",
        command="tilewright lab transfer --seeds 100",
        result=MethodResult(
            "a model taught by six other tasks needs 0.40 of the trials, by the geometric mean "
            "over the spaces",
            TUNING,
        ),
    ),
)

_MODELS = (
    PublishedMethod(
        "Tiramisu cost model",
        "2021, MLSys",
        "A recursive LSTM over the loop tree of the unscheduled program with tags for the "
        "transformations predicts the speed-up; it is trained on random programs and drives beam "
        "search or tree search.",
    ),
    PublishedMethod(
        "Value Learning",
        "2021, MLSys",
        "Schedule stage by stage as a Markov decision process and learn the best latency that can "
        "still be reached from a partial schedule. Compiling is then greedy and measures nothing.",
    ),
    PublishedMethod(
        "One-shot tuner",
        "2022, CC",
        "Train a transformer on configurations and tasks before compiling, with samples biased to "
        "fast code; a search asks it once and runs no measurement loop.",
    ),
    PublishedMethod(
        "TLP and MTL-TLP",
        "2023, ASPLOS",
        "Take the sequence of schedule primitives itself as the feature, read by self-attention "
        "under a rank loss; a shared trunk with one head per machine needs few labels for a new "
        "one.",
    ),
    PublishedMethod(
        "Heron",
        "2023, ASPLOS",
        "Derive the constraints of tensor intrinsics and scratchpads statically and search over "
        "constraint problems: crossover adds constraints of the parents and a solver gives the "
        "offspring, so every candidate is valid.",
    ),
    PublishedMethod(
        "Tuna",
        "2021, arXiv 2104.14641",
        "Score programs without running them, by a weighted sum of features of the loops and of "
        "the assembly; the weights are fitted once per machine.",
        files=(
            "tilewright/tune/features/performance_model.py",
            "tilewright/tune/features/gpu_performance.py",
            "tilewright/tune/cost/analytical.py",
        ),
        missing="features of the assembly; weights fitted per machine",
        command="tilewright lab accuracy --cost-models analytical,lightgbm --train 40 --seeds 3",
        result=MethodResult("Kendall's tau of `analytical` on gemm_512: 0.53", FEATURES),
    ),
    PublishedMethod(
        "Bayesian optimisation for GPU kernels",
        "2021, PMBS",
        "A Gaussian process over the valid configurations; the exploration weight follows the "
        "posterior variance, and a portfolio of acquisition functions drops those that stop "
        "helping.",
    ),
    PublishedMethod(
        "GNN surrogate",
        "2019, ICLR workshop",
        "Encode the nodes of the loop AST and pool them by graph convolutions, so that no feature "
        "is written by hand.",
    ),
    PublishedMethod(
        "DietCode",
        "2022, MLSys",
        "Tune shape-generic micro-kernels once for all sizes of a dynamic operator. Every shape "
        "votes for the cheapest, corrected for padding and occupancy, and a decision tree "
        "dispatches at run time.",
    ),
    PublishedMethod(
        "AKG tuner",
        "2021, PLDI",
        "Span the tile space by the polyhedral scheduler, so that all points are legal; after a "
        "random round the best are mutated along the model's descent direction.",
    ),
    PublishedMethod(
        "XGBoost",
        "2016, KDD",
        "Regularised gradient-boosted trees with second-order gains and histogram splits: the "
        "usual cost model of tuners.",
        files=("tilewright/tune/cost/lightgbm.py", "tilewright/tune/cost/residual.py"),
        missing="boosted trees without a package: LightGBM is optional, `ridge` stands in",
        command="tilewright lab accuracy --cost-models analytical,lightgbm --train 40 --seeds 3",
        result=MethodResult(
            "Kendall's tau within gemm_512 after 40 programs: `lightgbm` 0.82, `analytical` 0.53",
            FEATURES,
        ),
    ),
    PublishedMethod(
        "Pruner",
        "2025, ASPLOS",
        "Draft and verify: a static analyser drafts many candidates cheaply and the learned model "
        "verifies only those.",
    ),
    PublishedMethod(
        "TCL",
        "2026, arXiv 2604.12891",
        "Label a tenth of the programs by active sampling, train a state-space sequence model on "
        "them, and distil it from one machine to the next.",
    ),
    PublishedMethod(
        "Compiler world models",
        "2026, arXiv 2606.09312",
        "Roll schedule steps out in a learned latent space instead of rewriting and encoding the "
        "program after each, and rank by the final state.",
    ),
)

TUNING_METHODS = MethodSection(
    "Tuning and cost models",
    "How schedules are searched, guessed and measured.",
    (*_SYSTEMS, *_MODELS),
)
