"""Execution providers: only the CPU; requests for others are answered as by ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

CPU = "CPUExecutionProvider"
AVAILABLE = (CPU,)
ALL = (
    "NvTensorRTRTXExecutionProvider",
    "TensorrtExecutionProvider",
    "CUDAExecutionProvider",
    "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider",
    "DnnlExecutionProvider",
    "VitisAIExecutionProvider",
    "QNNExecutionProvider",
    "NnapiExecutionProvider",
    "VSINPUExecutionProvider",
    "JsExecutionProvider",
    "CoreMLExecutionProvider",
    "ACLExecutionProvider",
    "DmlExecutionProvider",
    "RknpuExecutionProvider",
    "WebNNExecutionProvider",
    "WebGpuExecutionProvider",
    "XnnpackExecutionProvider",
    "CANNExecutionProvider",
    "AzureExecutionProvider",
    CPU,
)
"""The names that ONNX Runtime knows, in its order of preference."""

Given = Sequence[str | tuple[str, dict[Any, Any]]] | None
Options = Sequence[dict[Any, Any]] | None


def get_available_providers() -> list[str]:
    """The providers that sessions can use."""
    return list(AVAILABLE)


def get_all_providers() -> list[str]:
    """The providers whose names are known."""
    return list(ALL)


def chosen_providers(given: Given, options: Options) -> dict[str, dict[str, str]]:
    """The providers a session uses, with their options; what is wrong is a ValueError.

    Unknown names are refused, known ones that are not available are warned about and left out.
    """
    for name, wanted in _pairs(given, options):
        if name not in AVAILABLE:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(AVAILABLE)}'",
                stacklevel=5,
            )
        if name not in ALL:
            raise ValueError(f"Unknown Provider Type: {name}")
        _texts(wanted)
    return {CPU: {}}


def _pairs(given: Given, options: Options) -> list[tuple[str, Mapping[Any, Any]]]:
    if given is None:
        return []
    if not isinstance(given, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if options is None:
        return [_pair(provider) for provider in given]
    if not isinstance(options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(given) != len(options):
        raise ValueError(
            "'providers' and 'provider_options' should be the same length if both are given."
        )
    if not all(isinstance(provider, str) for provider in given):
        raise ValueError(
            "Only string values for 'providers' are supported if 'provider_options' is given."
        )
    if not all(isinstance(each, dict) for each in options):
        raise ValueError("'provider_options' values must be dicts.")
    return [(str(name), each) for name, each in zip(given, options, strict=True)]


def _pair(provider: Any) -> tuple[str, Mapping[Any, Any]]:
    match provider:
        case str():
            return provider, {}
        case (str() as name, dict() as options) if isinstance(provider, tuple):
            return name, options
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")


def _texts(options: Mapping[Any, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in options.items()}
