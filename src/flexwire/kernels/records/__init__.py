"""Kernels for record batches: finding them, their crcs, inflating them, and their records.

A batch's header says where its records stand and how many they claim to be; `scanning` puts that
into a table, one row for each batch, and what follows works on the table. Records become Python
objects (``objects_*``) or rows of columns (``columns_*``), by the same layout and the same varints.
A batch that is not wholly sound is refused, and `flexwire.records` reads it or words the error.
"""
