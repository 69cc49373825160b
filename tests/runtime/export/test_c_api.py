from __future__ import annotations

import re

import llvmlite.binding as llvm

from tests.for_each import for_each
from tests.runtime.fake_model import manifest
from tilewright.core.dtypes import DTYPES, DType
from tilewright.runtime.export.c_api import FUNCTIONS, glue_ir, header_text

_WIDTHS = (1, 2, 4, 8)


def test_header_says_what_to_pass() -> None:
    text = header_text("net", manifest())
    for line in [
        " *   inputs[0]: x, f32[N, 3], float*",
        " *   outputs[1]: s, f32[2 * N], float*",
        " *   dims[0]: N, size of axis 0 of input x",
        "enum { net_inputs = 2, net_outputs = 2, net_dims = 1 };",
    ]:
        assert line in text.splitlines()
    assert "one output after the other: 3 numbers" in text
    for function in FUNCTIONS:
        assert f" net_{function}(" in text


def test_header_of_late_sizes() -> None:
    """The caller gives room for them, and enough for the outputs."""
    text = header_text(
        "net", manifest(data_dependent_sizes=["L"], output_limits=[["N", 3], ["2 * N"]])
    )
    assert " *   dims[1]: L, written by each run; at most y[N, 3], s[2 * N]" in text.splitlines()
    assert "net_dims = 2" in text
    assert "void* const* outputs, int64_t* dims);" in text


def test_header_of_a_static_model() -> None:
    port = {"name": "evil */ name", "dtype": "bf16", "shape": []}
    changes = {"symbols": [], "dim_sources": [], "inputs": [], "outputs": [port]}
    text = header_text("net", manifest(**changes))
    assert " *   inputs: none" in text
    assert "evil * / name, bf16[], uint16_t*" in text
    assert "dims may be NULL" in text


@for_each("dtype", [d for d in DTYPES.values() if d.name != "string"], ids=str)
def test_every_type_has_one_in_c(dtype: DType) -> None:
    port = {"name": "y", "dtype": dtype.name, "shape": [2]}
    changes = {"symbols": [], "dim_sources": [], "inputs": [], "outputs": [port]}
    (found,) = re.findall(r"y, \S+\[2\], (\w+)\*", header_text("net", manifest(**changes)))
    sizes = {"float": 4, "double": 8} | {f"{u}int{8 * n}_t": n for u in ("", "u") for n in _WIDTHS}
    assert sizes[found] == dtype.alignment


@for_each("tiles", [False, True])
@for_each("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_glue_compiles(triple: str, tiles: bool) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(glue_ir("net", tiles=tiles))
    module.verify()
    defined = {f.name for f in module.functions if not f.is_declaration}
    assert {f"net_{function}" for function in FUNCTIONS} <= defined
    assert ("request_tiles" in defined) == tiles
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
    assert machine.emit_object(module)
