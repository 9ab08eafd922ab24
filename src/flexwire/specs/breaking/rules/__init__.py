"""The rules, one in each file. The docstring of a file is the rule's page."""
