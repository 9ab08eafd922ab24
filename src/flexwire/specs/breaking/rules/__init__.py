"""The rules, one in each file; the docstring of a file is the rule's page."""
