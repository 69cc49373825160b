"""`tilewright inspect`: what a model file holds, without compiling it.

tilewright inspect model.onnx
tilewright inspect model.tw --json
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import json_option, model_argument
from tilewright.cli.output import print_json, print_table, size_text

if TYPE_CHECKING:
    from tilewright.frontends.onnx.model.read import Model


@click.command("inspect")
@model_argument
@json_option
def inspect_command(model: Path, as_json: bool) -> None:
    """Show the inputs, outputs, sizes, operators and weights of MODEL (.onnx or .tw)."""
    from tilewright.cli.source import is_saved

    found = _saved(model) if is_saved(model) else _onnx(model)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _onnx(path: Path) -> dict[str, Any]:
    from tilewright.frontends.onnx.model.read import read_model
    from tilewright.frontends.onnx.segments.operator_counts import operators
    from tilewright.frontends.onnx.segments.source import OnnxSegmentSource

    model = read_model(path)
    proto = model.proto
    with_ports = OnnxSegmentSource(model)
    nodes = list(proto.graph.node)
    return {
        "file": str(path),
        "format": "ONNX",
        "producer": f"{proto.producer_name} {proto.producer_version}".strip(),
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets.items()},
        "inputs": [str(port) for port in with_ports.inputs],
        "outputs": [str(port) for port in with_ports.outputs],
        "sizes": sorted(
            {d for p in with_ports.inputs for d in p.shape or () if isinstance(d, str)}
        ),
        "operators": dict(Counter(operators(nodes)).most_common()),
        "host_operators": with_ports.operators.host,
        **_weights(model),
    }


def _weights(model: Model) -> dict[str, int]:
    """How many numbers the initializers have, and how many bytes."""
    from tilewright.frontends.onnx.model.dtypes import onnx_dtype

    count = size = 0
    for tensor in model.proto.graph.initializer:
        elements = 1
        for dim in tensor.dims:
            elements *= dim
        count += elements
        size += elements * onnx_dtype(tensor.data_type).bits // 8
    return {"parameters": count, "weight_bytes": size}


def _saved(path: Path) -> dict[str, Any]:
    from tilewright.cli.source import model_ports
    from tilewright.runtime.container import read_container

    container = read_container(path)
    manifest = container.manifest
    inputs, outputs = model_ports(path, {})
    segmented = "segmented" in manifest
    target = manifest["segmented"]["target"] if segmented else manifest["target"].get("cpu", "")
    return {
        "file": str(path),
        "format": "compiled in segments" if segmented else "compiled",
        "target": target,
        "precision": manifest.get("precision", "f32"),
        "inputs": [str(port) for port in inputs],
        "outputs": [str(port) for port in outputs],
        "sizes": list(manifest.get("symbols", ())),
        "operators": {},
        "kernels": len(manifest.get("kernels", ())),
        "code_bytes": sum(map(len, container.objects.values())),
        "weight_bytes": int(container.weights.nbytes),
    }


def _print(found: dict[str, Any]) -> None:
    """All that is not empty, a line each; operators as a table."""
    for key in ("file", "format", "producer", "target", "precision", "kernels", "parameters"):
        if found.get(key):
            click.echo(f"{key}: {found[key]}")
    if "opsets" in found:
        click.echo(f"opsets: {', '.join(f'{d} {v}' for d, v in found['opsets'].items())}")
    for key in ("inputs", "outputs", "sizes"):
        click.echo(f"{key}: {', '.join(found[key]) or 'none'}")
    click.echo(f"weights: {size_text(found['weight_bytes'])}")
    if found["operators"]:
        host = found["host_operators"]
        rows = [[op, n, _where(n, host.get(op, 0))] for op, n in found["operators"].items()]
        print_table(["operator", "count", "runs"], rows)


def _where(count: int, on_host: int) -> str:
    """Where the nodes of an operator run."""
    if not on_host:
        return "native"
    return "host" if on_host >= count else f"{on_host} on the host"
