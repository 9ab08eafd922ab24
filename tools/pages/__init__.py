"""Pages that are generated from the code, and tools that count or draw from all pages.

Several pages repeat facts from the code: the help of each command, the columns of each table, the
lint rules. For each such page, a module here has a function ``files()`` that returns the text of
each of its files. `python -m tools.pages` writes all of them, and `python -m tools.pages.tables`
writes one page. `tests/docs/test_generated_pages.py` fails if a file differs from what its module
returns.

Three modules write no page: `files` contains what the others share, `sentences` draws sentences for
a stranger to read, and `kept` lists what a page lost between two revisions.
"""
