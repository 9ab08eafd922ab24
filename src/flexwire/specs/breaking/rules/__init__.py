"""The rules, one in a file; a file's docstring is the rule's page."""
