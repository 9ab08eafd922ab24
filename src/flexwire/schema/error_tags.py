"""Apply KIP-636: rewrite specs so that error codes and error messages are tagged fields.

"Change every RPC which has an ErrorCode (except SASL_HANDSHAKE, due to KAFKA-9577) as follows:
Increment the RPC version (both request and response) … If the RPC is not using flexibleVersions
then add it … Add taggedVersions to all ErrorCode and ErrorMessage fields." The text of each spec is
edited, so that its formatting and its comments are kept.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from flexwire.errors import SpecError
from flexwire.schema.header_versions import raised_headers
from flexwire.schema.parse import Mode, parse_node
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.schema.spec import FieldSpec, MessageSpec
    from flexwire.schema.text import JsonArray, JsonObject, Node, SpecText

# The fields that the KIP changes, and the type that each of them must have.
_ERROR_CODE = ("ErrorCode", "int16")
_ERROR_MESSAGE = ("ErrorMessage", "string")
# Clients before 2.5 negotiate the version of SASL_HANDSHAKE incorrectly.
_EXCEPTED = {17: "KIP-636 excludes this API because of KAFKA-9577"}
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class TaggedErrors:
    """The result for one spec.

    ``version`` is the new version, or None if the text did not change. ``reason`` then contains
    the reason. ``error_codes`` and ``error_messages`` count the fields that become tagged in this
    version. ``sent_nulls`` is the number of error messages for which null is still sent. The specs
    of these fields allow null only in some versions, so null cannot be the default.
    """

    source: str
    text: str
    spec: MessageSpec
    version: int | None = None
    reason: str = ""
    made_flexible: bool = False
    error_codes: int = 0
    error_messages: int = 0
    sent_nulls: int = 0


def tag_errors(texts: Iterable[SpecText], *, mode: Mode = "strict") -> list[TaggedErrors]:
    """Rewrite a set of specs in which the request and response of an RPC have the same api key.

    Returns a result for every spec, in order. Raises `SpecError` for a string that is not a spec.

    >>> from flexwire.schema.text import SpecText
    >>> [done] = tag_errors([SpecText('''{"apiKey": 47, "type": "response", "name": "Foo",
    ...   "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
    ...   { "name": "ErrorCode", "type": "int16", "versions": "0+" } // the outcome
    ... ]}''', "Foo.json")])
    >>> print(done.text.splitlines()[2].strip())
    { "name": "ErrorCode", "type": "int16", "versions": "0+", "taggedVersions": "2+", "tag": 0 } \
