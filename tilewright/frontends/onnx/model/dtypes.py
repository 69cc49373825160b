"""ONNX's numbers of element types, and ours."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.core.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INT2,
    INT4,
    STRING,
    U8,
    U16,
    U32,
    U64,
    UINT2,
    UINT4,
    DType,
)
from tilewright.core.errors import UnsupportedError

DTYPES: dict[int, DType] = {
    TensorProto.FLOAT: F32,
    TensorProto.UINT8: U8,
    TensorProto.INT8: I8,
    TensorProto.UINT16: U16,
    TensorProto.INT16: I16,
    TensorProto.INT32: I32,
    TensorProto.INT64: I64,
    TensorProto.STRING: STRING,
    TensorProto.BOOL: BOOL,
    TensorProto.FLOAT16: F16,
    TensorProto.DOUBLE: F64,
    TensorProto.UINT32: U32,
    TensorProto.UINT64: U64,
    TensorProto.COMPLEX64: C64,
    TensorProto.COMPLEX128: C128,
    TensorProto.BFLOAT16: BF16,
    TensorProto.FLOAT8E4M3FN: F8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: F8E4M3FNUZ,
    TensorProto.FLOAT8E5M2: F8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: F8E5M2FNUZ,
    TensorProto.UINT4: UINT4,
    TensorProto.INT4: INT4,
    # By number: older versions of the package have no names for them.
    23: F4E2M1,
    24: F8E8M0,
    25: UINT2,
    26: INT2,
    27: F6E2M3,
    28: F6E3M2,
}


def onnx_dtype(code: int) -> DType:
    """Our element type for ONNX's number of it."""
    found = DTYPES.get(code)
    if found is None:
        known = TensorProto.DataType.values()
        name = TensorProto.DataType.Name(code) if code in known else str(code)
        raise UnsupportedError(
            "onnx.dtype",
            f"element type {name} is not supported",
            help=f"supported: {', '.join(map(str, DTYPES.values()))}",
        )
    return found
