"""The C interface of an exported library: its header, and the functions as LLVM IR.

Both are templates over the library's name and the ports of the model; the functions wrap the native
ones of the model, which stay hidden, and keep the arena between calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

NO_MEMORY = -1
"""What `<name>_run` returns when there is no memory for the arena."""

FUNCTIONS = (
    "run",
    "run_in",
    "arena_size",
    "output_shapes",
    "set_threads",
    "get_threads",
    "shutdown",
)
"""The functions of a library, without its name."""

_C_TYPES = {
    "bool": "uint8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "f16": "uint16_t",
    "bf16": "uint16_t",
    **{f"f8{form}": "uint8_t" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0")},
    **dict.fromkeys(("f6e2m3", "f6e3m2", "f4e2m1", "int4", "uint4", "int2", "uint2"), "uint8_t"),
    "f32": "float",
    "f64": "double",
    "c64": "float",
    "c128": "double",
}


def header_text(name: str, manifest: Mapping[str, Any]) -> str:
    """The C header of the library called `name`."""
    symbols, dynamic = manifest["symbols"], manifest.get("data_dependent_sizes", ())
    sources = [
        f"size of axis {axis} of input {manifest['inputs'][position]['name']}"
        for position, axis in manifest["dim_sources"]
    ]
    return _HEADER.substitute(
        name=name,
        guard=f"{name.upper()}_H",
        inputs=_ports("inputs", manifest["inputs"]),
        outputs=_ports("outputs", manifest["outputs"]),
        dims="\n".join(
            f" *   dims[{index}]: {symbol}, {source}"
            for index, (symbol, source) in enumerate(
                zip([*symbols, *dynamic], [*sources, *_limits(manifest)], strict=True)
            )
        )
        or " *   none: dims may be NULL",
        shapes=sum(len(port["shape"]) for port in manifest["outputs"]),
        n_inputs=len(manifest["inputs"]),
        n_outputs=len(manifest["outputs"]),
        n_dims=len(symbols) + len(dynamic),
        const="" if dynamic else "const ",
        no_memory=NO_MEMORY,
    )


def _limits(manifest: Mapping[str, Any]) -> list[str]:
    """A line for each data-dependent size: how large the outputs can become."""
    limits = [
        f"{port['name']}[{', '.join(map(str, shape))}]"
        for port, shape in zip(manifest["outputs"], manifest.get("output_limits", ()), strict=False)
    ]
    return [
        f"written by each run; at most {', '.join(limits)}"
        for _ in manifest.get("data_dependent_sizes", ())
    ]


def glue_ir(name: str, *, tiles: bool = False) -> str:
    """The library's functions; `tiles` adds a constructor that asks Linux for the AMX registers."""
    return _GLUE.substitute(name=name, no_memory=NO_MEMORY) + (_REQUEST_TILES if tiles else "")


