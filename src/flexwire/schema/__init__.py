"""Message specs as data: parsed as they are written, and resolved for one version.

One spec describes many versions of a message, and Kafka's releases have a few specs for most
messages. This room keeps each spec as it is written (`parse`, `spec`, `write`). `resolve` then
decides, in one place, the layout of a version on the wire. Its result is a `wire.schema.Schema`,
and everything that reads or writes messages uses that schema unchanged. `catalog` holds the specs
of all releases, and `importer` writes it. `message_schemas` finds the spec that lays out a version.
`resolve.union` and `merge` combine the fields of all versions, for classes, columns and pages.
`editions` and `pairs` put two sets of specs side by side. Comparing them is left to
`flexwire.specs`.

Laws of this room:

- **Only `resolve` decides presence, compactness, nullability, tags and defaults.** Five executors
  cannot disagree about a decision that none of them makes. `tests/schema/test_resolve.py`
- **`Schema.fields` lists all fields of the spec, absent ones too.** The JSON form, and the check
  for values that would be lost, need them. The wire has the fields of `inline` and the tag section.
  `tests/schema/test_message_schemas.py`
- **Only `message_schemas` decides which spec serves a version, and only `resolve.union` decides the
  order of fields over all versions.** Classes are positional, and columns are ordered by it.
  `tests/schema/test_message_schemas.py`
- **`Schema.layout()` contains everything that makes two layouts differ.** Otherwise the importer
  would confuse two layouts. `tests/schema/test_spec_importer.py`
- **What `import_specs` writes does not depend on the order of imports,** because a catalog grows
  release by release. `tests/schema/test_spec_importer.py`
- **The parser refuses text only through `refuse`, with the id of a rule.** Each rule has a page
  (`tests/check/test_docs.py`). Rules skip `damaged` objects, so that a fault is reported once.
  `tests/check/test_rules.py`
"""
