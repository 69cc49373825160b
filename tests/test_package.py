"""The package's face: public names, found by editors and resolved on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilewright as tw


def test_every_public_name_is_there() -> None:
    assert sorted(tw.__all__) == tw.__all__
    for name in tw.__all__:
        assert getattr(tw, name).__doc__, name


def test_editors_see_the_public_names() -> None:
    assert {*tw.__all__, "__version__"} <= set(dir(tw))


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compilee'"):
        tw.compilee  # noqa: B018


def test_importing_the_package_imports_no_compiler() -> None:
    code = "import sys, tilewright; print([m for m in sys.modules if 'tilewright.' in m])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['tilewright.core', 'tilewright.core.version']"
