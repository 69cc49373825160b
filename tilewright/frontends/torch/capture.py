"""A module, or a program that `torch.export` made or saved, to our graph.

    graph = import_torch(module, (torch.zeros(1, 3, 224, 224),))
    graph = import_saved(Path("model.pt2"))
    graph = import_script(Path("model.pt"), (torch.zeros(1, 3, 224, 224),))

Parameters and buffers are constants of the graph. Its inputs have the names of the arguments of
`forward`, its outputs those that `forward` gives them. Sizes are those of the examples; a program
exported with dynamic shapes keeps its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from tilewright.core.errors import Error, FrontendError, UnsupportedError
from tilewright.frontends.torch.decompositions import decompositions
from tilewright.frontends.torch.example_inputs import ExampleInputs
from tilewright.frontends.torch.importer import Imported, import_fx
from tilewright.frontends.torch.output_names import output_names
from tilewright.frontends.torch.program.archive import read_archive
from tilewright.frontends.torch.program.replay import SavedProgram
from tilewright.frontends.torch.script.archive import read_script
from tilewright.frontends.torch.script.module import ScriptModule
from tilewright.frontends.torch.symbolic_shapes import Sizes
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.canonicalize.name_outputs import name_outputs

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def import_torch(source: torch.nn.Module | ExportedProgram, inputs: Any = None) -> Graph:
    """The graph of a module called with `inputs`: tensors or types, in order or by name."""
    name = type(source).__name__
    if isinstance(source, ExportedProgram):
        return _imported(source, name)
    given = ExampleInputs.of(inputs)
    if source.training:
        raise UnsupportedError(
            "torch.training", "the module is in training mode", help="call module.eval() first"
        )
    return _called(source, given, name)


def import_saved(path: Path) -> Graph:
    """The graph of a program that `torch.export.save` has written."""
    saved = SavedProgram(read_archive(path))
    tensors, open_sizes = saved.examples()
    return _imported(_traced(saved, (), tensors, open_sizes), path.stem)


def import_script(path: Path, inputs: Any) -> Graph:
    """The graph of a module that `torch.jit.save` has written, called with `inputs`."""
    given = ExampleInputs.of(inputs)
    module = ScriptModule(read_script(path), given.named or len(given.args))
    return _called(module, given, path.stem)


def _called(module: torch.nn.Module, given: ExampleInputs, name: str) -> Graph:
    program = _traced(module, given.args, given.named, given.open_sizes())
    return _imported(program, name, given)


def _imported(program: ExportedProgram, name: str, given: ExampleInputs | None = None) -> Graph:
    program = _decomposed(program)
    _check_pure(program)
    sizes = Sizes() if given is None else given.sizes(program)
    imported = import_fx(program.graph_module, _constants(program), sizes, name)
    return name_outputs(imported.graph, _output_names(program, imported))


def exported(module: torch.nn.Module, given: ExampleInputs) -> ExportedProgram:
    """The program of a module in the mode that it is in, of operators that are converted."""
    return _decomposed(_traced(module, given.args, given.named, given.open_sizes()))


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    with _quiet():
        return program.run_decompositions(decompositions())


def _output_names(program: ExportedProgram, imported: Imported) -> list[str]:
    """Those that `forward` gives its results, else those that torch gives them."""
    spec = program.call_spec.out_spec
    own = [None] * len(imported.kinds) if spec is None else output_names(spec)
    given = [name for name, kind in zip(own, imported.kinds, strict=True) if kind is not None]
    return [a or b for a, b in zip(given, imported.graph.outputs, strict=True)]


def _traced(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    open_sizes: Any,
) -> ExportedProgram:
    try:
        with torch.no_grad(), _quiet():
            return torch.export.export(module, args, dict(named), dynamic_shapes=open_sizes)
    except Error:
        raise
    except Exception as error:  # the user's own code runs, and torch's
        raise FrontendError(
            "torch.export",
            f"torch.export cannot trace {type(module).__name__}: {_first_line(error)}",
            help="torch.export.export(module, inputs) must work by itself",
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch warns of its own code, which users can do nothing about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`isinstance.treespec, LeafSpec.` is deprecated")
        yield


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _check_pure(program: ExportedProgram) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise UnsupportedError(
                "torch.mutation",
                f"the module changes {spec.target or 'its state'} when it runs",
                help="call module.eval() first; torch.compile(module, backend='tilewright')"
                " supports buffers and inputs that are written to",
            )


def _constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The tensors behind placeholders that are no inputs."""
    stored = {**program.constants, **program.state_dict}
    specs = program.graph_signature.input_specs
    return {s.arg.name: stored[s.target] for s in specs if s.kind in _STORED and s.target}
