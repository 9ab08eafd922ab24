"""Kafka's names in cluster views are in the catalog, and secret values are hidden."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire import answers
from flexwire.answers.state.cluster import ABORT, BEGIN, CLEAR, END, transactions
from flexwire.columnar import message_type
from flexwire.protocol.credentials import SECRET_CONFIG, credential_fields
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.record_types import framed_messages

if TYPE_CHECKING:
    from types import ModuleType


def module_of(path: Path) -> ModuleType:
    room = Path(answers.__file__).parent
    names = path.relative_to(room).with_suffix("").parts
    return import_module(".".join([answers.__name__, *names]))


READS = re.compile(r"^(\w*)READS: Final = ", re.MULTILINE)
FILES = sorted(Path(answers.__file__).parent.rglob("cluster*.py"))
VIEWS = {
    f"{path.parent.name}.{path.stem}.{prefix}": (module_of(path), prefix)
    for path in FILES
    for prefix in READS.findall(path.read_text(encoding="utf-8"))
}
TYPES = framed_messages(InternalTopic.METADATA.module)


def test_there_is_a_view_for_all_that_a_state_has() -> None:
    read = {name for module, prefix in VIEWS.values() for name in vars(module)[f"{prefix}READS"]}
    known = {name for names in TYPES.values() for name in names}
    # Transactions are handled where states are computed. The second name is an older name of a
    # type.
    elsewhere = {BEGIN, END, ABORT, "QuotaRecord"}
    # A heartbeat, the progress of a migration from ZooKeeper, and a record that no release wrote.
    nowhere = {"NoOpRecord", "ZkMigrationStateRecord", "AccessControlRecord"}
    assert known == read | elsewhere | nowhere
    assert not read & (elsewhere | nowhere)


def test_types_are_told_by_one_byte() -> None:
    assert max(TYPES) < 128


@pytest.mark.parametrize("view", VIEWS)
def test_every_field_that_a_view_names_is_in_the_catalog(view: str) -> None:
    module, prefix = VIEWS[view]
    of_module = vars(module)
    for name, fields in of_module[f"{prefix}READS"].items():
        there = {field.name for field in message_type(name)}
        assert {*fields} <= there
        secret = {one.attributes[0] for one in credential_fields(name) if not one.if_secret}
        assert not secret & {*fields}
    # The answer in this file has different columns from the view.
    columns = of_module.get("VIEW_COLUMNS" if not prefix else f"{prefix}COLUMNS")
    columns = of_module["COLUMNS"] if columns is None else columns
    names = [one.name for one in columns]
    assert len({*names}) == len(names)
    assert all(one.meaning for one in columns)


def test_names_of_messages_stand_in_constants_alone() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r'^.*"\w+Record"?.*$', text, re.MULTILINE):
            assert re.match(r"[A-Z_, ]+(: Final)? = \(?\"|    \"\w+\",$", line), (path.name, line)


def test_what_becomes_of_transactions() -> None:
    """There are four transactions: one ends, one is aborted, one is replaced, and one is open."""
    ended = [(BEGIN, 1), (END, 5), (BEGIN, 6), (ABORT, 9)]
    assert transactions(ended) == ([(6, 9)], [])
    assert transactions([*ended, (BEGIN, 12), (BEGIN, 15)]) == ([(6, 9)], [(12, 15), (15, None)])
    assert transactions([(END, 3), (ABORT, 4)]) == ([], [])
    assert CLEAR in {name for names in TYPES.values() for name in names}


def test_java_finds_secrets_as_python_does() -> None:
    """In Java, the pattern has the same meaning."""
    assert not re.search(r"\(\?[^:]|\\[zZAGQEpPhHRX]|\+\+|\*\+|\?\+|&&", SECRET_CONFIG)
