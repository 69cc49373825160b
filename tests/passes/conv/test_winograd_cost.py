from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.for_each import for_each
from tilewright.ops.conv.toom_cook import transforms
from tilewright.passes.conv.winograd_cost import (
    MAX_AMPLIFICATION,
    ConvShape,
    best_tile,
    direct_cycles,
    winograd_cycles,
)
from tilewright.target.registry import CPUS


def _image(size: int, channels: int, window: int = 3, images: int = 1) -> ConvShape:
    return ConvShape(images, (size, size), (window, window), channels, channels)


def test_many_pixels_and_channels_take_large_tiles() -> None:
    for target in CPUS.values():
        assert best_tile(_image(56, 64), target) == (4, 4)


def test_few_channels_stay() -> None:
    for target in CPUS.values():
        assert best_tile(_image(112, 8), target) is None
        assert best_tile(ConvShape(1, (224, 224), (3, 3), 3, 64), target) is None
        assert best_tile(_image(56, 64, window=1), target) is None


def test_filters_larger_than_the_image_take_smaller_tiles() -> None:
    """Wide vectors wait for the filters: the more points, the longer."""
    wide = CPUS["x86-64-v4"]
    small, large = best_tile(_image(7, 512), wide), best_tile(_image(7, 512, images=64), wide)
    assert large is not None
    assert small is None or prod(small) < prod(large)


def test_a_tile_that_fits_the_image() -> None:
    """14 pixels are three tiles of five, but four of four."""
    tile = best_tile(_image(14, 256), CPUS["aarch64"])
    assert tile is not None
    assert 5 in tile


@for_each("bits", MAX_AMPLIFICATION)
@for_each("window", [(3, 3), (5, 5), (3,), (5,), (7,), (1, 7), (2, 2)])
def test_errors_are_bounded(window: tuple[int, ...], bits: int) -> None:
    for size in (200, 512):
        shape = ConvShape(1, (size,) * len(window), window, 64, 64, bits)
        tile = best_tile(shape, CPUS["neoverse-v1"])
        assert tile is not None or bits < 32
        pairs = zip(tile or window, window, strict=True)
        errors = [transforms(m, r).amplification for m, r in pairs] if tile else []
        assert prod(errors) <= MAX_AMPLIFICATION[bits]


def test_f16_has_digits_for_small_tiles_only() -> None:
    shape = ConvShape(1, (56, 56), (3, 3), 64, 64, 16)
    assert best_tile(shape, CPUS["neoverse-v1"]) == (2, 2)


def test_costs_grow_with_the_work() -> None:
    target = CPUS["aarch64"]
    small, large = _image(28, 64), _image(56, 64)
    assert direct_cycles(small, target) < direct_cycles(large, target)
    assert winograd_cycles(small, (4, 4), target) < winograd_cycles(large, (4, 4), target)


def test_a_large_result_that_is_transposed_next_costs_more() -> None:
    """The convolution itself transposes it in L2; a small one is there for any kernel."""
    target = CPUS["x86-64-v4"]
    for size, large in ((28, False), (112, True)):
        alone = _image(size, 64)
        cycles = winograd_cycles(alone, (4, 4), target)
        turned = replace(alone, transposed=True)
        assert (winograd_cycles(turned, (4, 4), target) > 1.1 * cycles) is large
        assert direct_cycles(turned, target) == direct_cycles(alone, target)
