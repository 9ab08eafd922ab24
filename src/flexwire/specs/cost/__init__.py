"""Measure the cost or saving of changed specs or of another encoding, for messages that were sent.

Every message is read once. The message is then written as the old side and as the new side would
write it, and the bytes are compared. The reference executor does both, and reports the field of
each byte. `meter` measures single messages, and `columns` measures whole tables of frames without
writing a byte. `formats` prints the result. `flexwire.schema` knows the meaning of a spec.
"""
