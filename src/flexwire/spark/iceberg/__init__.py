"""Iceberg tables that grow: the ledger, staging and layout of `flexwire.spark.delta`, in a catalog.

```
OUT/catalog/catalog.json                        which catalog has the tables; no key or password
OUT/catalog/catalog.db                          the catalog itself, unless another is named
OUT/tables/<table>/metadata/                    the table, as Iceberg
OUT/tables/<table>/analysis=<run>/day=…/….parquet its files, as tasks put them
OUT/ledger/                                     which analyses are in, an Iceberg table too
```
A catalog commits one table at a time, so the law is Delta's: the ledger is committed last, and an
analysis is in when its row there says so. The catalog compares the snapshot that a commit was made
of with the current one, and so takes one of two commits.

Each snapshot that adds an analysis names it (`tables.ADDED`). A commit whose answer was lost is
found by it and not repeated. Files have no field ids, so that a table has a name mapping. It is
partitioned by the day of its column of times, which is in the file: no column is added.

Only this room needs pyiceberg. Tasks use `flexwire.spark.delta.layout` alone.
"""
