"""`import onnxruntime` under the hook, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright.compat import import_hook

CHECKS = {
    "the package": "import onnxruntime as ort; assert 'tilewright' in ort.__file__",
    "names": "from onnxruntime import InferenceSession, SessionOptions",
    "inner modules": (
        "from onnxruntime.capi.onnxruntime_pybind11_state import Fail\n"
        "from onnxruntime.capi import _pybind_state as C\n"
        "import onnxruntime\n"
        "assert C.Fail is Fail is onnxruntime.capi.onnxruntime_pybind11_state.Fail"
    ),
    "one module": (
        "import onnxruntime, tilewright.compat.onnxruntime as ours\nassert onnxruntime is ours"
    ),
    "find_spec": (
        "from importlib.util import find_spec\n"
        "assert find_spec('onnxruntime') is not None\n"
        "assert find_spec('onnxruntime.capi.libonnxruntime') is None"
    ),
    "the version": (
        "from importlib.metadata import version\n"
        "import onnxruntime\n"
        "assert version('onnxruntime') == onnxruntime.__version__"
    ),
    "modules of the installed package": (
        "import onnxruntime.quantization.shape_inference as m\n"
        "assert 'site-packages' in m.__file__, m.__file__\n"
        "import onnxruntime; assert 'tilewright' in onnxruntime.__file__"
    ),
    "what nobody has": (
        "try:\n    import onnxruntime.nowhere\nexcept ModuleNotFoundError:\n    pass\n"
        "else:\n    raise AssertionError"
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_imports(name: str) -> None:
    script = f"import tilewright.compat.import_hook as h; h.install(); h.install()\n{CHECKS[name]}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_uninstall() -> None:
    script = (
        "import tilewright.compat.import_hook as h; h.install()\n"
        "import onnxruntime; h.uninstall()\n"
        "import onnxruntime; assert 'tilewright' not in onnxruntime.__file__"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_others_are_left_alone() -> None:
    finder = import_hook.Finder()
    assert finder.find_spec("onnxruntime_genai") is None
    assert finder.find_spec("numpy") is None
    assert import_hook._Metadata().read_text("RECORD") is None
