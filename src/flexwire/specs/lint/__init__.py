"""Checks message specs: findings, the rules of lint, and the formats they are printed in.

Kafka's generator stops at its first complaint, or writes Java that does not compile. Here a spec is
read as far as it can be, every rule looks at what could be read, and all that they find comes at
once, each finding at its line and column. A rule is a file: its name is the rule's id, its
docstring the page that explains it, with an example that a test runs. `lint` runs `rules` over one
set of specs, and `flexwire.specs.breaking` compares an old set with a new one by rules of its own.
`config` and `flexwire.specs.allow_comments` say what is not to be reported, and `formats` prints
findings.
Reading specs, and deciding what they mean on the wire, is left to `flexwire.schema`.
"""
