"""The error codes of a message's body as columns of Spark, made from where its spec has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, StructField, StructType

from flexwire.answers.asking.topic_names import known_id
from flexwire.protocol.error_codes import ERROR_NAMES, NO_ERROR, RETRIABLE
from flexwire.tables.spec_places import error_places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from flexwire.tables.spec_places import ErrorPlace, Path

_ERRORS: Final = "array<struct<field: string, code: int, topic: string, topic_id: string>>"


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure in a body: its value, its columns and the error codes in it and below it.

    ``path`` is the way to it by columns, ``shown`` the same as text, and ``topic`` and ``topic_id``
    are what the structures around it say.
    """

    value: Column
    kind: StructType
    places: tuple[ErrorPlace, ...]
    path: Path
    shown: str
    topic: Column
    topic_id: Column

    def has_error(self) -> Column:
        """Whether an error code in it, or below it, is not 0."""
        no = F.lit(col=False)
        found = [self.value[code] != NO_ERROR for code in self._codes()]
        for name, kind in self._inner():
            inside = partial(self._inside, name, kind)
            value = self.value[name]
            if isinstance(kind, ArrayType):
                found.append(F.exists(value, _of_each(Structure.has_error, inside)))
            else:
                found.append(inside(value).has_error())
        return reduce(lambda one, other: one | F.coalesce(other, no), found, no)

    def errors(self) -> Column:
        """The error codes in it and below it that are not 0, as an array of structures."""
        none = F.array().cast(_ERRORS)
        found = [self._error(code) for code in self._codes()]
        for name, kind in self._inner():
            inside = partial(self._inside, name, kind)
            value = self.value[name]
            if isinstance(kind, ArrayType):
                found.append(F.flatten(F.transform(value, _of_each(Structure.errors, inside))))
            else:
                found.append(inside(value).errors())
        return F.concat(none, *(F.coalesce(one, none) for one in found))

    def _codes(self) -> list[str]:
        return [
            one.path[-1]
            for one in self.places
            if one.path[:-1] == self.path and one.path[-1] in self.kind.names
        ]

    def _inner(self) -> Iterator[tuple[str, DataType]]:
        depth = len(self.path)
        names = {one.path[depth]: None for one in self.places if len(one.path) > depth + 1}
        return ((name, self.kind[name].dataType) for name in names if name in self.kind.names)

    def _error(self, code: str) -> Column:
        error = F.struct(
            F.lit(self.shown + code).alias("field"),
            self.value[code].cast("int").alias("code"),
            self.topic.alias("topic"),
            self.topic_id.alias("topic_id"),
        )
        return F.when(self.value[code] != NO_ERROR, F.array(error).cast(_ERRORS))

    def _inside(self, name: str, kind: DataType, value: Column) -> Structure:
        """The structure of that name, or an element of the array of that name."""
        is_array = isinstance(kind, ArrayType)
        path = (*self.path, name)
        return Structure(
            value,
            cast("StructType", kind.elementType if isinstance(kind, ArrayType) else kind),
            tuple(one for one in self.places if one.path[: len(path)] == path),
            path,
            f"{self.shown}{name}[]." if is_array else f"{self.shown}{name}.",
            self.topic,
            self.topic_id,
        ).with_topic()

    def with_topic(self) -> Structure:
        """The same with the topic that it names itself."""
        found = self
        for one in self.places:
            if one.topic is not None and self._has(one.topic):
                found = replace(found, topic=self.value[one.topic[-1]])
            if one.topic_id is not None and self._has(one.topic_id):
                found = replace(found, topic_id=known_id(self.value[one.topic_id[-1]]))
        return found

    def _has(self, field: Path) -> bool:
        return field[:-1] == self.path and field[-1] in self.kind.names


def columns_of(table: DataFrame, message: str, others: Sequence[str]) -> StructType:
    """The columns of a message's table that tell its errors, and ``others``."""
    places = error_places(message)
    paths = {path for one in places for path in (one.path, one.topic, one.topic_id) if path}
    body = _only(cast("StructType", table.schema["body"].dataType), paths)
    return StructType([*(table.schema[name] for name in others), StructField("body", body)])


def _only(kind: StructType, paths: Collection[Path]) -> StructType:
    """The structure with just the fields on these paths."""
    fields = []
    for field in kind:
        below = [path[1:] for path in paths if path[0] == field.name]
        inner = field.dataType
        if isinstance(inner, ArrayType) and isinstance(inner.elementType, StructType):
            inner = ArrayType(_only(inner.elementType, [path for path in below if path]))
        elif isinstance(inner, StructType):
            inner = _only(inner, [path for path in below if path])
        if below:
            fields.append(StructField(field.name, inner))
    return StructType(fields)


def body_of(table: DataFrame, message: str) -> Structure:
    """The body of a message's table; where it is null there are no errors in it."""
    kind = cast("StructType", table.schema["body"].dataType)
    nothing = F.lit(None).cast("string")
    body = Structure(F.col("body"), kind, error_places(message), (), "", nothing, nothing)
    return body.with_topic()


def _of_each(
    asked: Callable[[Structure], Column], inside: Callable[[Column], Structure]
) -> Callable[[Column], Column]:
    # Spark counts a function's arguments: this has one.
    return lambda element: asked(inside(element))


def kafka_error_name(code: Column | str) -> Column:
    """Return the name of an error code: "NOT_COORDINATOR" of 16.

    Args:
        code: error codes, as ``body.error_code`` of the message tables; null gives null, as does a
            code that Kafka 4.4 does not have.
    """
    return _of_code({number: f"'{name}'" for number, name in ERROR_NAMES.items()}, code)


def kafka_error_is_retriable(code: Column | str) -> Column:
    """Say whether the same may succeed later after an error; null as for `kafka_error_name`."""
    return _of_code({number: str(number in RETRIABLE) for number in ERROR_NAMES}, code)


def _of_code(told: dict[int, str], code: Column | str) -> Column:
    """Return what is told of a code, in SQL; null of one that nothing is told of."""
    # As text it is one call of Java, and not hundreds.
    pairs = ", ".join(f"{number}, {value}" for number, value in told.items())
    return F.expr(f"map({pairs})")[(F.col(code) if isinstance(code, str) else code).cast("int")]
