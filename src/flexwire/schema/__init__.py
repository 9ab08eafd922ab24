"""Message specs as data: parsed as they are written, and resolved for a single version.

One spec describes many versions of a message, and Kafka's releases contain a few different specs
for most messages. This package keeps each spec as it was written (`parse`, `spec`, `write`).
`resolve` then decides the layout of a version in the protocol. No other code decides layouts. The
result of `resolve` is a `wire.schema.Schema`, and everything that reads or writes messages uses
that schema unchanged. `catalog` contains the specs of all releases, and `importer` writes the
catalog. `message_schemas` finds the spec that defines the layout of a version. `resolve.union` and
`merge` combine the fields of all versions, for classes, columns and pages. `editions` and `pairs`
match two sets of specs, and `flexwire.specs` compares them.

Laws of this package:

- **Only `resolve` decides presence, compactness, nullability, tags and defaults.** Because the
  five executors do not make these decisions, they cannot disagree about them.
  `tests/schema/test_resolve.py`
- **`Schema.fields` lists all fields of the spec, including absent ones.** The absent fields are
  needed for the JSON form, and for checking whether values would be lost. Only the fields in
  `inline` and those in the tag section are sent. `tests/schema/test_message_schemas.py`
- **Only `message_schemas` decides which spec serves a version, and only `resolve.union` decides
  the order of fields over all versions.** Both the positional arguments of the classes and the
  columns are in this order. `tests/schema/test_message_schemas.py`
- **`Schema.layout()` contains everything that can make two layouts different.** Otherwise the
  importer would treat two layouts as one. `tests/schema/test_spec_importer.py`
- **The result of `import_specs` does not depend on the order of imports,** because a catalog grows
  release by release. `tests/schema/test_spec_importer.py`
- **The parser refuses text only through `refuse`, with the id of a lint rule.** Each rule has a
  page (`tests/check/test_docs.py`). Rules skip `damaged` objects, so that an error is reported only
  once. `tests/check/test_rules.py`
"""
