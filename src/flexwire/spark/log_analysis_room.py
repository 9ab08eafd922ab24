"""Logs as input of an analysis: their batches, record sizes, keys and samples, as tables.

```
segments ─▶ plan ─▶ pieces, some a task ─▶ log_batches, log_record_sizes, log_rewrites, log_keys
                                └─▶ runs of keys ─▶ parts of hashes, some a task ─▶ log_keys
```
A task reads its pieces once, and holds what it must: keys that do not fit in memory lie in runs
beside the output until other tasks have merged them. What a sample of the batches becomes in other
batches and codecs is written by the task that read them (`flexwire.tables.log_rewriting`).
"""
