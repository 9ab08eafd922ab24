"""Fuzzing with atheris: any bytes give what they should, or the one error they may give."""
