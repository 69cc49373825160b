"""Loads and stores → LLVM instructions: contiguous vectors, masks, gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.arith.expr import Expr, Load
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.codegen.llvm.types import intrinsic_suffix, is_widened, memory_type, register_type
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.ir.loop.nodes import Store


def emit_load(em: ValueEmitter, e: Load) -> str:
    """The register that holds a loaded value."""
    (index,) = e.indices
    if e.lanes == 1:
        return _scalar_load(em, e, index)
    if isinstance(index, Ramp) and index.stride == 1:
        return _vector_load(em, e, index)
    if isinstance(index, Ramp) and _is_picked(e, index):
        return em.value(_picked(e, index))
    return _gather(em, e, index)


def _scalar_load(em: ValueEmitter, e: Load, index: Expr) -> str:
    kind = memory_type(e.dtype)
    pointer = _readable_pointer(em, e, index, 1)
    how = _access(em, e.buffer)
    loaded = em.fn.let(f"load {how}{kind}, ptr {pointer}, align {e.dtype.alignment}")
    return em.to_register(loaded, e.dtype, 1)


def _access(em: ValueEmitter, buffer: str) -> str:
    """How an instruction reaches a buffer: LLVM would keep some of what waits in registers."""
    return "volatile " if buffer in em.volatile else ""


def _vector_load(em: ValueEmitter, e: Load, index: Ramp) -> str:
    lanes = index.count
    kind = memory_type(e.dtype, lanes)
    if e.mask is None or e.mask.lanes == 1:
        # One condition for all lanes reads zeros from elsewhere where it is false.
        pointer = _readable_pointer(em, e, index.base, lanes)
        align = em.alignment(e.buffer, e.dtype, index.base)
        how = _access(em, e.buffer)
        loaded = em.fn.let(f"load {how}{kind}, ptr {pointer}, align {align}")
        return em.to_register(loaded, e.dtype, lanes)
    if not em.fn.module.masks_vectors:
        return em.to_register(_load_each(em, e, index), e.dtype, lanes)
    pointer = em.element_pointer(e.buffer, e.dtype, index.base)
    flags = register_type(BOOL, lanes)
    name = f"llvm.masked.load.{_memory_suffix(e.dtype, lanes)}.p0"
    em.fn.module.declare(name, f"{kind} (ptr, {flags}, {kind})")
    mask = em.vector(e.mask, lanes)
    loaded = em.fn.let(
        f"call {kind} @{name}(ptr align {e.dtype.alignment} {pointer}, {flags} {mask}, "
        f"{kind} zeroinitializer)"
    )
    return em.to_register(loaded, e.dtype, lanes)


def _load_each(em: ValueEmitter, e: Load, index: Ramp) -> str:
    """Element by element, without a branch: masked ones are zeros from elsewhere."""
    lanes, kind = index.count, memory_type(e.dtype)
    flags, vector = register_type(BOOL, lanes), memory_type(e.dtype, lanes)
    assert e.mask is not None
    mask = em.vector(e.mask, lanes)
    zeros = em.fn.module.zeros(e.dtype.bytes)
    # What all lanes are off for may be anywhere.
    first = em.possible_pointer(e.buffer, e.dtype, index.base)
    result = "poison"
    for lane in range(lanes):
        place = em.fn.let(f"getelementptr {kind}, ptr {first}, i64 {lane}")
        on = em.lane(mask, flags, lane)
        pointer = em.fn.let(f"select i1 {on}, ptr {place}, ptr {zeros}")
        loaded = em.fn.let(f"load {kind}, ptr {pointer}, align {e.dtype.alignment}")
        result = em.fn.let(f"insertelement {vector} {result}, {kind} {loaded}, i64 {lane}")
    return result


def _readable_pointer(em: ValueEmitter, e: Load, index: Expr, lanes: int) -> str:
    """The address of an element, or of zeros where the load's (scalar) mask is false."""
    if e.mask is None:
        return em.element_pointer(e.buffer, e.dtype, index)
    mask = em.value(e.mask)
    # Where the mask is false, the address may be anything.
    place = em.possible_pointer(e.buffer, e.dtype, index)
    zeros = em.fn.module.zeros(lanes * e.dtype.bytes)
    return em.fn.let(f"select i1 {mask}, ptr {place}, ptr {zeros}")


def _is_picked(e: Load, index: Ramp) -> bool:
    """Whether everything between the elements is loaded, and they are picked from it."""
    if (e.mask is not None and e.mask.lanes > 1) or is_widened(e.dtype):
        return False
    return index.is_dense


def _picked(e: Load, index: Ramp) -> Expr:
    """Every second, third or fourth element of whole vectors.

    The last of them ends with the last element of the vector: nothing beyond it is read.
    """
    stride, count = index.stride, index.count
    last = (count - 1) * stride + 1 - count
    starts = [min(k * count, last) for k in range(stride)]
    vectors = [Load(e.buffer, (Ramp(index.base + s, 1, count),), e.dtype, e.mask) for s in starts]
    result: Expr = vectors[0]
    for k in range(1, stride):
        picks = tuple(_pick(i * stride, i, count, k, starts[k]) for i in range(count))
        result = Shuffle(result, vectors[k], picks)
    return result


def _pick(place: int, lane: int, count: int, k: int, start: int) -> int:
    """The shuffle index of `lane` when vector `k` is joined with those before it."""
    if place // count == k:
        return count + place - start
    return place if k == 1 and place < count else lane


