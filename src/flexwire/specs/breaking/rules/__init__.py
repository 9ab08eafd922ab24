"""The rules about breaking changes, one in each file. A file's docstring is the rule's page."""
