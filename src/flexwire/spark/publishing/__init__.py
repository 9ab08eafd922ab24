"""What tasks write, and how it appears: nothing of it before all of it.

A task closes a file here and puts it below the staging directory (`drop`), and says so in its
manifest (`manifest`, `commit`). Small files are joined (`compaction`, `table_files`), and one step
of the driver publishes all. `output` has what its three forms share: `local` on this machine,
`stored` in an object store, and the room `flexwire.spark.delta`.
"""
