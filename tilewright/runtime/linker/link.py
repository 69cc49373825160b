"""A linker: object files in, machine code in the memory of this process out.

    code = link({"model": data, ...})      code.address("tw_call")      code.close()

Code and constants are in executable, read-only pages, followed by writable data. Undefined symbols
are resolved in the process: libc, libm. Position-independent code has so few kinds of relocations
that LLVM's linker, of tens of megabytes, is not needed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Mapping
from functools import cache

from tilewright.runtime.linker.elf import ObjectFile, Relocation, Symbol, read_object, refusal
from tilewright.runtime.linker.relocations import MACHINES, RelocationKind

_MACHINE_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}
_LIBRARIES = (None, "libm.so.6", "libgcc_s.so.1")  # the process first
_FAILED = ctypes.c_void_p(-1).value


class LinkedCode:
    """Machine code in memory, with the addresses of its global symbols."""

    def __init__(self, base: int, size: int, symbols: Mapping[str, int]) -> None:
        self._base = base
        self._size = size
        self._symbols = symbols

    def address(self, name: str) -> int:
        """The address of the symbol `name`."""
        if name not in self._symbols:
            raise refusal("the model", f"has no function {name}")
        return self._symbols[name]

    def close(self) -> None:
        """Unmap the memory. The code must not be running."""
        if self._size:
            _libc().munmap(self._base, self._size)
            self._size = 0


def link(objects: Mapping[str, bytes]) -> LinkedCode:
    """Link object files for this machine."""
    linker = _Linker({name: read_object(name, data) for name, data in objects.items()})
    linker.lay_out()
    size = linker.reserve()
    base = _allocate(size)
    try:
        linker.relocate(base)
        _fill(base, linker.image, linker.code_size)
    except BaseException:
        _libc().munmap(base, size)
        raise
    return LinkedCode(base, size, {n: base + at for n, at in linker.globals.items()})


class _Linker:
    """Builds the image; symbols have offsets in it until `relocate` gets its address."""

    def __init__(self, objects: Mapping[str, ObjectFile]) -> None:
        self.objects = objects
        self.image = bytearray()
        self.code_size = 0
        self.sections: dict[tuple[str, int], int] = {}
        self.globals: dict[str, int] = {}
        self.slots: dict[str, int] = {}
        self.stubs: dict[str, int] = {}
        machine = MACHINES.get(next((o.machine for o in objects.values()), 0))
        here = os.uname().machine
        for name, read in objects.items():
            found = MACHINES.get(read.machine)
            if found is None or found.name != _MACHINE_NAMES.get(here, here):
                raise refusal(name, "is for another processor")
        assert machine is not None, "a model has at least one object"
        self.machine = machine

    def lay_out(self) -> None:
        """Lay out the sections, code and constants first, and define the global symbols."""
        self._place_sections(writable=False)
        self._find_globals()
        self._reserve_references()
        self._align(mmap.PAGESIZE)
        self.code_size = len(self.image)
        self._place_sections(writable=True)
        self._find_globals()

    def reserve(self) -> int:
        """The size of the image, in whole pages."""
        self._align(mmap.PAGESIZE)
        return len(self.image)

    def relocate(self, base: int) -> None:
        """Apply the relocations for an image at the address `base`."""
        for name, at in self.slots.items():
            self._put_address(at, self._target(name, base))
        for name, at in self.stubs.items():
            self.image[at : at + 8] = self.machine.stub
            self._put_address(at + 8, self._target(name, base))
        for name, read in self.objects.items():
            for relocation in read.relocations:
                self._apply(name, read, relocation, base)

    def _place_sections(self, writable: bool) -> None:
        for name, read in self.objects.items():
            for section in read.sections.values():
                if section.writable == writable:
                    self._align(section.alignment)
                    self.sections[name, section.number] = len(self.image)
                    self.image += bytes(section.size) if section.data is None else section.data

    def _find_globals(self) -> None:
        weak: dict[str, int] = {}
        for name, read in self.objects.items():
            for symbol in read.symbols:
                place = self.sections.get((name, symbol.section or 0))
                if symbol.is_local or place is None:
                    continue
                if symbol.is_weak:
                    weak.setdefault(symbol.name, place + symbol.value)
                elif self.globals.setdefault(symbol.name, place + symbol.value) != (
                    place + symbol.value
                ):
                    raise refusal(name, f"defines {symbol.name} a second time")
        self.globals = weak | self.globals

    def _reserve_references(self) -> None:
        """Reserve the GOT slots and PLT stubs that relocations need."""
        defined = {s.name for o in self.objects.values() for s in o.symbols if s.section}
        for name, read in self.objects.items():
            for relocation in read.relocations:
                via, symbol = self._kind(name, relocation).via, read.symbols[relocation.symbol]
                if via == "slot":
                    self._reserve(self.slots, self._key(name, symbol), 8)
                elif via == "stub" and symbol.name not in defined:
                    self._reserve(self.stubs, symbol.name, 16)

    def _reserve(self, places: dict[str, int], name: str, size: int) -> None:
        if name not in places:
            self._align(size)
            places[name] = len(self.image)
            self.image += bytes(size)

    def _kind(self, name: str, relocation: Relocation) -> RelocationKind:
        kind = self.machine.kinds.get(relocation.kind)
        if kind is None:
            raise refusal(name, f"has a relocation of the unknown kind {relocation.kind}")
        return kind

    def _key(self, name: str, symbol: Symbol) -> str:
        """The unique name of a symbol over all files."""
        return f"{name}\0{symbol.section}+{symbol.value}" if symbol.is_local else symbol.name

    def _place(self, name: str, symbol: Symbol, base: int) -> int:
        if symbol.is_local:
            return base + self.sections[name, symbol.section or 0] + symbol.value
        return self._target(symbol.name, base)

    def _target(self, key: str, base: int) -> int:
        """The address of a symbol by its key."""
        file, _, place = key.partition("\0")
        if place:
            section, _, value = place.partition("+")
            return base + self.sections[file, int(section)] + int(value)
        found = self.globals.get(key)
        return _find_in_process(key) if found is None else base + found

    def _apply(self, name: str, read: ObjectFile, relocation: Relocation, base: int) -> None:
        kind, symbol = self._kind(name, relocation), read.symbols[relocation.symbol]
        offset = self.sections[name, relocation.section] + relocation.offset
        if kind.via == "slot":
            target = base + self.slots[self._key(name, symbol)]
        elif kind.via == "stub" and symbol.name in self.stubs and not symbol.is_local:
            target = base + self.stubs[symbol.name]
        else:
            target = self._place(name, symbol, base)
        try:
            kind.patch(self.image, offset, base + offset, target + relocation.addend)
        except OverflowError as error:
            raise refusal(name, f"refers to {symbol.name or 'itself'}: {error}") from error

    def _put_address(self, at: int, address: int) -> None:
        self.image[at : at + 8] = address.to_bytes(8, "little")

    def _align(self, alignment: int) -> None:
        self.image += bytes(-len(self.image) % alignment)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    libc.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_long)
    libc.mmap.restype = pointer
    libc.mprotect.argtypes = (pointer, size, number)
    libc.munmap.argtypes = (pointer, size)
    return libc


def _find_in_process(name: str) -> int:
    for library in _libraries():
        try:
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        if found:
            return found
    raise refusal("the model", f"needs {name}, which is not to be found")


@cache
def _libraries() -> Iterable[ctypes.CDLL]:
    found = []
    for name in _LIBRARIES:
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue  # a symbol that is missing is reported
    return found


def _allocate(size: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base is None or base == _FAILED:
        raise refusal("the model", f"gets no memory: {os.strerror(ctypes.get_errno())}")
    return int(base)


def _fill(base: int, image: bytearray, code_size: int) -> None:
    """Write the image. Linux flushes instruction caches when pages become executable."""
    ctypes.memmove(base, bytes(image), len(image))
    if _libc().mprotect(base, code_size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise refusal("the model", f"may not be made executable: {reason}")
