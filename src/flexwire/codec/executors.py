"""The two functions that read and write one version: kernels where there are any, else Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.kernels.loading import kernels, load_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec.definition import Definition
    from flexwire.kernels.cache import Kernels

    Functions = tuple[Callable[[Any], Any], Callable[[Any], bytes]]


def kernel_functions(definition: Definition, version: int) -> Functions:
    """Give the functions that decode and encode a version; loads the kernels.

    They do what the class's methods do, errors included. Raises `UnknownMessageError` for a version
    that no release has.
    """
    load_kernels()
    return paying_functions(definition, version, 0) or python_functions(definition, version)


def paying_functions(definition: Definition, version: int, work: int) -> Functions | None:
    """Give them if this process runs on kernels; None if it does not, after ``work`` more bytes.

    They are made once for each version and kept as long as the process: a C function may outlive
    the object that asked for it.
    """
    loaded = kernels(work)
    if loaded is None:
        return None
    made = definition.functions.get(version)
    if made is None:
        made = definition.functions[version] = _on(loaded, definition, version)
    return made


def python_functions(definition: Definition, version: int) -> Functions:
    """Give functions that run no kernel, and judge what the kernels refuse."""
    definition.schema(version)

    def decode(data: Any) -> Any:
        return definition.decode_exactly(data, version)

    def encode(value: Any) -> bytes:
        return definition.encode(value, version)

    return decode, encode


def _on(loaded: Kernels, definition: Definition, version: int) -> Functions:
    # This needs numba, and would slow down a process that needs no kernels.
    from flexwire.kernels.objects.functions import UnsuitableError  # noqa: PLC0415 - see above
    from flexwire.kernels.objects.program import ObjectProgram  # noqa: PLC0415 - see above

    decode, encode = python_functions(definition, version)
    try:
        program = ObjectProgram(definition.schema(version), definition.classes)
    except UnsuitableError:
        return decode, encode
    shared = program.shared(loaded.read_struct, decode)
    _decode_by_class(loaded.decode_version, definition, version, (shared, program))
    return (
        program.function(loaded.decode, loaded.read_struct, "decode", decode),
        program.function(loaded.encode, loaded.write_struct, "encode", encode),
    )


def _decode_by_class(
    kernel: int, definition: Definition, version: int, shared: tuple[int, object]
) -> None:
    """Have the class's own ``decode`` be a C function, and let it know a version.

    Its own method looks up the version, which takes longer than to decode a small message.
    """
    from flexwire.kernels.objects.methods import VersionMethod  # noqa: PLC0415 - as in `_on`

    root: Any = definition.root
    if definition.method is None:
        definition.method = VersionMethod(kernel, root.decode)
        root.decode = definition.method.function
    definition.method.add(version, *shared)
