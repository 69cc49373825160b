"""Dimensions of inputs: ONNX names them with any text or not at all, we with variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnx import TensorShapeProto

from tilewright.arith.expr import Expr, Var, const
from tilewright.core.errors import ConfigError


class Dims:
    """Gives each ONNX dimension its expression; `fixed` are sizes chosen by the user, by name."""

    def __init__(self, fixed: Mapping[str, int]) -> None:
        for name, size in fixed.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise ConfigError("dims.size", f"dims[{name!r}] is {size!r}, not a size")
        self.fixed = dict(fixed)
        self._vars: dict[str, str] = {}
        self._unused = set(fixed)

    def of(self, dim: TensorShapeProto.Dimension, owner: str, axis: int) -> Expr:
        """The size of dimension `axis` of the input `owner`."""
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return const(int(dim.dim_value))
        given = str(dim.dim_param) if re.search(r"\w", dim.dim_param) else ""
        # Dimensions of no name, or named by signs like "?", have nothing to do with each other.
        key = given or f"{owner}_{axis}"
        var = self._variable(key, shared=bool(given))
        for name in (key, var):
            if name in self.fixed:
                self._unused.discard(name)
                return const(self.fixed[name])
        return Var(var)

    def check_used(self) -> None:
        """Refuse sizes for dimensions that the model does not have."""
        if self._unused:
            names = ", ".join(sorted(self._unused))
            known = ", ".join(dict.fromkeys(self._vars.values()))
            raise ConfigError(
                "dims.unknown",
                f"the model has no dynamic dimension named {names}",
                help=f"its dynamic dimensions: {known}" if known else "it has none",
            )

    def _variable(self, key: str, shared: bool) -> str:
        if shared and key in self._vars:
            return self._vars[key]
        base = re.sub(r"[^A-Za-z0-9_]+", "_", key).strip("_") or "d"
        base = base if not base[0].isdigit() else f"d{base}"
        name, count = base, 0
        while name in self._vars.values():
            count += 1
            name = f"{base}_{count}"
        self._vars[key if shared else f"\0{name}"] = name
        return name
