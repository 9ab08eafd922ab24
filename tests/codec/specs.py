"""Draw random message specs, for laws that must hold for any spec and not only for Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from flexwire.schema.spec import (
    PRIMITIVES,
    FieldSpec,
    FieldType,
    MessageSpec,
    MessageType,
    StructSpec,
)
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST = 3
LAST_VERSION = 3
# Words of the generated source, of Python and of the message classes: none of them may conflict
# with a field or structure. The list contains other words too, so that names do not run out.
FIELD_NAMES = (
    *("Data", "Position", "Limit", "Out", "Unknown", "Value", "Item", "Tag", "Size", "Class"),
    *("None", "True", "Def", "Decode", "Entry", "Replace", "UnknownTaggedFields", "Self", "Len"),
    *("topicIDs", "KRaftVersion", "LastKnownELR", "X509", "A", "a1b2C3", "Struct", "Bytes", "UUID"),
    *(f"Field{number}" for number in range(20)),
)
STRUCT_NAMES = (
    *("Refusal", "UUID", "Message", "Int", "None", "Struct", "Decode", "C_", "Topic_1", "Sample_"),
    *(f"Struct{number}" for number in range(200)),
)
# `tests.codec.values` uses none of these tags as unknown tags. The last is the second highest that
# a draft's encoding allows.
TAGS = (*range(6), 127, 128, 129, 300, 16_383, 16_384, 32_766)
NULLABLE = frozenset({"string", "bytes", "records"})
# NaN is excluded, because it cannot be left out as a default in a version without the field.
DEFAULTS: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false", "TRUE"),
    "int8": ("-1", "127", "-128"),
    "int16": ("-1", "0x7fff"),
    "uint16": ("65535", "0"),
    "int32": ("-1", "0x7fffffff", "-2147483648"),
    "uint32": ("4294967295",),
    "int64": ("-1", "-9223372036854775808", "0x7fffffffffffffff"),
    "float64": ("1.5", "-0.0", "-Infinity", "0x1p-3", "2f"),
    "uuid": ("AAAAAAAAAAAAAAAAAAAAAQ", "oeV4rJmmTyWe5y1vrUo5lA=="),
    "string": ("none", "größe", "'\"\\\n", "{x}"),
}


def message_specs() -> st.SearchStrategy[MessageSpec]:
    """Draw a spec that a class can be made from, with a layout for each valid version
    and encoding.
    """
    return st.composite(lambda draw: _Builder(draw).message())()


class _Builder:
    """Draw one spec. ``finished`` contains the structures that a later field may name again."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.finished: list[str] = []
        self.names = list(STRUCT_NAMES)
        # Structures that take a byte in every version and encoding, so that arrays can hold them.
        self.solid: set[str] = set()
        first = draw(st.integers(0, 1))
        self.valid = Versions(first, draw(st.integers(first, LAST_VERSION)))
        self.flexible = draw(
            st.sampled_from([Versions(0, HIGHEST), Versions(1, HIGHEST), Versions(2, HIGHEST)])
            | st.sampled_from([Versions.NONE, Versions(1, 2)])
        )

    def message(self) -> MessageSpec:
        draw = self.draw
        common = tuple(self.common_struct() for _ in range(draw(st.integers(0, 2))))
        return MessageSpec(
            name="Sample",
            type=draw(st.sampled_from(MessageType)),
            valid_versions=self.valid,
            flexible_versions=self.flexible,
            fields=self.fields(0, solid=False),
            api_key=draw(st.none() | st.integers(0, 32_767)),
            common_structs=common,
            deprecated_versions=draw(self.some_versions()),
            listeners=draw(st.sampled_from([(), ("broker",), ("broker", "controller")])),
            latest_version_unstable=draw(st.booleans()),
        )

    def common_struct(self) -> StructSpec:
        name = self.new_name()
        solid = self.draw(st.booleans())
        fields = self.fields(1, solid=solid)
        self.finish(name, solid=solid)
        return StructSpec(name, Versions(0, HIGHEST), fields)

    def new_name(self) -> str:
        return self.names.pop(self.draw(st.integers(0, min(9, len(self.names) - 1))))

    def finish(self, name: str, *, solid: bool) -> None:
        self.finished.append(name)
        if solid:
            self.solid.add(name)

    def fields(self, depth: int, *, solid: bool) -> tuple[FieldSpec, ...]:
        draw = self.draw
        # Two names must not become the same attribute, and these do not.
        most = 4 if depth else 8
        least = 0 if depth else draw(st.integers(0, 4))
        names = draw(
            st.lists(st.sampled_from(FIELD_NAMES), unique=True, min_size=least, max_size=most)
        )
        tags = draw(st.permutations(TAGS)) if names else []
        made = [self.field(name, tags[at], depth) for at, name in enumerate(names)]
        if solid:
            made.insert(
                draw(st.integers(0, len(made))),
                FieldSpec("Solid", FieldType("int8"), Versions(0, HIGHEST)),
            )
        elif depth and not made:
            # A structure without fields would look like a mere reference to another structure.
            made.append(FieldSpec("Solid", FieldType("int8"), Versions.NONE))
        return tuple(made)

    def field(self, name: str, tag: int, depth: int) -> FieldSpec:
        draw = self.draw
        kind, inner = self.type(depth)
        tagged = draw(self.some_versions()) & self.flexible
        can_be_null = kind.is_array or kind.is_struct or kind.name in NULLABLE
        nullable = draw(self.some_versions()) if can_be_null else Versions.NONE
        has_form = kind.name in NULLABLE and not kind.is_array
        return FieldSpec(
            name=name,
            type=kind,
            versions=draw(st.just(Versions(0, HIGHEST)) | self.some_versions()),
            nullable_versions=nullable,
            tag=tag if tagged else None,
            tagged_versions=tagged,
            flexible_versions=draw(st.none() | self.some_versions()) if has_form else None,
            default=self.default(kind, nullable),
            ignorable=draw(st.booleans()),
            map_key=draw(st.booleans()),
            zero_copy=draw(st.booleans()),
            entity_type=draw(st.sampled_from(["", "topicName"])),
            fields=inner,
        )

    def type(self, depth: int) -> tuple[FieldType, tuple[FieldSpec, ...]]:
        draw = self.draw
        is_array = draw(st.sampled_from([False, False, True]))
        what = draw(st.sampled_from(["primitive"] * 5 + ["inline"] * 2 + ["named"]))
        if what == "inline" and depth < DEEPEST:
            name = self.new_name()
            fields = self.fields(depth + 1, solid=is_array)
            self.finish(name, solid=is_array)
            return FieldType(name, is_array), fields
        known = [name for name in self.finished if name in self.solid or not is_array]
        if what == "named" and known:
            return FieldType(draw(st.sampled_from(known)), is_array), ()
        return FieldType(draw(st.sampled_from(sorted(PRIMITIVES))), is_array), ()

    def default(self, kind: FieldType, nullable: Versions) -> str:
        texts = () if kind.is_array or kind.is_struct else DEFAULTS.get(kind.name, ())
        return str(self.draw(st.sampled_from(["", *texts, *(["null"] if nullable else [])])))

    def some_versions(self) -> st.SearchStrategy[Versions]:
        """Draw no versions, some, or all from one version on; some of these may be invalid."""
        edge = st.integers(0, LAST_VERSION + 1)
        return st.one_of(
            st.just(Versions.NONE),
            edge.map(lambda lowest: Versions(lowest, HIGHEST)),
            st.tuples(edge, edge).map(lambda edges: Versions(min(edges), max(edges))),
        )
