from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.fake_model import arguments, container, expected
from tilewright.core.errors import ConfigError
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.export import shared_library
from tilewright.runtime.export.shared_library import export_library

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "libnet.h"

int main(void) {
  for (int round = 0; round < 3; round++) {
    int64_t n = 40 + 20 * round, dims[net_dims] = {n}, shapes[3];
    net_set_threads(1 + round);
    net_output_shapes(dims, shapes);
    if (shapes[0] != n || shapes[1] != 3 || shapes[2] != 2 * n) return 1;
    float *x = malloc(n * 12), *z = malloc(n * 4), *y = malloc(n * 12), *s = malloc(n * 8);
    for (int64_t i = 0; i < 3 * n; i++) x[i] = i;
    for (int64_t i = 0; i < n; i++) z[i] = i;
    const void* inputs[net_inputs] = {x, z};
    void* outputs[net_outputs] = {y, s};
    if (net_run(inputs, outputs, dims) != 0) return 2;
    for (int64_t i = 0; i < n; i++)
      if (y[3 * i] != x[3 * i] + 0.5f || s[n + i] != z[i]) return 3;
    void* arena = aligned_alloc(64, (net_arena_size(dims) + 63) / 64 * 64);
    if (net_run_in(inputs, outputs, dims, arena) != 0) return 4;
    free(x), free(z), free(y), free(s), free(arena);
  }
  int64_t unlucky[1] = {13};
  const void* inputs[2] = {0, 0};
  void* outputs[2] = {0, 0};
  if (net_run(inputs, outputs, unlucky) != 7) return 5;
  net_shutdown();
  puts("fine");
  return 0;
}
"""


@needs_compiler
def test_a_c_program_runs_the_model(tmp_path: Path) -> None:
    with Executable(container()) as model:
        library = model.export_library(tmp_path / "libnet.so")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libnet.h", "libnet.so"]
    (tmp_path / "main.c").write_text(PROGRAM)
    program = tmp_path / "main"
    command = [COMPILER, "-Wall", "-Werror", "-o", program, tmp_path / "main.c", library]
    subprocess.run([*map(str, command), f"-Wl,-rpath,{tmp_path}"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "fine\n")


@needs_compiler
def test_only_the_interface_is_visible(tmp_path: Path) -> None:
    library = ctypes.CDLL(str(export_library(container(), tmp_path / "net.so")))
    assert library.net_get_threads() >= 1
    assert not hasattr(library, "tw_main")
    assert not hasattr(library, "tw_weights")


@needs_compiler
def test_weights_in_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_library, "_CHUNK", 4096)
    weights = np.random.default_rng(0).integers(0, 255, 3 * 4096 + 7, np.uint8)
    made = replace(container(), weights=weights)
    library = export_library(made, tmp_path / "libnet.so")
    assert library.read_bytes().count(weights.tobytes()) == 1


@needs_compiler
def test_called_from_python(tmp_path: Path) -> None:
    folder = tmp_path / 'a, "b"'
    folder.mkdir()
    path = export_library(container(), folder / "lib7 funny,näme.so")
    assert path.with_suffix(".h").read_text().count("model_7_funny_n_me_run(") == 1
    library = ctypes.CDLL(str(path))
    x, z = arguments(21)
    y, s = np.empty_like(x), np.empty(42, np.float32)
    inputs = (ctypes.c_void_p * 2)(x.ctypes.data, z.ctypes.data)
    outputs = (ctypes.c_void_p * 2)(y.ctypes.data, s.ctypes.data)
    dims = (ctypes.c_int64 * 1)(21)
    assert library.model_7_funny_n_me_run(inputs, outputs, dims) == 0
    for got, want in zip((y, s), expected(x, z), strict=True):
        np.testing.assert_array_equal(got, want)
    library.model_7_funny_n_me_shutdown()


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"none of cc, gcc, clang.*") as caught:
        export_library(container(), tmp_path / "libnet.so")
    assert caught.value.code == "export.compiler"
    assert "install" in caught.value.help


@needs_compiler
def test_a_failing_compiler_leaves_nothing(tmp_path: Path) -> None:
    broken = replace(container(), objects={"model": b"rubbish"})
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(ConfigError, match="could not build") as caught:
        export_library(broken, folder / "libnet.so")
    assert caught.value.code == "export.link"
    assert caught.value.notes
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        export_library(container(), tmp_path / "missing" / "libnet.so")
