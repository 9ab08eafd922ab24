"""Check message specs: findings, the lint rules, and the formats in which findings are printed.

Kafka's generator stops at the first problem, or writes Java code that does not compile. Here a
spec is read as far as possible, and every rule checks the part that could be read. All findings
are reported together, each with its line and column. A rule is a file: the file's name is the
rule's id, and the docstring is the rule's page, with an example that a test runs. `lint` runs
`rules` over one set of specs. `flexwire.specs.breaking` compares an old set with a new one by its
own rules. `config` and `flexwire.specs.allow_comments` decide which findings not to report, and
`formats` prints the remaining findings. `flexwire.schema` reads specs, and decides what they mean
on the wire.
"""
