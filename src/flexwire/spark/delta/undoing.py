"""The last analysis of tables that grow, taken out again, so that its input can be analyzed anew.

The ledger says first that it is not in, which is one commit; from then on no reader of flexwire's
sees its rows. What is killed after that is completed by the next analysis, as for an analysis that
was never in. The next analysis begins with the state that the last one began with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError
from flexwire.spark.delta.ledger import IN, LedgerEntry, LedgerSnapshot
from flexwire.spark.delta.staging import note_tables, take_out

if TYPE_CHECKING:
    from flexwire.spark.delta.grown import GrownTables


def last_entry(tables: GrownTables, run: str) -> LedgerEntry:
    """Return the entry of an analysis; `FlexwireError` if it is not the last one that is in."""
    return _last(tables.ledger.snapshot(), tables, run)


def _last(ledger: LedgerSnapshot, tables: GrownTables, run: str) -> LedgerEntry:
    entries = [entry for entry in ledger.entries(files=False) if entry.state == IN]
    if not entries:
        raise FlexwireError(f"there is no analysis in {tables.out}")
    if entries[-1].analysis != run:
        raise FlexwireError(
            f"only the last analysis can be taken out of {tables.out}, and that is "
            f"{entries[-1].analysis}, not {run}"
        )
    return entries[-1]


def undo(tables: GrownTables, run: str) -> None:
    """Take the last analysis out of the ledger, and then out of its tables; its files stay.

    Raises `FlexwireError` if ``run`` is not the last one.
    """
    names = {table["name"] for table in last_entry(tables, run).tables}
    # Whatever is left of it is found, also where this is ended.
    note_tables(tables.out, run, names)

    def without(ledger: LedgerSnapshot) -> list[LedgerEntry]:
        _last(ledger, tables, run)
        return [entry for entry in ledger.whole_entries() if entry.analysis != run]

    tables.ledger.change(without, replaces=True)
    take_out(tables, {run}, names)


def refuse_joined(tables: GrownTables, name: str, run: str) -> FlexwireError:
    """Return the error for an analysis whose rows are in a file with those of others."""
    return FlexwireError(
        f"the files of {run} in the table {name} of {tables.out} were joined with those of others, "
        "so it cannot be taken out alone"
    )