// the outcome
    """
    nodes = [(text, text.read(whole=mode != "legacy")) for text in texts]
    specs = [parse_node(text, node, mode=mode) for text, node in nodes]
    versions = _new_versions(specs)
    results = []
    for (text, node), spec in zip(nodes, specs, strict=True):
        reason = _objection(spec, versions)
        if reason:
            results.append(TaggedErrors(text.source, text.text, spec, reason=reason))
        else:
            results.append(_Edits(text, spec, versions[cast("int", spec.api_key)]).apply(node))
    return results


def _new_versions(specs: Sequence[MessageSpec]) -> dict[int, int]:
    """Return the new version of each RPC that has an error code, by api key."""
    rpcs: dict[int, list[MessageSpec]] = defaultdict(list)
    for spec in specs:
        if spec.type.is_api and spec.api_key is not None and spec.valid_versions:
            rpcs[spec.api_key].append(spec)
    return {
        api_key: 1 + max(spec.valid_versions.highest for spec in rpc)
        for api_key, rpc in rpcs.items()
        if any(_is_error(field, _ERROR_CODE) for spec in rpc for field in spec.walk())
    }


def _objection(spec: MessageSpec, versions: dict[int, int]) -> str:
    if not spec.type.is_api or spec.api_key is None:
        return "neither a request nor a response"
    if not spec.valid_versions:
        return "no version is valid"
    if spec.api_key in _EXCEPTED:
        return _EXCEPTED[spec.api_key]
    if spec.api_key not in versions:
        return "the RPC has no error code"
    if versions[spec.api_key] > HIGHEST:
        raise SpecError(f"{spec.name} has no unused version left", source=spec.source)
    return ""


def _is_error(field: FieldSpec, kind: tuple[str, str]) -> bool:
    return (field.name, str(field.type)) == kind


class _Edits:
    """The edits to one text."""

    def __init__(self, text: SpecText, spec: MessageSpec, version: int) -> None:
        self.text = text
        self.spec = spec
        self.version = version
        self.edits: list[tuple[int, int, str]] = []
        self.tagged: list[FieldSpec] = []

    def apply(self, node: Node) -> TaggedErrors:
        root = cast("JsonObject", node)
        valid = Versions(self.spec.valid_versions.lowest, self.version)
        self._replace(root, "validVersions", str(valid))
        made_flexible = self.version not in self.spec.flexible_versions
        if made_flexible:
            self._replace(root, "flexibleVersions", f"{self.version}+")
            self._raise_headers(root)
        self._fields(root, self.spec.fields)
        common = root.members.get("commonStructs")
        if common is not None:
            items = cast("JsonArray", common.value).items
            for item, struct in zip(items, self.spec.common_structs, strict=True):
                self._fields(cast("JsonObject", item), struct.fields)
        messages = [field for field in self.tagged if _is_error(field, _ERROR_MESSAGE)]
        return TaggedErrors(
            source=self.text.source,
            text=self._edited(),
            spec=self.spec,
            version=self.version,
            made_flexible=made_flexible,
            error_codes=len(self.tagged) - len(messages),
            error_messages=len(messages),
            sent_nulls=sum(map(self._sends_null, messages)),
        )

    def _fields(self, owner: JsonObject, fields: Sequence[FieldSpec]) -> None:
        if "fields" not in owner.members:
            return
        nodes = cast("JsonArray", owner.members["fields"].value).items
        # New tags are higher than all other tags of the structure.
        tag = 1 + max((field.tag for field in fields if field.tag is not None), default=-1)
        for node, field in zip(nodes, fields, strict=True):
            place = cast("JsonObject", node)
            self._fields(place, field.fields)
            if self._becomes_tagged(field):
                self._tag(place, field, tag)
                self.tagged.append(field)
                tag += 1

    def _becomes_tagged(self, field: FieldSpec) -> bool:
        is_error = _is_error(field, _ERROR_CODE) or _is_error(field, _ERROR_MESSAGE)
        from_now_on = Versions(self.version, HIGHEST)
        return is_error and field.tag is None and from_now_on & field.versions == from_now_on

    def _tag(self, place: JsonObject, field: FieldSpec, tag: int) -> None:
        added = f', "taggedVersions": "{self.version}+", "tag": {tag}'
        if field.nullable_versions and not field.default and not self._sends_null(field):
            # "Similarly ErrorMessage will in these cases be null": only a default value is not
            # sent.
            added += ', "default": "null"'
        _, end = self._literal(place, "versions")
        self.edits.append((end, end, added))

    def _sends_null(self, field: FieldSpec) -> bool:
        """Return whether null is still sent for a field, although the field is tagged."""
        nullable = field.nullable_versions
        # Kafka's generator refuses null as a default unless the field is nullable in all versions.
        return (
            bool(nullable)
            and field.default != "null"
            and nullable & field.versions != field.versions
        )

    def _replace(self, owner: JsonObject, key: str, value: str) -> None:
        if key in owner.members:
            start, end = self._literal(owner, key)
            self.edits.append((start, end, f'"{value}"'))
        else:
            # Before Kafka 3.0, "flexibleVersions" could be missing from a spec.
            _, end = self._literal(owner, "validVersions")
            self.edits.append((end, end, f', "{key}": "{value}"'))

    def _raise_headers(self, owner: JsonObject) -> None:
        """Add a header with tagged fields to flexible versions, if the spec has header versions."""
        headers = raised_headers(self.spec, self.version)
        if headers is None:
            return
        offset = owner.members["headerVersions"].value.offset
        match = _FLAT_OBJECT.match(self.text.text, offset)
        if match is None:
            reason = "'headerVersions' contains a comment with a brace; move the comment"
            raise self.text.error(reason, offset)
        self.edits.append((*match.span(), json.dumps(headers.texts())))

    def _literal(self, owner: JsonObject, key: str) -> tuple[int, int]:
        """Return the beginning and the end of the literal that is the value of a key."""
        offset = owner.members[key].value.offset
        literal = _LITERAL.match(self.text.text, offset)
        if literal is None:
            raise self.text.error(f"the value of {key!r} is not a string; put it in quotes", offset)
        return literal.span()

    def _edited(self) -> str:
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        position = 0
        # If two edits apply to the same place, their order is kept.
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            yield self.text.text[position:start]
            yield new
            position = end
        yield self.text.text[position:]
