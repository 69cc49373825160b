"""Reading an object file: the sections, symbols and relocations of a 64-bit ELF file.

It supports what LLVM emits for this package: PROGBITS and NOBITS sections, defined and undefined
symbols, RELA relocations. Anything else is refused, never skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.core.errors import ExecutionError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_IDENT = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _NOTE, _LLVM = 1, 2, 3, 4, 8, 7, 0x6FFF4C00
_UNWIND = 0x70000001  # `.eh_frame` on x86-64
_KNOWN_TYPES = frozenset({0, _PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _NOTE, _UNWIND})
_WRITE, _ALLOC, _TLS = 1, 2, 0x400
_TO_RUN = (".ctors", ".dtors", ".init", ".fini", ".preinit")  # code to run at start or end
_ABSOLUTE, _RESERVED = 0xFFF1, 0xFF00
_LOCAL, _WEAK = 0, 2
_KNOWN_SYMBOLS = frozenset({0, 1, 2, 3, 4})  # no type, object, function, section, file


class ElfSection(NamedTuple):
    """An allocated section; `data` is None for `size` zeros (NOBITS)."""

    number: int
    name: str
    size: int
    alignment: int
    writable: bool
    data: bytes | None


class Symbol(NamedTuple):
    """A symbol; `section` is None where it is undefined or absolute."""

    name: str
    section: int | None
    value: int
    is_local: bool
    is_weak: bool


class Relocation(NamedTuple):
    """A reference at `offset` of a section to `symbol`, by index, of the type `kind`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass
class ObjectFile:
    """A parsed object file; `machine` is the ELF machine number."""

    machine: int
    sections: dict[int, ElfSection] = field(default_factory=dict)
    symbols: list[Symbol] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)


def read_object(name: str, data: bytes) -> ObjectFile:
    """Read the object file `data`; `name` is for messages."""
    try:
        return _Reader(name, data).read()
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise refusal(name, "is damaged") from error


def refusal(name: str, what: str) -> ExecutionError:
    """The error for an object file that cannot be used."""
    return ExecutionError(
        "native.link",
        f"the model's machine code cannot be linked: {name} {what}",
        help="compile the model again with this version of tilewright",
    )


class _Reader:
    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        if data[: len(_IDENT)] != _IDENT:
            raise refusal(name, "is not an object file")
        head = _HEADER.unpack_from(data)
        if head[1] != _RELOCATABLE or head[11] != _SECTION.size or head[12] >= _RESERVED:
            raise refusal(name, "is not a plain object file")
        self.result = ObjectFile(head[2])
        self.headers = [
            _SECTION.unpack_from(data, head[6] + number * _SECTION.size)
            for number in range(head[12])
        ]
        self.names = self._bytes(head[13])

    def read(self) -> ObjectFile:
        for index, header in enumerate(self.headers):
            if header[1] not in _KNOWN_TYPES and header[1] & _LLVM != _LLVM:
                raise refusal(self.name, f"has a section of type {header[1]:#x}")
            self._section(index, header)
        for header in self.headers:
            if header[1] == _SYMTAB:
                self.result.symbols = list(self._symbols(header))
            elif header[1] == _RELA and header[7] in self.result.sections:
                self.result.relocations += self._relocations(header)
        return self.result

    def _section(self, index: int, header: tuple[int, ...]) -> None:
        name = _text(self.names, header[0])
        # unwind tables serve exceptions and debuggers, which kernels do not use
        if not header[2] & _ALLOC or name == ".eh_frame":
            return
        odd = header[2] & _TLS or header[1] not in (_PROGBITS, _NOBITS)
        if odd or name.startswith(_TO_RUN):
            raise refusal(self.name, f"has a section {name}")
        data = None if header[1] == _NOBITS else self._bytes(index)
        self.result.sections[index] = ElfSection(
            index, name, header[5], max(header[8], 1), bool(header[2] & _WRITE), data
        )

    def _symbols(self, header: tuple[int, ...]) -> Iterator[Symbol]:
        strings = self._bytes(header[6])
        table = self.data[header[4] : header[4] + header[5]]
        for name_at, info, _, section, value, _ in _SYMBOL.iter_unpack(table):
            name = _text(strings, name_at)
            if info & 15 not in _KNOWN_SYMBOLS or _RESERVED <= section < _ABSOLUTE:
                raise refusal(self.name, f"has a symbol {name} of an unknown kind")
            if section > _ABSOLUTE:
                raise refusal(self.name, f"leaves the place of {name} open")
            binding = info >> 4
            where = None if section in (0, _ABSOLUTE) else section
            yield Symbol(name, where, value, binding == _LOCAL, binding == _WEAK)

    def _relocations(self, header: tuple[int, ...]) -> Iterator[Relocation]:
        table = self.data[header[4] : header[4] + header[5]]
        for offset, info, addend in _RELOCATION.iter_unpack(table):
            yield Relocation(header[7], offset, info & 0xFFFFFFFF, info >> 32, addend)

    def _bytes(self, section: int) -> bytes:
        offset, size = self.headers[section][4:6]
        found = self.data[offset : offset + size]
        if len(found) != size:
            raise refusal(self.name, "is cut off")
        return found


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(0, start)].decode()
