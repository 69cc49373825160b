from __future__ import annotations

from tests.models import mlp
from tilewright.arith.expr import Var
from tilewright.arith.simplify import simplify
from tilewright.driver.compile_graph import lower
from tilewright.driver.kernel.kernel import free_dims
from tilewright.driver.options import make_options

FUNC = """
func @f(x: f32[N, K], y: f32[N]) outputs(y) {
  for i in serial(N) {
    block "y" [a: S(N) = i] reads x[a, M] writes y[a]
      { y[a] = x[a, M] }
  }
}
"""


def test_free_dims_are_bound_by_no_loop() -> None:
    build = lower(mlp("N"), make_options("aarch64"))
    for kernel in build.kernels:
        assert free_dims(kernel.finalized) == kernel.dim_params
        assert set(kernel.dim_params) <= {"N"}


def test_work_is_in_terms_of_the_model() -> None:
    build = lower(mlp("N"), make_options("aarch64"))
    for kernel in build.kernels:
        assert kernel.dim_args == tuple(Var(name) for name in kernel.dim_params)
        total = kernel.param_bytes[0]
        for moved in kernel.param_bytes[1:]:
            total = total + moved
        assert kernel.bytes is simplify(total)
        assert len(kernel.param_bytes) + len(kernel.workspaces) == len(kernel.finalized.params)
