"""Publishes the files of tasks: readers see none of them before all are there.

A task closes a file, puts it below the staging directory (`task_output`), and names it in its
manifest (`manifest`, `commit`). Small files are joined (`compaction`, `table_files`). Then the
driver publishes everything in one step. `output` has the common parts of all forms of output:
`local` on this machine, `object_store`, and the rooms `flexwire.spark.delta` and
`flexwire.spark.iceberg`.
"""
