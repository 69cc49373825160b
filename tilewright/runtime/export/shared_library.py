"""A compiled model as a shared library with a C interface: `libmodel.so` and `libmodel.h`.

The system's C compiler links it. The weights go into the library through `.incbin`, cut into
chunks: assembler and linker hold a whole section in memory, so that a chunk is all they need. (For
a build id the linker would hold all of the library: there is none.)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.core.arguments import path_argument
from tilewright.core.atomic_write import atomic_write
from tilewright.core.errors import ConfigError
from tilewright.runtime.container import Container
from tilewright.runtime.export.c_api import FUNCTIONS, glue_ir, header_text

_COMPILERS = ("cc", "gcc", "clang")
_CHUNK = 16 << 20  # a multiple of the alignment, so that the chunks join without a gap


def export_library(container: Container, path: str | os.PathLike[str]) -> Path:
    """Write the library to `path` and its header beside it, each whole or not at all."""
    path = path_argument("path", path)
    compiler = _find_compiler()
    name = _library_name(path)

    def write(temporary: Path) -> None:
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=temporary.parent) as folder:
            _link(compiler, container, name, path.name, Path(folder), temporary)

    atomic_write(path, write, area="export")
    header = header_text(name, container.manifest)
    atomic_write(path.with_suffix(".h"), lambda file: file.write_text(header), area="export")
    return path


def _find_compiler() -> str:
    for name in _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    raise ConfigError(
        "export.compiler",
        f"a library needs a C compiler to link it; none of {', '.join(_COMPILERS)} is on the PATH",
        help="install gcc or clang, or use model.save(), which needs none",
    )


def _library_name(path: Path) -> str:
    """`libmodel.so` gives `model`; always an identifier of C."""
    name = re.sub(r"\W", "_", path.name.split(".")[0].removeprefix("lib"), flags=re.ASCII)
    return name if name and not name[0].isdigit() else f"model_{name}"


def _link(
    compiler: str, container: Container, name: str, soname: str, folder: Path, output: Path
) -> None:
    objects = [
        *_object_files(container, name, folder),
        *_weight_objects(compiler, container, folder),
    ]
    names = " ".join(f"{name}_{function};" for function in FUNCTIONS)
    # all else is hidden: two models in one process must not take each other's functions
    (folder / "exports.map").write_text(f"{{ global: {names} local: *; }};\n")
    linking = "-Wl,--version-script=exports.map,--no-undefined,--build-id=none,--as-needed"
    named = ["-Xlinker", "-soname", "-Xlinker", soname]  # unlike -Wl, this takes any name
    command = [compiler, "-shared", linking, *named, "-o", str(output.absolute()), *objects]
    _run([*command, "-lm", "-lpthread"], folder)


def _object_files(container: Container, name: str, folder: Path) -> Iterator[str]:
    glue = {"glue": _compile_glue(container, name)}
    for index, data in enumerate((container.objects | glue).values()):
        file = folder / f"code{index}.o"
        file.write_bytes(data)
        yield file.name


def _compile_glue(container: Container, name: str) -> bytes:
    # Imported here: loading LLVM takes much memory, and most models are never exported.
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = container.manifest["target"]
    tiles = any(feature.startswith("+amx") for feature in target.get("features", ()))
    module = llvm.parse_assembly(glue_ir(name, tiles=tiles))
    machine = llvm.Target.from_triple(target["triple"]).create_target_machine(
        reloc="pic", codemodel="small"
    )
    code: bytes = machine.emit_object(module)
    return code


def _weight_objects(compiler: str, container: Container, folder: Path) -> Iterator[str]:
    """The weights as objects; their sections join in this order under the name `tw_weights`."""
    weights = container.weights
    raw, source = folder / "weights.bin", folder / "weights.s"
    # at least one chunk, though it be empty: the name must exist
    for index, start in enumerate(range(0, max(len(weights), 1), _CHUNK)):
        raw.write_bytes(weights[start : start + _CHUNK].data)
        source.write_text(_WEIGHTS_START if index == 0 else _WEIGHTS_MORE)
        file = folder / f"weights{index}.o"
        _run([compiler, "-c", source.name, "-o", file.name], folder)
        yield file.name
    raw.unlink()


_WEIGHTS_MORE = """\
    .section .tw_weights, "a", %progbits
    .incbin "weights.bin"
    .section .note.GNU-stack, "", %progbits
"""
_WEIGHTS_START = (
    """\
    .section .tw_weights, "a", %progbits
    .balign 4096
    .global tw_weights
    .hidden tw_weights
tw_weights:
"""
    + _WEIGHTS_MORE
)


def _run(command: Sequence[str], folder: Path) -> None:
    # in the folder and by names relative to it: a path might hold what needs escaping
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(
            "export.link",
            f"{command[0]} could not build the library",
            notes=tuple(done.stderr.splitlines()[-20:]),
            help="see that the compiler works and that the disk has space for the model twice",
        )
