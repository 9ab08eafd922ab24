"""Publishes the files that tasks wrote, so that readers see either all of them or none.

A task closes a file, moves it below the staging directory (`task_output`), and lists it in its
manifest (`manifest`, `commit`). Small files are merged (`compaction`, `table_files`). Then the
driver publishes everything in one step. `output` contains the parts common to all forms of output:
`local` on this machine, `object_store` with its `lease`, `flexwire.spark.delta` and
`flexwire.spark.iceberg`.
"""
