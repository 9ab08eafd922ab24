"""Measure the cost or saving of changed specs, or of another encoding, for captured messages.

Every message is read once. The message is then written in the old side's form and in the new side's
form, and the bytes are compared. The reference executor reads and writes the messages, and reports
the field of each byte. `meter` measures single messages, and `columns` measures whole tables of
frames without writing a byte. `formats` prints the result. `flexwire.schema` defines the meaning of
a spec.
"""