def _gather(em: ValueEmitter, e: Load, index: Expr) -> str:
    """Element by element, at the addresses of the index vector."""
    lanes = e.lanes
    kind = memory_type(e.dtype)
    mask = None if e.mask is None else em.vector(e.mask, lanes)
    if mask is None:
        pointers = _places(em, e.buffer, e.dtype, index, lanes)
    else:
        indices, base = _readable(em, em.vector(index, lanes), em.pointers[e.buffer], mask, lanes)
        pointers = _indexed(em, kind, base, indices, lanes)
    result = "poison"
    for lane, pointer in enumerate(pointers):
        loaded = em.fn.let(f"load {kind}, ptr {pointer}, align {e.dtype.alignment}")
        result = em.fn.let(
            f"insertelement {memory_type(e.dtype, lanes)} {result}, {kind} {loaded}, i64 {lane}"
        )
    value = em.to_register(result, e.dtype, lanes)
    if mask is None:
        return value
    register = register_type(e.dtype, lanes)
    flags = register_type(BOOL, lanes)
    return em.fn.let(f"select {flags} {mask}, {register} {value}, {register} zeroinitializer")


def _places(em: ValueEmitter, buffer: str, dtype: DType, index: Expr, lanes: int) -> Iterator[str]:
    """The address of each lane's element; evenly spaced ones are counted from the first."""
    kind = memory_type(dtype)
    if not isinstance(index, Ramp):
        return _indexed(em, kind, em.pointers[buffer], em.vector(index, lanes), lanes)
    # Not `inbounds`: a masked first lane may have any address.
    base = em.pointers[buffer]
    first = em.fn.let(f"getelementptr {kind}, ptr {base}, i64 {em.value(index.base)}", "p")
    distances = (lane * index.stride for lane in range(lanes))
    return (em.fn.let(f"getelementptr {kind}, ptr {first}, i64 {d}") for d in distances)


def _indexed(em: ValueEmitter, kind: str, base: str, indices: str, lanes: int) -> Iterator[str]:
    wide = register_type(I64, lanes)
    for lane in range(lanes):
        position = em.lane(indices, wide, lane)
        yield em.fn.let(f"getelementptr inbounds {kind}, ptr {base}, i64 {position}")


def _readable(em: ValueEmitter, indices: str, base: str, mask: str, lanes: int) -> tuple[str, str]:
    """Lanes that are off read element 0, which exists if any lane is on; else zeros elsewhere."""
    flags, wide = register_type(BOOL, lanes), register_type(I64, lanes)
    indices = em.fn.let(f"select {flags} {mask}, {wide} {indices}, {wide} zeroinitializer")
    name = f"llvm.vector.reduce.or.v{lanes}i1"
    em.fn.module.declare(name, f"i1 ({flags})")
    some = em.fn.let(f"call i1 @{name}({flags} {mask})")
    return indices, em.fn.let(f"select i1 {some}, ptr {base}, ptr {em.fn.module.zeros()}")


def _memory_suffix(dtype: DType, lanes: int) -> str:
    if is_widened(dtype):
        return f"v{lanes}i8"
    return intrinsic_suffix(dtype, lanes)


def emit_store(em: ValueEmitter, s: Store) -> None:
    """Write a value; a masked scalar store is the statement emitter's branch."""
    (index,) = s.indices
    lanes = max(s.value.lanes, index.lanes)
    dtype = s.value.dtype
    value = em.to_memory(em.vector(s.value, lanes), dtype, lanes)
    if index.lanes == 1:
        pointer = em.element_pointer(s.buffer, dtype, index)
        how, kind = _access(em, s.buffer), memory_type(dtype)
        em.fn.emit(f"store {how}{kind} {value}, ptr {pointer}, align {dtype.alignment}")
    elif isinstance(index, Ramp) and index.stride == 1:
        _vector_store(em, s, index, value)
    else:
        _scatter(em, s, index, value)
    em.loads.stored(s, value)


def _vector_store(em: ValueEmitter, s: Store, index: Ramp, value: str) -> None:
    dtype, lanes = s.value.dtype, index.count
    kind = memory_type(dtype, lanes)
    pointer = em.element_pointer(s.buffer, dtype, index.base)
    if s.mask is None:
        align = em.alignment(s.buffer, dtype, index.base)
        em.fn.emit(f"store {_access(em, s.buffer)}{kind} {value}, ptr {pointer}, align {align}")
        return
    flags = register_type(BOOL, lanes)
    name = f"llvm.masked.store.{_memory_suffix(dtype, lanes)}.p0"
    em.fn.module.declare(name, f"void ({kind}, ptr, {flags})")
    mask = em.vector(s.mask, lanes)
    em.fn.emit(
        f"call void @{name}({kind} {value}, ptr align {dtype.alignment} {pointer}, {flags} {mask})"
    )


def _scatter(em: ValueEmitter, s: Store, index: Expr, value: str) -> None:
    """Element by element, in lane order; a masked lane is skipped by a branch."""
    dtype, lanes = s.value.dtype, index.lanes
    kind = memory_type(dtype)
    mask = None if s.mask is None else em.vector(s.mask, lanes)
    places = _places(em, s.buffer, dtype, index, lanes)
    # Addresses come before the branches: each is known in all that follow.
    for lane, pointer in enumerate(places if mask is None else tuple(places)):
        item = em.lane(value, memory_type(dtype, lanes), lane)
        store = f"store {kind} {item}, ptr {pointer}, align {dtype.alignment}"
        if mask is None:
            em.fn.emit(store)
        else:
            _guarded(em, em.lane(mask, register_type(BOOL, lanes), lane), store)


def _guarded(em: ValueEmitter, condition: str, instruction: str) -> None:
    then, done = em.fn.label("lane"), em.fn.label("next")
    em.fn.emit(f"br i1 {condition}, label %{then}, label %{done}")
    em.fn.start(then)
    em.fn.emit(instruction)
    em.fn.emit(f"br label %{done}")
    em.fn.start(done)
