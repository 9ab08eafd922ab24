"""What tasks write, and how it appears: none of it before all of it.

A task closes a file, puts it below the staging directory (`task_output`), and names it in its
manifest (`manifest`, `commit`). Small files are joined (`compaction`, `table_files`). One step of
the driver then publishes everything. `output` has what the forms of output share: `local` on this
machine, `object_store`, and the rooms `flexwire.spark.delta` and `flexwire.spark.iceberg`.
"""
