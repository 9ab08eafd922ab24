"""How findings are printed: a file for each format, with one function that gives the whole text."""
