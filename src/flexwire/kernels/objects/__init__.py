"""Kernels between one message and one Python object.

A program holds, for each structure, its class, where the class keeps each field, and how each field
stands on the wire. The kernels walk it: they make objects of a class without its constructor and
put references where the class keeps them, or read them from there. They call CPython's public C API
by address, so that no Python code runs between the bytes and the object. What is out of the
ordinary (a subclass, a number out of range) goes to the fallback, which is a function in Python.
"""
