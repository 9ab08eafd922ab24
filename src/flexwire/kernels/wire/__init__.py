"""How kernels read and write the wire: one way for each type, shared by every kernel.

A part that reads takes a position and the end of what may be read, and gives what it read and the
position after it: -1 where the reference executor would refuse. A part that writes takes the
position to write at, where the caller has made room, and gives the position after it.
"""
