"""The archive of `torch.jit.save` (.pt): the text of its classes, and its tensors."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.frontends.torch.script.unpickle import ScriptObject, damaged, unpickled

# Text is compressed in archives, and is not unpacked beyond this.
_MAX_TEXT = 1 << 26
_CODE = "code/"

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class ScriptArchive:
    """The module that was saved, the definitions by qualified name, and numbered constants."""

    root: ScriptObject
    definitions: Mapping[str, Definition]
    constants: tuple[Any, ...]

    def method(self, owner: ScriptObject, name: str) -> ast.FunctionDef:
        """The text of a method of an object's class."""
        defined = self.definitions.get(owner.qualified_name)
        for one in getattr(defined, "body", ()):
            if isinstance(one, ast.FunctionDef) and one.name == name:
                return one
        raise damaged(f"has no method {name} of {owner.qualified_name}")


def read_script(path: Path) -> ScriptArchive:
    """What an archive holds."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except OSError as error:
        raise damaged(f"cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, SyntaxError, ValueError, KeyError, RecursionError) as error:
        raise damaged(f"is damaged: {error}") from error


def _read(archive: zipfile.ZipFile) -> ScriptArchive:
    names = archive.namelist()
    data = next((name for name in names if name.endswith("data.pkl")), None)
    if data is None:
        raise damaged("holds no module")
    folder = data.removesuffix("data.pkl")
    root = _unpickled(archive, folder, "data")
    constants = _unpickled(archive, folder, "constants")
    if not isinstance(root, ScriptObject) or not isinstance(constants, tuple):
        raise damaged("holds no module")
    definitions: dict[str, Definition] = {}
    for name in names:
        if name.startswith(folder + _CODE) and name.endswith(".py"):
            definitions |= _definitions(name.removeprefix(folder + _CODE), _bytes(archive, name))
    return ScriptArchive(root, definitions, constants)


def _unpickled(archive: zipfile.ZipFile, folder: str, name: str) -> Any:
    def storage(key: str) -> bytearray:
        return _bytes(archive, f"{folder}{name}/{key}")

    return unpickled(bytes(_bytes(archive, f"{folder}{name}.pkl")), storage)


def _bytes(archive: zipfile.ZipFile, name: str) -> bytearray:
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED and entry.file_size > _MAX_TEXT:
        raise damaged(f"is damaged: {name} unpacks to {entry.file_size} bytes")
    return bytearray(archive.read(entry))


def _definitions(file: str, text: bytearray) -> dict[str, Definition]:
    """The classes and functions of a file by qualified name."""
    module = file.removesuffix(".py").replace("/", ".")
    body = ast.parse(text.decode(), file).body
    return {f"{module}.{one.name}": one for one in body if isinstance(one, Definition)}
