"""`import onnxruntime` gives `tilewright.compat.onnxruntime`, be the other installed or not.

    import tilewright.compat.import_hook
    tilewright.compat.import_hook.install()
    import onnxruntime                    # ours

Processes that `tilewright run-app` starts do this before anything else: see `startup`. Modules of
ONNX Runtime that are not offered here (`onnxruntime.quantization`) come from the installed package,
if there is one; they find this package under the name they import. `importlib.metadata` says that
ONNX Runtime is installed, in the version whose interface is offered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType

NAME = "onnxruntime"
OURS = "tilewright.compat.onnxruntime"
# What is written in C++ there; the installed one must never be loaded beside ours.
_NATIVE = f"{NAME}.capi"


class _Alias(Loader):
    """Loads a module of ours under another name: both names mean the same module."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """An empty module, which `exec_module` replaces."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put ours in its place; Python's import then gives what stands there."""
        sys.modules[module.__name__] = import_module(self.target)


class _Metadata(Distribution):
    """What `importlib.metadata` is told of ONNX Runtime."""

    def read_text(self, filename: str) -> str | None:
        """The text of the one file that matters."""
        if filename != "METADATA":
            return None
        from tilewright.compat.onnxruntime.environment import VERSION

        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"

    def locate_file(self, path: object) -> object:  # type: ignore[override]
        """A path as it is: there are no files."""
        return path


class Finder(MetaPathFinder):
    """Finds `onnxruntime` and its modules here, and what is not here in the installed package."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """How to load a module, if it is one of ONNX Runtime's."""
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        ours = OURS + fullname.removeprefix(NAME)
        found = _own_spec(ours)
        if found is None:
            return _installed(fullname)
        spec = ModuleSpec(fullname, _Alias(ours), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """What is installed under the name, where that is asked for."""
        name = None if context is None else context.name
        if name is None or name.replace("_", "-").lower() == NAME:
            yield _Metadata()


def install() -> None:
    """From now on `import onnxruntime` gives ours; doing it twice changes nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def uninstall() -> None:
    """Undo `install`, for what is imported from now on."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    for name in [m for m in sys.modules if m == NAME or m.startswith(f"{NAME}.")]:
        del sys.modules[name]


def _own_spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # its package is not one of ours
        return None


def _installed(fullname: str) -> ModuleSpec | None:
    """Where the installed package has a module that is not offered here."""
    if fullname.startswith(f"{_NATIVE}."):
        return None
    places: Sequence[str] | None = None
    parts = fullname.split(".")
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return spec
