"""A compiled model as the text that is kept of it: every kernel's rule, trace, loops and digest.

The digest is of the LLVM text with the names of the module's own symbols numbered, so that it
changes only if the code does. Of statements that differ in
numbers only, the first few are shown, and long lines are cut; the digest covers what is not shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import groupby

from tests.kernels.cases import Case, build_model
from tilewright.driver.artifact.entry_point import emit_entry, frame_data
from tilewright.driver.compile_graph import lower
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import make_options
from tilewright.ir.loop.text import print_func

# A string, or the name of a global or local value.
_TOKEN = re.compile(r'[@%]"[^"]*"|"[^"]*"|[@%][-\w.$]+')
_DEFINED = re.compile(r"^(?:define [^@]*(@[-\w.$]+)|(@[-\w.$]+) = )", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# Statements of one form that are shown of a kernel.
FOLD = 2
# Expressions share their parts, the text of them does not: a line may be megabytes long.
WIDTH = 200


def snapshot(case: Case) -> str:
    """The text that is kept of one case."""
    build = lower(
        build_model(case.model), make_options(target=case.target, precision=case.precision)
    )
    kernels = build.distinct_kernels
    parts = [_kernel_text(k) for k in kernels.values()]
    calls = " ".join(str(list(kernels).index(kernel.name)) for kernel in build.kernels)
    plan = f"host program: calls {calls}; digest {_program_digest(build, list(kernels))}"
    return "\n\n".join([*parts, plan]) + "\n"


def rules_of(text: str) -> set[str]:
    """The scheduling rules that a snapshot's kernels have taken."""
    return set(re.findall(r"^kernel \S+: rule (\S+)$", text, re.MULTILINE))


def _kernel_text(kernel: Kernel) -> str:
    loops = "\n".join(_folded(print_func(kernel.finalized).splitlines()))
    head = f"kernel {kernel.name}: rule {kernel.rule}"
    return f"{head}\ncode {digest(kernel.llvm)}\n\n{kernel.trace.strip()}\n\n{loops}"


def _program_digest(build: ModelBuild, kernels: list[str]) -> str:
    """The digest of what calls the kernels: a module on a CPU, a list of launches on a GPU."""
    text = "\n".join(emit_entry(build).values())
    launches = json.dumps(frame_data(build), sort_keys=True, default=str)
    for number, name in enumerate(kernels):
        launches = launches.replace(f'"{name}', f'"kernel{number}')
    return digest(text + launches, kernels)


def digest(llvm: str, own: Collection[str] = ()) -> str:
    """A digest that does not depend on what a module, or whoever calls it, names its symbols.

    Names that are only declared stay: another function of the runtime is another program.
    """
    return hashlib.sha256(canonical(llvm, own).encode()).hexdigest()[:16]


def canonical(llvm: str, own: Collection[str] = ()) -> str:
    """LLVM text whose local values and own functions are numbered as they appear."""
    renamed = {a or b for a, b in _DEFINED.findall(llvm)} | {f"@{name}" for name in own}
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == '"' or (token[0] == "@" and token not in renamed):
            return token
        return numbers.setdefault(token, f"{token[0]}{len(numbers)}")

    return _TOKEN.sub(number, llvm)


def _folded(lines: list[str]) -> Iterator[str]:
    """Lines whose form, all but the numbers, was there before: only the first few are shown."""
    seen: Counter[str] = Counter()

    def is_repeated(line: str) -> bool:
        form = _NUMBER.sub("#", line)
        seen[form] += 1
        return seen[form] > FOLD

    for repeated, group in groupby(lines, is_repeated):
        run = list(group)
        if repeated and len(run) > 1:
            indent = run[0][: len(run[0]) - len(run[0].lstrip())]
            yield f"{indent}... {len(run)} lines of forms above"
        else:
            yield from (x if len(x) <= WIDTH else f"{x[:WIDTH]} ... {len(x)}" for x in run)
