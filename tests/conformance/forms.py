"""The fields that a request's form names, and the fields of its API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.protocol.apis import api_key_of, request_entries

if TYPE_CHECKING:
    from collections.abc import Iterator


def api_fields(name: str) -> set[str]:
    """Return the JSON names of all fields of an API's requests, in any release."""
    return {
        field.json_name
        for entry in request_entries(api_key_of(name))
        for spec in entry.all_specs()
        for field in spec.walk()
    }


def form_fields(form: Any, *, whole: str = "") -> Iterator[str]:
    """Yield the field names in a form, except those inside the value of the field ``whole``."""
    if isinstance(form, dict):
        for name, value in form.items():
            yield name
            if name != whole:
                yield from form_fields(value, whole=whole)
    elif isinstance(form, list):
        for value in form:
            yield from form_fields(value, whole=whole)
