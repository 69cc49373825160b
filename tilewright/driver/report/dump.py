"""TW_DUMP=stages: the text of every kernel after each stage, one folder a kernel.

tw-dump/softmax/01-schedule.txt  02-finalize.txt  03-codegen.txt
"""

from __future__ import annotations

from tilewright.core.atomic_write import write_error
from tilewright.core.config import config
from tilewright.driver.model_build import ModelBuild
from tilewright.ir.loop.text import print_func


def dump_stages(build: ModelBuild) -> None:
    """Write the texts where the switches say; nothing unless they ask for it."""
    if config().dump != "stages":
        return
    for kernel in build.distinct_kernels.values():
        texts = {
            "01-schedule": print_func(kernel.scheduled.func),
            "02-finalize": print_func(kernel.finalized),
            "03-codegen": kernel.llvm,
        }
        for name, text in texts.items():
            _write(kernel.name, f"{name}.txt", text)


def _write(kernel: str, name: str, text: str) -> None:
    path = config().dump_dir / kernel / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise write_error(error, path, "dump") from error
