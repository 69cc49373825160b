"""Export a model as a C library and build a C program with it.

    pip install magika    # for its model only; a C compiler must be there too
    python examples/c_program/build.py build/file_type
    build/file_type/file_type README.md Makefile

`libmagika.so` and `libmagika.h` are written by `export_library`; the library needs libc only.
`main.c` is the program: it names the types of files. Nothing of Python is left when it runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import tilewright as tw

try:
    MODELS = Path(distribution("magika").locate_file("magika/models"))
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")


def main() -> None:
    """Write library, header and program into a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)

    model = next(MODELS.glob("standard_*"))
    library = tw.compile(model / "model.onnx").export_library(folder / "libmagika.so")
    labels = json.loads((model / "config.min.json").read_text())["target_labels_space"]
    (folder / "labels.h").write_text(",\n".join(f'"{label}"' for label in labels) + "\n")

    program, source = folder / "file_type", Path(__file__).with_name("main.c")
    command = ["cc", "-O2", "-Wall", "-Wextra", f"-I{folder}", source, library, "-o", program]
    subprocess.run([*command, f"-Wl,-rpath,{folder}"], check=True)
    print(program)


if __name__ == "__main__":
    main()
