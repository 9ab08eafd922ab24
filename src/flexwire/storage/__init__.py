"""Files by URL: read and write them on this machine or in an object store.

A file is read in pieces, by range. A file that is being written appears completely, or not at all.

The laws of this package (tests below `tests/`):

- Output appears completely or not at all (`storage/test_laws.py`).
- A source returns the bytes of the file that was listed, or raises an error
  (`storage/test_wrong_answers.py`, `tables/test_inputs.py`).
"""
