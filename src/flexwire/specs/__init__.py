"""Tools for authors of message specs: lint, breaking changes, costs, and the guide.

The four packages share this directory, but belong to different layers. `lint` and `breaking` work
only with schemas. `cost` measures captured messages. `guide` needs the report, because the guide's
pages look like the report.

Laws of these packages:

- **A rule is one module.** The module's name is the rule's id, and the module's docstring is the
  rule's page. A rule is therefore easy to find, and always has a page. `tests/check/test_docs.py`,
  `tests/check/test_rules.py`
- **`cost` computes no size.** Either the reference executor writes both sides, or the column
  kernels return the sizes of the bytes that it would write. Each byte belongs to one field.
  `tests/cost/test_fields.py`, `tests/cost/test_columns.py`
- **The guide's script compares nothing.** `guide/rows.py` compares versions, in the order of the
  page's rows, and the script shows the result. `tests/guide/test_changes.py`
"""
