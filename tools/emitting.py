"""Object files of what numba compiled, for any machine, in which one name can be seen."""

from __future__ import annotations

import re
from typing import Any

from llvmlite import binding

from flexwire.kernels.object_files import RAISING, TRAP

# What is called is found when the library is loaded, so that a call goes there at once, and not by
# way of a stub for it; of what LLVM itself has called, the second line says so.
_AT_ONCE = """
!llvm.module.flags = !{!99999}
!99999 = !{i32 7, !"RtLibUseGOT", i32 1}
"""
# What code says of the machine that it was made for, besides what is true of any.
_MADE_FOR = re.compile(
    r'^target (?:triple|datalayout) = .*$|"target-(?:cpu|features)"="[^"]*"', re.MULTILINE
)


def target_machine(triple: str, processor: str, features: str) -> Any:
    """Give what makes code for a shared library of a kind of processor."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="default"
    )


def object_file(machine: Any, kernel: Any, symbol: str) -> bytes:
    """Give the object file of a kernel that numba compiled just now, in which it has a name."""
    module = _module(machine, kernel.inspect_llvm())
    for one in [one.name for one in module.functions if one.is_declaration]:
        if one.startswith(RAISING):
            module.link_in(_module(machine, TRAP.format(one)))
    for one in module.functions:
        if one.is_declaration and not one.name.startswith("llvm."):
            one.add_function_attribute("nonlazybind")
    for one in [*module.functions, *module.global_variables]:
        if not one.is_declaration:
            one.linkage = "internal"
    shown = module.get_function(kernel.native_name)
    shown.linkage = "external"
    shown.name = symbol
    # What only other ways into the kernel called is not called any more.
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(
        module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    )
    content: bytes = machine.emit_object(module)
    return content


def text(machine: Any, symbol: str, value: str) -> bytes:
    """Give an object file that holds a text, ended by a zero."""
    raw = value.encode()
    source = f'@{symbol} = constant [{len(raw) + 1} x i8] c"{value}\\00"'
    content: bytes = machine.emit_object(_module(machine, source))
    return content


def _module(machine: Any, source: str) -> Any:
    # No module has flags of its own, or parsing fails; they are the same in all that are linked.
    module = binding.parse_assembly(_MADE_FOR.sub("", source) + _AT_ONCE)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module
