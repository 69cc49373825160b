"""A compiled model as it is kept: its manifest, its object code, its weights."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.core.config import config
from tilewright.driver.model_build import ModelBuild
from tilewright.runtime.container import Container, assemble_weights, fill_container


@dataclass(frozen=True)
class Artifact:
    """What a compilation gives; weights are packed when it is written or loaded."""

    build: ModelBuild
    manifest: Mapping[str, Any]
    objects: Mapping[str, bytes]

    def write(self, path: Path) -> None:
        """Write it to a file."""
        options, weights = self.build.options, self.build.memory.weights
        options.progress("write")
        with options.clock.measure("pack and write weights"):
            fill_container(path, self.manifest, self.objects, weights.items())
        self._show_timings()

    def container(self) -> Container:
        """Have it in memory."""
        options, weights = self.build.options, self.build.memory.weights
        with options.clock.measure("pack weights"):
            data = assemble_weights(weights.items(), weights.size)
        self._show_timings()
        return Container(dict(self.manifest), dict(self.objects), data)

    def _show_timings(self) -> None:
        if config().time:
            print(self.build.options.clock.table(), file=sys.stderr)
