"""Files by URL: what is read and what is written, on this machine or in an object store.

A file is read in pieces, by ranges; what is written appears whole, or not at all.

The laws of this room (tests below `tests/`):

- Output appears whole or not at all (`storage/test_laws.py`).
- A source is the file that was listed, or an error (`storage/test_wrong_answers.py`,
  `tables/test_inputs.py`).
"""
