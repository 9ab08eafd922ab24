"""The code that computes answers, and the code that several answers share."""
