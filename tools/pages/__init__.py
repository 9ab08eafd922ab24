"""Pages that are written from the code, and tools that count and draw from all pages.

Several pages repeat facts of the code: the help of each command, the columns of each table, the
rules of lint. Each such page has a module here, whose ``files()`` returns the text of each of its
files. `python -m tools.pages` writes all of them, and `python -m tools.pages.tables` writes one
page. `tests/docs/test_generated_pages.py` fails where a file differs from what its module returns.

Three modules write no page: `files` holds what the others share, `sentences` draws sentences to be
read by a stranger, and `kept` lists what a page lost between two revisions.
"""
