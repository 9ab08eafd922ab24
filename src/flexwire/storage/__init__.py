"""Files by URL: what is read and what is written, on this machine or in an object store.

A file is read in pieces, by ranges; what is written appears whole, or not at all.
"""
