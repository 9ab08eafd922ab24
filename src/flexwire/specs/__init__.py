"""For people who write message specs: lint, breaking changes, what a change costs, and the guide.

The four are a folder, not a layer. `lint` and `breaking` know schemas only, `cost` measures
captured messages, and `guide` stands above the report, whose look it has.
"""
