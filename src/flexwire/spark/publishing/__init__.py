"""Publishes the files of tasks, so that readers see either all of them or none.

A task closes a file, moves it below the staging directory (`task_output`), and lists it in its
manifest (`manifest`, `commit`). Small files are joined (`compaction`, `table_files`). Then the
driver publishes everything in one step. `output` contains the common parts of all forms of output:
`local` on this machine, `object_store` with its `lease`, `flexwire.spark.delta` and
`flexwire.spark.iceberg`.
"""
