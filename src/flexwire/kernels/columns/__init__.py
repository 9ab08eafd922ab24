"""Kernels between many messages and Arrow columns.

A field has one column for all messages, so a program is a list of operations on columns, and a row
is one walk through it. What most of a message consists of (numbers side by side, text, arrays of
numbers, no tagged fields) runs in a loop of its own that fits the registers; the rest is a switch.
A row that is refused is taken back and becomes null; a column that is full is grown by the caller
and the operation is run again. Programs are made by `flexwire.columnar.program`.
"""
