from __future__ import annotations

from pathlib import Path

from tilewright.core.host.identity import machine_identity

CPUINFO = """\
processor\t: 0
model name\t: Fast
cpu MHz\t\t: {mhz}
flags\t\t: {flags}

processor\t: 1
model name\t: Other
"""


def test_this_machine_stays_the_same() -> None:
    assert machine_identity() == machine_identity()


def test_what_changes_from_moment_to_moment_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    found = []
    for mhz, flags in (("100", "avx"), ("200", "avx"), ("200", "avx avx2")):
        file.write_text(CPUINFO.format(mhz=mhz, flags=flags))
        found.append(machine_identity(file))
    assert found[0] == found[1] != found[2]
    assert "model name: Fast\nflags: avx\n" in str(found[0])


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    assert machine_identity(tmp_path / "absent") is None
