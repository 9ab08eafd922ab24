"""Files by URL: reading and writing, on this machine or in an object store.

A file is read in pieces, by ranges. A written file appears whole, or not at all.

The laws of this room (tests below `tests/`):

- Output appears whole or not at all (`storage/test_laws.py`).
- A source is the file that was listed. Otherwise it raises an error
  (`storage/test_wrong_answers.py`,
  `tables/test_inputs.py`).
"""
