"""Model formats and converters."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import CONFORMANCE

FORMAT_METHODS = MethodSection(
    "Formats and converters",
    "What models are read from, and in whose place they run.",
    (
        PublishedMethod(
            "ONNX",
            "2017, Linux Foundation",
            "A protobuf of typed operators with versions; some operators are defined by a body of "
            "others.",
            files=(
                "tilewright/frontends/onnx/importer.py",
                "tilewright/frontends/onnx/table.py",
                "tilewright/frontends/onnx/functions.py",
                "tilewright/frontends/onnx/model/validate.py",
            ),
            command="make conformance",
            result=MethodResult("2,024 of 2,033 of ONNX's own backend tests pass", CONFORMANCE),
        ),
        PublishedMethod(
            "ONNX Runtime's interface",
            "2018, Microsoft",
            "Sessions, providers and bindings under the names that applications import, so that "
            "another engine can stand in.",
            files=(
                "tilewright/compat/onnxruntime/session.py",
                "tilewright/compat/import_hook.py",
                "tilewright/cli/commands/run_app.py",
            ),
            missing="custom-operator libraries; the ORT format",
            command="python benchmarks/apps.py",
        ),
        PublishedMethod(
            "onnx-simplifier",
            "open source",
            "Fold constants and infer shapes until the graph no longer changes, then write it back "
            "as ONNX.",
        ),
        PublishedMethod(
            "onnx optimizer",
            "open source",
            "Named passes from ONNX to ONNX: fusion, elimination, motion of operators.",
        ),
        PublishedMethod(
            "onnx-utils",
            "open source",
            "Insert, delete and rename nodes of an ONNX file by hand.",
        ),
        PublishedMethod(
            "NNEF",
            "2018, Khronos",
            "A graph as readable text with tensors in binary files beside it; a standard library "
            "defines compound operators.",
        ),
        PublishedMethod(
            "MMdnn",
            "2020, ESEC/FSE",
            "Convert between frameworks through one intermediate graph with weights.",
        ),
        PublishedMethod(
            "deep-learning-model-convertor list",
            "open source",
            "A catalogue of converters between pairs of formats.",
        ),
    ),
)
