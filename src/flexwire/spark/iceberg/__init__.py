"""Iceberg tables that grow: the ledger, staging and layout of `flexwire.spark.delta`, in a catalog.

```
OUT/catalog/catalog.json                        the catalog of the tables; no key or password
OUT/catalog/catalog.db                          the catalog itself, unless another is named
OUT/tables/<table>/metadata/                    the table, as Iceberg
OUT/tables/<table>/analysis=<run>/day=…/….parquet the table's files, as tasks write them
OUT/ledger/                                     an Iceberg table that lists the analyses
```
A catalog commits one table at a time. The rule is therefore the same as for Delta: the ledger is
committed last, and an analysis is in the tables as soon as its ledger row has the state "in". The
catalog accepts a commit only if it is based on the current snapshot, so only one of two concurrent
commits succeeds.

Each snapshot that adds an analysis records the name of the analysis (`tables.ADDED`). If the reply
to a commit was lost, this name shows that the commit succeeded, and the commit is not repeated.
Files contain no field ids, so each table defines a name mapping. A table is partitioned by the day
of its time column. The files already contain this column, so no column is added.

Only this package needs pyiceberg. Tasks use only `flexwire.spark.delta.layout`.
"""
