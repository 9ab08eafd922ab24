"""What a change of message specs breaks: for peers of old versions, and readers of old bytes.

Old and new specs are laid out version by version and compared as they are on the wire, so that a
rule judges bytes and names, not text. `changes` pairs the messages, runs the rules over every
version that both have, and reports each break once, for all the versions it holds in. `report`
makes findings of that. Pairing structures and fields is left to `flexwire.schema.pairs`.
"""
