"""The code that computes answers, and code that several answers share."""