def _ports(array: str, ports: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for index, port in enumerate(ports):
        shape = ", ".join(map(str, port["shape"]))
        c_type = _C_TYPES[port["dtype"]]
        lines.append(f" *   {array}[{index}]: {port['name']}, {port['dtype']}[{shape}], {c_type}*")
    # a name may hold anything, but must not end the comment it stands in
    return "\n".join(lines).replace("*/", "* /") or f" *   {array}: none"


_HEADER = Template("""\
/* $name: a compiled model. Link with lib$name, which needs libc only.
 *
 * Inputs and outputs are dense, row-major arrays in the caller's memory; an element of fewer than 8
 * bits has a byte, a complex number is a pair of floats:
$inputs
$outputs
 *
 * Sizes that are known only when the model runs:
$dims
 */
#ifndef $guard
#define $guard

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ${name}_inputs = $n_inputs, ${name}_outputs = $n_outputs, ${name}_dims = $n_dims };

/* Run the model; 0 is success, $no_memory means out of memory, anything else is the model's own
 * failure. Memory for intermediate results is kept for the next call. May be called from several
 * threads at once; only one of the calls then uses more than one thread. */
int32_t ${name}_run(const void* const* inputs, void* const* outputs, ${const}int64_t* dims);

/* The same with intermediate results in `arena`: ${name}_arena_size(dims) bytes of the caller's,
 * aligned to 64. */
int32_t ${name}_run_in(const void* const* inputs, void* const* outputs, ${const}int64_t* dims,
                       void* arena);
int64_t ${name}_arena_size(const int64_t* dims);

/* Write the dimensions of all outputs, one output after the other: $shapes numbers. */
void ${name}_output_shapes(const int64_t* dims, int64_t* shapes);

/* The number of threads, 0 for one a processor (the default). */
void ${name}_set_threads(int32_t threads);
int32_t ${name}_get_threads(void);

/* End the threads and free the memory. No call may be running; a later one starts them anew. */
void ${name}_shutdown(void);

#ifdef __cplusplus
}
#endif
#endif
""")

_GLUE = Template("""
@tw_weights = external hidden constant i8
; An arena not in use: its size, then from byte 64 on its memory.
@arena = internal global ptr null

declare i32 @tw_main(ptr, ptr, ptr, ptr, ptr)
declare i64 @tw_arena_size(ptr)
declare void @tw_output_shapes(ptr, ptr)
declare void @tw_set_threads(i32)
declare i32 @tw_get_threads()
declare void @tw_shutdown()
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define i32 @${name}_run_in(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena) {
  %status = call i32 @tw_main(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr @tw_weights)
  ret i32 %status
}

define i32 @${name}_run(ptr %inputs, ptr %outputs, ptr %dims) {
  %size = call i64 @tw_arena_size(ptr %dims)
  %block = call ptr @take(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %no_memory, label %run
no_memory:
  ret i32 $no_memory
run:
  %arena = getelementptr i8, ptr %block, i64 64
  %status = call i32 @${name}_run_in(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena)
  ; put it back; what another call has put there meanwhile is one too many
  %extra = atomicrmw xchg ptr @arena, ptr %block acq_rel
  call void @free(ptr %extra)
  ret i32 %status
}

; The arena left by an earlier call if it is large enough, or a new one.
define internal ptr @take(i64 %size) {
  %kept = atomicrmw xchg ptr @arena, ptr null acq_rel
  %none = icmp eq ptr %kept, null
  br i1 %none, label %make, label %measure
measure:
  %has = load i64, ptr %kept
  %enough = icmp uge i64 %has, %size
  br i1 %enough, label %give, label %drop
give:
  ret ptr %kept
drop:
  call void @free(ptr %kept)
  br label %make
make:
  %padded = add i64 %size, 127
  %bytes = and i64 %padded, -64
  %new = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %give_new, label %label
label:
  store i64 %size, ptr %new
  br label %give_new
give_new:
  ret ptr %new
}

define i64 @${name}_arena_size(ptr %dims) {
  %size = call i64 @tw_arena_size(ptr %dims)
  ret i64 %size
}

define void @${name}_output_shapes(ptr %dims, ptr %shapes) {
  call void @tw_output_shapes(ptr %dims, ptr %shapes)
  ret void
}

define void @${name}_set_threads(i32 %threads) {
  call void @tw_set_threads(i32 %threads)
  ret void
}

define i32 @${name}_get_threads() {
  %threads = call i32 @tw_get_threads()
  ret i32 %threads
}

define void @${name}_shutdown() {
  call void @tw_shutdown()
  %kept = atomicrmw xchg ptr @arena, ptr null acq_rel
  call void @free(ptr %kept)
  ret void
}
""")

_REQUEST_TILES = """
declare i64 @syscall(i64, ...)
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]
  [{ i32, ptr, ptr } { i32 65535, ptr @request_tiles, ptr null }]

define internal void @request_tiles() {
  ; arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)
  ret void
}
"""
