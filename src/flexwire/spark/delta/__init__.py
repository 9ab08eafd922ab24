"""Tables that grow: every analysis appends to the same Delta tables.

```
OUT/tables/<table>/_delta_log/                             the table, as Delta
OUT/tables/<table>/analysis=<run>/day=2026-11-22/….parquet its files, as tasks put them
OUT/ledger/                                                which analyses are in, a Delta table too
OUT/runs/<run>/                                            report.html and so on of one analysis
OUT/_staging/<run>                                         that it began; gone once it is in
```
Tasks put files where they stay; the driver makes one Delta commit a table, which names them, and
no data passes it. Delta has no commit over several tables. So **the ledger is the only truth about
what is in**: one row an analysis, written last, by a commit that fails where somebody else's came
between. Each row of each table says in ``analysis`` which one it is from: a reader that wants
exactly what the ledger says keeps those whose ``analysis`` is in it with the ``state`` "in".

Tables are partitioned by day alone, so that `upkeep` can join the small files that appends leave.
The files of an analysis are known by their directory. A file that was joined has only rows of what
is in.

Readers that do not look there see each input once all the same, but for a moment. An analysis that
is killed leaves files, which no log names and no reader sees; or, in the seconds between its first
commit and the ledger's, rows in some tables. The next analysis into OUT takes such rows out before
it begins (Delta's own removal: the log changes, no data is read), and removes the files when nobody
can be reading them. Where OUT is on this machine a lock says that nobody else is at work. A store
has none: there the ledger first notes that the analysis is "abandoned". If it lives after all, its
own entry comes too late, and it fails and says so: whichever note is first in the ledger counts.

An input is known by its files: URL, size and version of each. The same input again is no work.
Files that are in already are left out.
Without ``append`` an analysis takes the place of all that are in, by the same entry in the ledger;
their rows are taken out after it.

`output.output` reads, `staging.grown_staging` writes. What no format needs is in `grown`, `ledger`,
`staging` and `layout`, which `flexwire.spark.iceberg` takes too: they do without deltalake. Tasks
use `layout` alone.
"""
