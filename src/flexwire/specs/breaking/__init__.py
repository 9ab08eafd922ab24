"""Breaking changes of message specs: for peers with old versions, and for old bytes.

Old and new specs are resolved version by version and compared as they are on the wire. A rule
therefore judges bytes and names, not text. `changes` pairs the messages and runs the rules over
every version that both sides have. It reports each break once, with all versions in which it
occurs. `report` turns breaks into findings. `flexwire.schema.pairs` pairs structures and fields.
"""
