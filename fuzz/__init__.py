"""Fuzzing with atheris: any bytes have the right result, or the one error that is allowed."""
