"""The archive of `torch.export.save` (.pt2): a program in JSON and the bytes of its tensors.

torch's own reader evaluates the expressions for sizes and unpickles the examples for inputs. Here
both are left alone: an archive is data.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tilewright.core.errors import FrontendError
from tilewright.frontends.torch.program.enumerations import DTYPES, STRIDED

# The version of the schema, which torch has written since 2.8.
MAJOR = 8
_PROGRAM = re.compile(r"(?:.*/)?models/[^/]*\.json")
_CONFIG = re.compile(r"(.*/)?[^/]*_(?:weights|constants)_config\.json")


@dataclass(frozen=True)
class Archive:
    """A program as JSON, and its tensors by their names in it."""

    program: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def read_archive(path: Path) -> Archive:
    """What an archive holds; its tensors are on the CPU wherever they were."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except OSError as error:
        raise damaged(f"cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, json.JSONDecodeError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(f"is damaged: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise damaged(f"does not say what it must: {type(error).__name__} {error}") from error


def damaged(what: str) -> FrontendError:
    """The error for an archive that is not as torch writes it."""
    return FrontendError(
        "torch.program",
        f"the program of torch.export {what}",
        help="save it again with torch.export.save of torch 2.8 or newer",
    )


def _read(archive: zipfile.ZipFile) -> Archive:
    names = archive.namelist()
    programs = [name for name in names if _PROGRAM.fullmatch(name)]
    if len(programs) != 1:
        raise damaged(f"holds {len(programs)} programs in the form that is read")
    program = json.loads(_stored(archive, programs[0]))
    major = program["schema_version"]["major"]
    if major != MAJOR:
        raise damaged(f"has version {major} of its schema, and version {MAJOR} is read")
    tensors: dict[str, torch.Tensor] = {}
    for name in names:
        if match := _CONFIG.fullmatch(name):
            config = json.loads(_stored(archive, name))["config"]
            tensors |= _tensors(archive, match[1] or "", config)
    return Archive(program, tensors)


def _stored(archive: zipfile.ZipFile, name: str) -> bytearray:
    """An entry's bytes. torch compresses none: what is compressed may be of any size."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED:
        raise damaged(f"is damaged: {name} is compressed")
    return bytearray(archive.read(entry))


def _tensors(
    archive: zipfile.ZipFile, folder: str, config: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Tensors by name; those of one file share their memory."""
    storages: dict[str, bytearray] = {}
    found: dict[str, torch.Tensor] = {}
    for name, entry in config.items():
        if entry["use_pickle"]:
            raise damaged(f"holds {name} as a pickle, which is not read")
        file = folder + entry["path_name"]
        if file not in storages:
            storages[file] = _stored(archive, file)
        found[name] = _tensor(name, storages[file], entry["tensor_meta"])
    return found


def _tensor(name: str, data: bytearray, meta: Mapping[str, Any]) -> torch.Tensor:
    if meta["layout"] != STRIDED:
        raise damaged(f"holds {name} in a sparse layout")
    dtype = DTYPES[meta["dtype"]]
    sizes = [_size(one) for one in meta["sizes"]]
    strides = [_size(one) for one in meta["strides"]]
    offset = _size(meta["storage_offset"])
    if len(sizes) != len(strides):
        raise damaged(f"holds {name} with {len(sizes)} sizes and {len(strides)} strides")
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if 0 in sizes:
        return torch.empty(sizes, dtype=dtype)
    if (last + 1) * dtype.itemsize > len(data):
        raise damaged(f"is damaged: {name} is larger than its file of {len(data)} bytes")
    return torch.frombuffer(data, dtype=dtype).as_strided(sizes, strides, offset)


def _size(one: Mapping[str, Any]) -> int:
    size = one["as_int"]
    if not isinstance(size, int) or size < 0:
        raise damaged(f"has a tensor with a size of {size}")
    return size
