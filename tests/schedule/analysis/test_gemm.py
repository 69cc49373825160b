from __future__ import annotations

from tests.schedule.programs import conv, dense, softmax
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.analysis.gemm import is_im2col, match_gemm, operand_load, transposed_gemm


def test_matrices() -> None:
    gemm = match_gemm(find_block(dense(), "mm"))
    assert gemm is not None
    assert [it.name for it in gemm.m] == ["i0"]
    assert [it.name for it in gemm.n] == ["i1"]
    assert operand_load(gemm.a).buffer == "x"
    assert operand_load(gemm.b).buffer == "w"
    assert not gemm.batch


def test_the_transposed_product() -> None:
    gemm = match_gemm(find_block(dense(), "mm"))
    assert gemm is not None
    other = transposed_gemm(gemm)
    assert (other.m, other.n) == (gemm.n, gemm.m)
    assert (other.a, other.b) == (gemm.b, gemm.a)
    assert transposed_gemm(other) == gemm


def test_a_convolution_has_the_last_axis_of_its_result_as_columns() -> None:
    gemm = match_gemm(find_block(conv(), "conv"))
    assert gemm is not None
    assert len(gemm.k) == 2
    assert operand_load(gemm.a).buffer == "w"


def test_windows_overlap() -> None:
    gemm = match_gemm(find_block(conv(), "conv"))
    assert gemm is not None
    assert is_im2col(gemm.b, gemm.n, gemm.k)
    assert not is_im2col(gemm.a, gemm.m, gemm.k)


def test_other_sums_are_none() -> None:
    assert match_gemm(find_block(softmax(), "s")) is None
    assert match_gemm(find_block(softmax(), "y")) is None
