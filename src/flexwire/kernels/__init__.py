"""Kernels: what runs as fast as a C extension, compiled by numba once a machine, and optional.

A kernel runs a program, words in memory that say what the fields of a schema are, over bytes. All
kernels read the wire with the same parts, those of `wire`, and differ in where values go: Python
objects (`objects`), Arrow columns (`columns`), and for record batches either (`records`). A kernel
takes only what it is sure of. Everything else it refuses without saying why; the reference executor
then reads it again and words the error.

`loading` says when a process runs on kernels; `engine` calls those over columns; `cache` and
`object_files` keep them between processes; `machine` and `memory` are the processor's side.
"""
