"""What a change of message specs, or another encoding, costs or saves on messages that were sent.

Every message is read once, and written as the old side and as the new side would; what is compared
are these bytes. The reference executor does both, and says which field each byte belongs to.
"""
