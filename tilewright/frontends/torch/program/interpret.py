"""The calls of a saved graph, made one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tilewright.frontends.torch.program.enumerations import DTYPES, MEMORY_FORMATS
from tilewright.frontends.torch.program.targets import find_target

Values = dict[str, Any]


def run_graph(graph: Mapping[str, Any], values: Values) -> list[Any]:
    """The results of a graph for the values of its inputs, by name."""
    values = dict(values)
    for node in graph["nodes"]:
        _run_node(node, values)
    return [_argument(one, values) for one in graph["outputs"]]


def _run_node(node: Mapping[str, Any], values: Values) -> None:
    target = find_target(node["target"])
    given = [(one["name"], _argument(one["arg"], values), one["kind"]) for one in node["inputs"]]
    named = {name: value for name, value, kind in given if kind == _KEYWORD}
    result = target(*(value for _, value, kind in given if kind != _KEYWORD), **named)
    _bind(node["outputs"], result, values)


# How an argument of a call is given; any other number means by its place.
_KEYWORD = 2


def _bind(outputs: Sequence[Mapping[str, Any]], result: Any, values: Values) -> None:
    """Remember what a call gave by the names of its results."""
    if len(outputs) == 1 and "as_tensors" in outputs[0]:
        names = [one["name"] for one in outputs[0]["as_tensors"]]
        values.update(zip(names, result, strict=True))
    elif len(outputs) == 1:
        (found,) = result if isinstance(result, tuple | list) else (result,)
        _bind_one(outputs[0], found, values)
    else:
        for output, found in zip(outputs, result or (), strict=True):
            _bind_one(output, found, values)


def _bind_one(output: Mapping[str, Any], found: Any, values: Values) -> None:
    ((_, told),) = output.items()
    if isinstance(told, Mapping):
        name = told.get("name", told.get("as_name"))
        if name is not None:
            values[name] = found


def _argument(argument: Mapping[str, Any], values: Values) -> Any:
    ((kind, told),) = argument.items()
    return _READ[kind](told, values)


def _name(told: Mapping[str, Any], values: Values) -> Any:
    return values[told["name"]]


def _names(told: Sequence[Mapping[str, Any]], values: Values) -> list[Any]:
    return [values[one["name"]] for one in told]


def _nested_names(told: Sequence[Any], values: Values) -> list[Any]:
    return [_names(one, values) for one in told]


def _number(told: Mapping[str, Any], values: Values) -> Any:
    """A number that is written out, or has a name."""
    ((kind, found),) = told.items()
    return values[found] if kind == "as_name" else found


def _numbers(told: Sequence[Mapping[str, Any]], values: Values) -> list[Any]:
    return [_number(one, values) for one in told]


def _optional(told: Mapping[str, Any], values: Values) -> Any:
    return None if "as_none" in told else _name(told["as_tensor"], values)


def _optionals(told: Sequence[Mapping[str, Any]], values: Values) -> list[Any]:
    return [_optional(one, values) for one in told]


def _literal(told: Any, values: Values) -> Any:
    return told


def _float(told: Any, values: Values) -> Any:
    """JSON has no infinities: torch writes those as words."""
    return [_float(one, values) for one in told] if isinstance(told, list) else float(told)


def _nothing(told: Any, values: Values) -> None:
    return None


def _function(told: Mapping[str, Any], values: Values) -> Callable[..., Any]:
    """A graph in a graph, as a function of what it takes."""
    graph = told["graph"]
    names = [one["as_tensor"]["name"] for one in graph["inputs"]]

    def call(*given: Any) -> Any:
        results = run_graph(graph, dict(zip(names, given, strict=True)))
        return results[0] if graph["is_single_tensor_return"] else tuple(results)

    return call


def _device(told: Mapping[str, Any], values: Values) -> torch.device:
    """Programs are compiled for where they are run, wherever they were exported."""
    return torch.device("cpu")


def _complex(told: Mapping[str, Any], values: Values) -> complex:
    return complex(told["real"], told["imag"])


_READ: dict[str, Callable[[Any, Values], Any]] = {
    "as_none": _nothing,
    "as_tensor": _name,
    "as_tensors": _names,
    "as_nested_tensors": _nested_names,
    "as_optional_tensor": _optional,
    "as_optional_tensors": _optionals,
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _number),
    **dict.fromkeys(("as_sym_ints", "as_sym_floats", "as_sym_bools"), _numbers),
    **dict.fromkeys(("as_int", "as_bool", "as_string"), _literal),
    **dict.fromkeys(("as_ints", "as_bools", "as_strings", "as_int_lists"), _literal),
    **dict.fromkeys(("as_float", "as_floats", "as_float_lists"), _float),
    "as_complex": _complex,
    "as_scalar_type": lambda told, values: DTYPES[told],
    "as_memory_format": lambda told, values: MEMORY_FORMATS[told],
    "as_layout": lambda told, values: torch.strided,
    "as_device": _device,
    "as_graph": _function,
}
