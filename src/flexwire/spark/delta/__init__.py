"""Tables that grow: each analysis appends to the same Delta tables.

```
OUT/tables/<table>/_delta_log/                             the table, as Delta
OUT/tables/<table>/analysis=<run>/day=2026-11-22/….parquet the table's files, as tasks write them
OUT/ledger/                                                a Delta table that lists the analyses
OUT/runs/<run>/                                            report.html and so on of one analysis
OUT/_staging/<run>                                         a note of an unfinished analysis
OUT/_lease/<number>                                        in a store: a note of a run at work
```
Tasks write files directly to their final place. The driver then makes one Delta commit per table,
which lists these files; no data passes through the driver. Delta cannot commit to several tables
in one step. So **the ledger alone decides which analyses are in the tables**. The ledger contains
one row per analysis. This row is written last, by a commit that fails if another writer has
committed since. In every table, the column ``analysis`` contains the name of the analysis that
wrote the row. A reader keeps only the rows whose ``analysis`` has the ``state`` "in" in the ledger.

Tables are partitioned by day only, so that `upkeep` can merge the small files that appends leave.
A file's directory is named after its analysis. A merged file contains only rows of analyses with
the state "in".

Readers that ignore the ledger also see each input once, except for short periods. A killed analysis
leaves files that no Delta log lists and no reader sees. If it was killed in the seconds between
its first commit and the ledger's commit, it also leaves rows in some tables. The next analysis
into OUT removes these rows before it begins. To do so, it uses Delta's own removal, which changes
the log but reads no data. The files themselves are removed later, when no reader can still need
them. If OUT is on this machine, a lock shows that no other analysis is running. In a store, a lease
makes this likely, but does not prove it (`flexwire.spark.publishing.lease`). Therefore the ledger
first marks the killed analysis "abandoned". If that analysis is still alive, its own entry comes
after this mark, and it fails with an error, because the first entry in the ledger counts.

An input is identified by the URL, size and version of each of its files. Analyzing the same input
again does nothing. Files that are already in the tables are skipped. Request logs are identified by
their first bytes, and only their new lines are read (`request_logs`). Without ``append`` an
analysis replaces all analyses in the tables. The new analysis's ledger entry records this. The rows
of the replaced analyses are removed afterwards.

`output.output` reads an output, and `staging.grown_staging` writes one. `grown`, `ledger`,
`staging` and `layout` do not depend on the format or on deltalake, and `flexwire.spark.iceberg`
uses them too. Tasks use only `layout`.
"""
