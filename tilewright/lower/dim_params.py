"""The dimension parameters of a kernel: dimensions of its tensors, not of the model.

A dimension that the model computes, such as the width of an image after a few strides, is one
parameter of the kernel. Loop extents and addresses are then expressions over the parameters, and
layers whose dimensions are computed differently share one kernel.

    x: f32[N, (H + 3) // 4, (W + 3) // 4 * 8, 96]   →   x: f32[N, size.0, size.1 * 8, 96]
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.affine import factors, from_affine, product_atom, to_affine
from tilewright.arith.expr import Expr, Var
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.dims import map_exprs
from tilewright.ir.graph.nodes import Graph


class DimParams:
    """The dimension parameters of one kernel; `given` has the dimension each stands for."""

    def __init__(self) -> None:
        self.given: dict[str, Expr] = {}
        self._names: dict[Expr, Var] = {}

    def named_group(self, group: Graph) -> Graph:
        """A group over named sizes."""
        inputs = tuple(replace(v, type=map_exprs(v.type, self.named)) for v in group.inputs)
        typed = [(n, map_exprs(n.types, self.named)) for n in group.nodes]
        nodes = tuple(
            replace(n, types=types, attrs=map_exprs(n.attrs, self.known)) for n, types in typed
        )
        return replace(group, inputs=inputs, nodes=nodes)

    def named(self, size: Expr) -> Expr:
        """A size of a tensor, what is computed in it named."""
        return self._over(size, new=True)

    def known(self, e: Expr) -> Expr:
        """An expression over sizes that have names; as it is where it is not made of them."""
        return self._over(e, new=False)

    def _over(self, size: Expr, new: bool) -> Expr:
        form = to_affine(size)
        if all(isinstance(f, Var) for atom in form.coeffs for f in factors(atom)):
            return size
        # A factor of a size is no less than 0, as a name's value must be; a summand may be.
        if len(form.coeffs) > 1 or form.constant:
            return self._name(size, new)
        (atom,) = form.coeffs
        parts = [f if isinstance(f, Var) else self._name(f, new) for f in factors(atom)]
        return from_affine(to_affine(product_atom(parts)).scale(form.coeffs[atom]))

    def _name(self, size: Expr, new: bool) -> Expr:
        if size not in self._names:
            if not new or not free_vars(size):
                return size
            name = f"size.{len(self.given)}"
            self._names[size] = Var(name)
            self.given[name] = size
        return self._names[size]
