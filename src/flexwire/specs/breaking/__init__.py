"""Find changes to message specs that break peers with old versions, or break old bytes.

Old and new specs are resolved version by version and compared in their wire layout. A rule
therefore judges bytes and names, not text. `changes` pairs the messages and applies the rules to
every version that both sides have. Each break is reported once, with all versions in which it
occurs. `report` turns breaks into findings. `flexwire.schema.pairs` pairs structures and fields.
"""
