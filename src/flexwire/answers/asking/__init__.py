"""How answers are asked, and what several of them ask."""
