"""docs/error-codes.md has a line for every error code.

Write it anew with ``python -m tests.docs.test_error_codes_page``.
"""

from __future__ import annotations

from pathlib import Path

from flexwire.protocol.error_codes import ErrorCode, error_codes

PAGE = Path(__file__).parents[2] / "docs" / "error-codes.md"
HEAD = """# Error codes

Every error code that Kafka's brokers answer, and what it means in words of ours. *Again* says
whether Kafka's own clients may send the same once more, as it may succeed then; with many of the
others, too, they know what to do, and the meaning says what. `flexwire schema errors 16` prints
one; the release is the one that brought it, "2.4" for all that 2.4 has.
`python -m tests.docs.test_error_codes_page` writes this page from `flexwire.protocol.error_codes`.

A large number in an error, such as "Invalid receive (size = 369295616 larger than 104857600)", is
no error code: [sizes](sizes.md) says what it is.

| code | name | since | again | what it means |
|---|---|---|---|---|
"""


def page() -> str:
    """Write the page."""
    return HEAD + "".join(map(row, error_codes()))


def row(one: ErrorCode) -> str:
    former = f"; {one.former_name} before {one.renamed}" if one.former_name else ""
    again = "yes" if one.is_retriable else ""
    return f"| {one.code} | {one.name}{former} | {one.since} | {again} | {one.meaning} |\n"


def test_the_page_has_every_error_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
    assert len(page().removeprefix(HEAD).splitlines()) == len(error_codes())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
