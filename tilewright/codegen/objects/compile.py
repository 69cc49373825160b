"""LLVM text → optimised object code, through llvmlite."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from tilewright.core.errors import CodegenError
from tilewright.target.target import Target


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def target_machine(target: Target, level: int = 2) -> llvm.TargetMachine:
    """The LLVM back end for a target; code is position independent so that it can be a library."""
    _initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=",".join(target.features),
        opt=level,
        reloc="pic",
        codemodel="small",
    )


def parse(text: str, machine: llvm.TargetMachine, target: Target) -> llvm.ModuleRef:
    """Parse and verify a module."""
    header = f'target triple = "{target.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    try:
        module = llvm.parse_assembly(header + text)
        module.verify()
    except RuntimeError as error:
        raise CodegenError("codegen.llvm", f"LLVM refuses the generated code: {error}") from error
    return module


def optimize(
    text: str, machine: llvm.TargetMachine, target: Target, whole: bool = False
) -> llvm.ModuleRef:
    """Parse, verify and optimise a module.

    A kernel has nothing to inline but what says so, and no function that another could be
    simplified for: LLVM's passes over functions run, which take half the time of those over a
    `whole` module, and then what is used in one branch sinks into it, so that it takes no register
    elsewhere. LLVM's own vectorisers stay off: schedules have vectorised what is worth it.
    """
    module = parse(text, machine, target)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    if whole or target.emits_ptx:
        builder.getModulePassManager().run(module, builder)
        return module
    with llvm.create_new_module_pass_manager() as inline:
        inline.add_always_inliner_pass()
        inline.add_global_dead_code_eliminate_pass()
        inline.run(module, builder)
    passes, late = builder.getFunctionPassManager(), llvm.create_new_function_pass_manager()
    late.add_sinking_pass()
    late.add_instruction_combine_pass()
    late.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
            late.run(function, builder)
    return module


_compiled_modules = 0


def compiled_modules() -> int:
    """How many modules were compiled to machine code for this process so far."""
    return _compiled_modules


def count_module() -> None:
    """Count a module that was compiled, here or by a worker process."""
    global _compiled_modules
    _compiled_modules += 1


def compile_object(text: str, target: Target, optimized: bool = True, whole: bool = False) -> bytes:
    """A module as an object file, or as the assembly that a driver takes.

    Long code that runs once is not worth optimising: that takes longer than it could ever save. A
    module of functions that call each other is optimised as a `whole`.
    """
    count_module()
    machine = target_machine(target, level=2 if optimized else 0)
    module = optimize(text, machine, target, whole) if optimized else parse(text, machine, target)
    code: bytes = (
        machine.emit_assembly(module).encode() if target.emits_ptx else machine.emit_object(module)
    )
    return code


def compile_assembly(text: str, target: Target) -> str:
    """A module as assembly, for people."""
    machine = target_machine(target)
    assembly: str = machine.emit_assembly(optimize(text, machine, target))
    return assembly


def optimized_llvm(text: str, target: Target) -> str:
    """A module as LLVM sees it after its passes, for people."""
    return str(optimize(text, target_machine(target), target))
