"""The cipher suites that are opened: authenticated ones, of TLS 1.2 and 1.3."""

from __future__ import annotations

from typing import Final, NamedTuple

TLS_1_2: Final = 0x0303
TLS_1_3: Final = 0x0304
VERSION_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1"}


class Suite(NamedTuple):
    """What a cipher suite says of records: the cipher, the key's bytes, and the hash of its keys.

    ``implicit_bytes`` of the nonce come from the keys in TLS 1.2; the rest stands in each record.
    """

    is_gcm: bool
    key_bytes: int
    hash_name: str
    implicit_bytes: int


_GCM_128 = Suite(is_gcm=True, key_bytes=16, hash_name="sha256", implicit_bytes=4)
_GCM_256 = Suite(is_gcm=True, key_bytes=32, hash_name="sha384", implicit_bytes=4)
_CHACHA = Suite(is_gcm=False, key_bytes=32, hash_name="sha256", implicit_bytes=12)

# By IANA's registry; with RSA, DHE and ECDHE, of RSA, DSS and ECDSA, which keys do not tell apart.
_OF_TLS_1_2: Final = (
    dict.fromkeys((0x009C, 0x009E, 0x00A2, 0xC02B, 0xC02D, 0xC02F, 0xC031), _GCM_128)
    | dict.fromkeys((0x009D, 0x009F, 0x00A3, 0xC02C, 0xC02E, 0xC030, 0xC032), _GCM_256)
    | dict.fromkeys((0xCCA8, 0xCCA9, 0xCCAA), _CHACHA)
)
_OF_TLS_1_3: Final = {0x1301: _GCM_128, 0x1302: _GCM_256, 0x1303: _CHACHA}
SUITES: Final = {TLS_1_2: _OF_TLS_1_2, TLS_1_3: _OF_TLS_1_3}
"""By version and number."""
