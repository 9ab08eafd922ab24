"""Choose some fields of columns and the remaining rows: the expected result of pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


def paths(kind: pa.DataType, before: str = "") -> Iterator[str]:
    """Yield every name that may be requested, with dots."""
    while pa.types.is_list(kind):
        kind = kind.value_type
    for one in kind if pa.types.is_struct(kind) else ():
        yield before + one.name
        yield from paths(one.type, f"{before}{one.name}.")


def kept(value: Any, wanted: list[list[str]]) -> Any:
    if isinstance(value, list):
        return [kept(one, wanted) for one in value]
    if value is None or [] in wanted:
        return value
    inner = {name: [one[1:] for one in wanted if one[0] == name] for name in value}
    return {name: kept(one, inner[name]) for name, one in value.items() if inner[name]}
