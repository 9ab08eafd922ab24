"""The kernels that read and write record batches in columns, and their words in memory."""
