"""How findings are told: one file for each format, with one function that gives the whole text."""
