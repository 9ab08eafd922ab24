"""A value that contains itself, or is too large to traverse, is refused like any invalid value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.definition import functions_of
from flexwire.errors import EncodeError
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec.message import Message

pytestmark = pytest.mark.slow

DEEPER = 100_000


def itself() -> list[Any]:
    """Return a list that contains itself twice, so that each level doubles the number
    of elements.
    """
    value: list[Any] = []
    value += [value, value]
    return value


def doubled() -> list[Any]:
    """Return a list of 60 levels, with too many elements to count one by one."""
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    return value


def deep() -> list[Any]:
    """Return a list that is nested deeper than the stack allows."""
    value: list[Any] = []
    for _ in range(DEEPER):
        value = [value]
    return value


def holds_itself() -> Any:
    """Return a structure that is the element of its own list."""
    value: Any = message("MetadataRequest")()
    value.topics = [value]
    return value


def writers(value: Message, version: int) -> dict[str, Callable[[], object]]:
    """Return every way to write a message."""
    definition = value.definition
    ways: dict[str, Callable[[], object]] = {
        f"{name} {encoding.value}": lambda write=write, encoding=encoding: write(  # type: ignore[misc]  # mypy cannot type what a lambda keeps
            value, version, encoding
        )
        for name, write in (
            ("encode", definition.encode),
            ("reference", definition.encode_reference),
        )
        for encoding in Encoding
    }
    ways["kernels"] = lambda: functions_of(definition, version)[1](value)
    ways["json"] = lambda: value.to_json(version)
    return ways


@pytest.mark.parametrize("made", [itself, doubled, deep, holds_itself])
@pytest.mark.parametrize("name", ["MetadataRequest", "FetchResponse", "ApiVersionsResponse"])
def test_it_is_refused_by_every_executor_in_every_field(name: str, made: Callable[[], Any]) -> None:
    kind = message(name)
    version = max(catalog().entry(name).versions)
    refused = 0
    for field in kind.definition.schema(version).fields:
        value = kind()
        setattr(value, field.attribute, made())
        told = set()
        for way, write in writers(value, version).items():
            try:
                write()
            except EncodeError as error:
                refused += 1
                if way in {"encode kafka", "reference kafka", "kernels", "json"}:
                    told.add(str(error))
            else:
                assert field.ignorable, way
        assert len(told) <= 1, told
    assert refused


def test_the_error_says_where() -> None:
    kind = message("MetadataRequest")
    with pytest.raises(EncodeError) as caught:
        kind(topics=[itself()]).encode(9)
    assert str(caught.value).startswith(
        "MetadataRequest v9 at topics[0]: expected a MetadataRequestTopic, got [[["
    )
    topic = kind.MetadataRequestTopic(name=itself())  # type: ignore[attr-defined]  # a class found by name
    with pytest.raises(EncodeError, match=r"v9 at topics\[0\]\.name: expected a str, got \[\["):
        kind(topics=[topic]).encode(9)


def test_one_list_may_stand_in_many_places() -> None:
    kind = message("MetadataRequest")
    topic = kind.MetadataRequestTopic(name="a")  # type: ignore[attr-defined]  # a class found by name
    value = kind(topics=[topic] * 3)
    assert kind.decode(value.encode(9), 9) == value
    assert value.encode(9) == value.definition.encode_reference(value, 9)
    assert kind(topics=(topic,) * 3).encode(9) == value.encode(9)
