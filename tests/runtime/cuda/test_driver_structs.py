from __future__ import annotations

import ctypes

from tilewright.runtime.cuda import driver_structs


def test_sizes_are_those_of_the_driver() -> None:
    sizes = {"KernelNodeParams": 56, "LaunchAttribute": 72, "LaunchConfig": 56, "Edge": 8}
    assert {name: ctypes.sizeof(getattr(driver_structs, name)) for name in sizes} == sizes
    assert driver_structs.LaunchConfig.stream.offset == 32
    assert driver_structs.LaunchAttribute.value.offset == 8


def test_a_launch_says_whether_it_may_begin_early() -> None:
    kinds = (None, driver_structs.EARLY, driver_structs.TOGETHER)
    late, early, together = (driver_structs.launch((7, 64, 128), kind) for kind in kinds)
    for found in (late, early, together):
        sizes = (found.grid_x, found.grid_y, found.block_x, found.shared)
        assert sizes == (7, 1, 64, 128)
    assert (late.count, early.count, together.count) == (0, 1, 1)
    assert together.attributes[0].what == 2
    assert (early.attributes[0].what, early.attributes[0].value) == (6, 1)


def test_a_node_has_its_arguments() -> None:
    given = (ctypes.c_void_p * 2)(3, 4)
    found = driver_structs.node(9, (7, 64, 128), given)
    assert (found.function, found.grid_x, found.block_x, found.shared) == (9, 7, 64, 128)
    assert found.arguments == ctypes.addressof(given)


def test_edges_wait_or_leave_that_to_the_launch() -> None:
    for early, kind in ((False, (0, 0, 0)), (True, (1, 0, 1))):
        starts, ends, kinds, count = driver_structs.edges([11, 12], 13, early)
        assert (list(starts), list(ends), count) == ([11, 12], [13, 13], 2)
        assert all((e.source, e.target, e.kind) == kind for e in kinds)
    assert driver_structs.edges([], 13, True)[3] == 0
