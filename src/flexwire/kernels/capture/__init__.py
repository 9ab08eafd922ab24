"""Captures at the speed of memory: packets to segments, segments to frames, headers of frames.

A kernel here refuses a packet, segment or frame that it is not sure of, and does nothing of it.
"""
