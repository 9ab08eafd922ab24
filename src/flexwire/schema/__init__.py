"""Message specs: as they are written, bundled, and resolved for one version.

One spec lays out many versions of a message, and Kafka's releases have a few specs for most. So
a spec is kept as it is written (`parse`, `spec`, `write`), and `resolve` decides at one place what
a version is on the wire: a `wire.schema.Schema`, which everything that reads or writes takes as it
is. `catalog` keeps the specs of all releases, `served` says which of them serves which version, and
`union` gives the fields that a class, a column or a page has over all versions. `editions` and
`pairs` put two sets of specs side by side, for what compares them.
"""
