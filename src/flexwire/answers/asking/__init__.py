"""The code that computes answers, and the parts that several answers share."""
