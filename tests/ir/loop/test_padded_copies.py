from __future__ import annotations

from tilewright.ir.loop.padded_copies import padded_copies
from tilewright.ir.loop.text import parse_func


def _found(stores: str) -> dict[str, list[tuple[int, str, str]]]:
    func = parse_func(
        f"""
        func @f(x: f32[H, 5], out p: f32[H + 6, 9], out q: f32[H + 6, 9]) {{
          for y in serial(H + 6) {{ for z in serial(9) {{ {stores} }} }}
        }}"""
    )
    copies = padded_copies(func.body)
    return {name: [(i.dim, str(i.begin), str(i.end)) for i in at] for name, at in copies.items()}


def test_both_dimensions_of_a_padded_image() -> None:
    found = _found("p[y, z] = x[y - 4, z - 2 ? 3 < y & y < H + 4 & 1 < z & z < 7]")
    assert found == {"p": [(0, "4", "H + 4"), (1, "2", "7")]}


def test_a_dimension_that_is_not_padded_is_none() -> None:
    assert _found("p[y, z] = x[y - 4, z ? 3 < y & y < H + 4]") == {"p": [(0, "4", "H + 4")]}


def test_what_is_written_twice_is_not_known() -> None:
    one = "p[y, z] = x[y - 4, z ? 3 < y & y < H + 4]"
    assert _found(f"{one} p[y, z] = 0.0") == {}


def test_other_values_are_no_copies() -> None:
    assert _found("p[y, z] = x[y, z] + 1.0") == {}
