"""A model in segments as one file: the model itself, and the segments that are compiled so far.

The file is a container (see `runtime.container`). Its objects are the ONNX model without long
weights and the code of each compiled segment; its weights are those of the model, then those of
each segment. The manifest's entry `segmented` says which is which:

    file, dims, break_reason, target, precision, disable_passes, checks
             how the model was compiled, and why in segments
    raw      [[initializer, offset, bytes]], the model's weights
    parts    [{"key", "manifest", "objects", "weights": [offset, bytes]}], the compiled segments

Reading it needs the compiler: a segment that is not in the file is compiled when it is first run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tilewright.core.errors import ExecutionError
from tilewright.driver.segmented.segment_cache import SegmentCache
from tilewright.driver.segmented.source import SegmentSource
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource
from tilewright.runtime.container import Container
from tilewright.runtime.model import CompiledModel

MODEL = "model.onnx"
# Where the weights of each segment begin: as they do in a file of their own.
ALIGNMENT = 4096


@dataclass
class Weights:
    """Bytes one after another, each from a multiple of the alignment on."""

    items: list[tuple[int, np.ndarray]] = field(default_factory=list)
    size: int = 0

    def add(self, data: np.ndarray) -> tuple[int, int]:
        """Where the bytes will lie, and how many they are."""
        place = self.size
        self.items.append((place, data))
        self.size += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return place, data.nbytes


class SegmentedFile(NamedTuple):
    """What the file of a model in segments holds."""

    manifest: dict[str, Any]
    objects: dict[str, bytes]
    weights: Weights


def segmented_file(
    source: SegmentSource,
    library: SegmentCache,
    segments: Iterable[CompiledModel],
    about: dict[str, Any],
) -> SegmentedFile:
    """A model in segments as one file; `about` is what else the manifest says."""
    weights, options = Weights(), library.options
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
    segmented: dict[str, Any] = {
        "file": source.file,
        "dims": dict(source.dims),
        "raw": places,
        "parts": parts,
    }
    segmented |= {"target": options.target_name, "precision": options.precision}
    segmented |= {"disable_passes": options.disable_passes, "checks": options.checks}
    manifest = {**about, "segmented": {**segmented, **about["segmented"]}}
    return SegmentedFile(manifest, objects, weights)


def saved_model(container: Container) -> OnnxSegmentSource:
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
    return OnnxSegmentSource.from_serialized(data, raw, about["file"], about["dims"])


def saved_segments(container: Container) -> dict[str, Container]:
    """The compiled segments in a file, by their keys."""
    found = {}
    for number, part in enumerate(container.manifest["segmented"]["parts"]):
        objects = {name: container.objects[f"{number}/{name}"] for name in part["objects"]}
        offset, size = part["weights"]
        weights = container.weights[offset : offset + size]
        found[part["key"]] = Container(part["manifest"], objects, weights)
    return found
