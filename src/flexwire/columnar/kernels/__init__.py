"""The kernels that read and write columns, and the words that they share with Python."""
