"""Tables that grow: each analysis appends to the same Delta tables.

```
OUT/tables/<table>/_delta_log/                             the table, as Delta
OUT/tables/<table>/analysis=<run>/day=2026-11-22/….parquet the table's files, as tasks write them
OUT/ledger/                                                a Delta table that lists the analyses
OUT/runs/<run>/                                            report.html and so on of one analysis
OUT/_staging/<run>                                         a note of an unfinished analysis
```
Tasks write files directly to their final place. The driver then makes one Delta commit per table,
which names these files; no data passes through the driver. Delta cannot commit to several tables at
once. So **the ledger alone decides which analyses are in**. It has one row per analysis, written
last, by a commit that fails if another writer has committed since. The column ``analysis`` of every
table names the analysis that each row is from. For exactly the contents of the ledger, a reader
keeps the rows whose ``analysis`` has the ``state`` "in" there.

Tables are partitioned by day alone, so that `upkeep` can join the small files that appends leave.
The directory of a file names its analysis. A joined file has only rows of analyses that are in.

Readers that ignore the ledger also see each input once, except for short periods. A killed analysis
leaves files that no log names and no reader sees. If it was killed in the seconds between its first
commit and the ledger's, it also leaves rows in some tables. The next analysis into OUT takes such
rows out before it begins (with Delta's own removal: the log changes, no data is read). It removes
the files once nobody can be reading them. If OUT is on this machine, a lock shows that no other
analysis is running. A store has no lock, so the ledger first marks the killed analysis
"abandoned". If that analysis is still alive, its own entry comes too late, and it fails with an
error: the first entry in the ledger counts.

An input is identified by the URL, size and version of each of its files. Analyzing the same input
again does nothing. Files that are already in are left out.
Without ``append`` an analysis replaces all analyses that are in, with the same entry in the ledger.
Their rows are taken out afterwards.

`output.output` reads, `staging.grown_staging` writes. `grown`, `ledger`, `staging` and `layout` do
not depend on the format or on deltalake, and `flexwire.spark.iceberg` uses them too. Tasks use
only `layout`.
"""
