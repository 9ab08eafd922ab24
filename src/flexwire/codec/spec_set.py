"""Classes for your own message specs, in addition to the classes of the bundled specs."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from flexwire.arguments import refuse, to_kind, to_text
from flexwire.codec.message import message_of
from flexwire.errors import UnknownMessageError, short
from flexwire.schema.sources import read_specs
from flexwire.schema.spec import MessageSpec

if TYPE_CHECKING:
    from flexwire.codec.message import Message
    from flexwire.schema.parse import Mode
    from flexwire.schema.sources import Paths


class SpecSet:
    """Messages by name, each with one spec.

    The set can be pickled, and so can the objects of its messages.
    """

    def __init__(self, specs: Mapping[str, MessageSpec]) -> None:
        if not isinstance(specs, Mapping):
            raise refuse("specs", "a mapping of names to specs", specs)
        for name, spec in specs.items():
            to_text(name, "a name in specs")
            to_kind(spec, f"specs[{short(name)}]", MessageSpec)
        self._specs = dict(sorted(specs.items()))
        self._classes: dict[str, type[Message]] = {}

    def names(self) -> tuple[str, ...]:
        """The names of all messages, in alphabetical order."""
        return tuple(self._specs)

    def spec(self, name: str) -> MessageSpec:
        """Return the spec of a message.

        Raises `UnknownMessageError`, which suggests the most similar names.
        """
        if to_text(name, "name") not in self._specs:
            near = get_close_matches(name, self._specs, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {self._some(20)}"
            raise UnknownMessageError(f"no message {name!r} in these specs; {hint}")
        return self._specs[name]

    def message(self, name: str) -> type[Message]:
        """Return the class of a message. Each call returns the same class.

        Raises `UnknownMessageError` for an unknown name, and `SpecError` for a spec from which no
        class can be created.
        """
        if to_text(name, "name") not in self._classes:
            self._classes[name] = message_of(self.spec(name))
        return self._classes[name]

    def _some(self, most: int) -> str:
        names = self.names()
        return ", ".join(names[:most]) + (f" and {len(names) - most} more" * (len(names) > most))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._specs

    def __repr__(self) -> str:
        return f"<SpecSet of {self._some(3)}>"

    def __reduce__(self) -> tuple[object, ...]:
        # The receiving process creates the classes again.
        return (SpecSet, (self._specs,))


def load_specs(paths: Paths, *, mode: Mode = "strict") -> SpecSet:
    """Read your own message specs from files or from directories of ``*.json`` files.

    ``mode`` selects the grammar of specs, as in `flexwire.schema.parse.parse_spec`: "strict" is
    the grammar of Kafka's generator, "legacy" also includes the grammar of older releases, "kip"
    follows KIP-482 where the KIP differs from the generator, and "draft" is the grammar of the
    first draft of KIP-482.

    Raises `SpecError`, with file, line and column, for a text that is not a spec, for a name that
    occurs in two files, and for a version that has no layout.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "Ping.json").write_text('''{"name": "Ping", "type": "data",
    ...       "validVersions": "0", "flexibleVersions": "0+",
    ...       "fields": [{"name": "SentAt", "type": "int64", "versions": "0+"}]}''')
    ...     ping = load_specs(place).message("Ping")
    >>> ping(sent_at=7).encode(version=0).hex()
    '000000000000000700'
    """
    return SpecSet(read_specs(paths, mode=mode))
