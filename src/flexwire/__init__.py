"""flexwire decodes, checks and measures Apache Kafka's wire protocol.

Decode one message at a time in Python (`message`, `flexwire.messages`, and `load_specs` for your
own specs), or billions on Spark (`flexwire.spark`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flexwire.moved import install

__version__ = "0.1.0"
__all__ = [
    "SpecSet",
    "__version__",
    "columnar",
    "decode_key",
    "decode_value",
    "errors",
    "kernel_status",
    "kernels",
    "load_kernels",
    "load_specs",
    "message",
    "messages",
    "records",
]

if TYPE_CHECKING:
    from flexwire import columnar, errors, kernels, messages, records
    from flexwire.codec.spec_set import SpecSet, load_specs
    from flexwire.kernels import kernel_status, load_kernels
    from flexwire.messages import message
    from flexwire.protocol.internal_records import decode_key, decode_value

_HOMES = {
    "kernel_status": "flexwire.kernels",
    "load_kernels": "flexwire.kernels",
    "message": "flexwire.codec",
    "decode_key": "flexwire.protocol.internal_records",
    "decode_value": "flexwire.protocol.internal_records",
    "load_specs": "flexwire.codec.spec_set",
    "SpecSet": "flexwire.codec.spec_set",
}
_MODULES = {"columnar", "errors", "kernels", "messages", "records"}


install()


def __getattr__(name: str) -> object:
    # The codec is loaded on first use. `flexwire --help` therefore does not load the codec.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"flexwire.{name}")
    raise AttributeError(f"module 'flexwire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
