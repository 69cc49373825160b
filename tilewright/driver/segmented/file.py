"""A model in segments as one file: the model itself, and the segments that are compiled so far.

The file is a container (see `runtime.container`). Its objects are the ONNX model without long
weights and the code of each compiled segment; its weights are those of the model, then those of
each segment. The manifest's entry `segmented` says which is which:

    file, dims, break_reason, target, precision   how the model was compiled, and why in segments
    raw      [[initializer, offset, bytes]], the model's weights
    parts    [{"key", "manifest", "objects", "weights": [offset, bytes]}], the compiled segments

Reading it needs the compiler: a segment that is not in the file is compiled when it is first run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import ExecutionError
from tilewright.driver.segmented.segment_cache import SegmentCache
from tilewright.driver.segmented.source import SegmentSource
from tilewright.frontends.onnx.segments.source import OnnxSegments
from tilewright.runtime.container import Container, write_container
from tilewright.runtime.model import CompiledModel

MODEL = "model.onnx"
# Where the weights of each segment begin: as they do in a file of their own.
ALIGNMENT = 4096


@dataclass
class _Weights:
    """Bytes one after another, each from a multiple of the alignment on."""

    items: list[tuple[int, np.ndarray]] = field(default_factory=list)
    size: int = 0

    def add(self, data: np.ndarray) -> tuple[int, int]:
        """Where the bytes will lie, and how many they are."""
        place = self.size
        self.items.append((place, data))
        self.size += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return place, data.nbytes


def save_segmented(
    path: str | os.PathLike[str],
    source: SegmentSource,
    library: SegmentCache,
    segments: Iterable[CompiledModel],
    about: dict[str, Any],
) -> Path:
    """Write a model in segments; `about` is what else the manifest says."""
    weights = _Weights()
    data, raw = source.serialized()
    objects = {MODEL: data}
    places = [[number, *weights.add(data)] for number, data in raw.items()]
    parts = []
    for number, segment in enumerate(segments):
        container = segment.container
        objects |= {f"{number}/{name}": data for name, data in container.objects.items()}
        parts.append(
            {
                "key": library.key_of(segment),
                "manifest": container.manifest,
                "objects": list(container.objects),
                "weights": weights.add(container.weights),
            }
        )
    staged = {"file": source.file, "dims": dict(source.dims), "raw": places, "parts": parts}
    staged |= {"target": library.options.target_name, "precision": library.options.precision}
    manifest = {**about, "segmented": {**staged, **about["segmented"]}}
    return write_container(path, manifest, objects, weights.items)


def saved_model(container: Container) -> OnnxSegments:
    """The model in a file; its weights stay mapped."""
    about = container.manifest["segmented"]
    if MODEL not in container.objects:
        raise ExecutionError(
            "container.segmented", f"{container.path} has no model in it", help="save it again"
        )
    raw = {
        number: container.weights[offset : offset + size].data
        for number, offset, size in about["raw"]
    }
    data = container.objects[MODEL]
    return OnnxSegments.from_serialized(data, raw, about["file"], about["dims"])


def saved_segments(container: Container) -> dict[str, Container]:
    """The compiled segments in a file, by their keys."""
    found = {}
    for number, part in enumerate(container.manifest["segmented"]["parts"]):
        objects = {name: container.objects[f"{number}/{name}"] for name in part["objects"]}
        offset, size = part["weights"]
        weights = container.weights[offset : offset + size]
        found[part["key"]] = Container(part["manifest"], objects, weights)
    return found
