"""How answers are asked, and what several answers have in common."""
