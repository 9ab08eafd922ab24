"""Checks message specs: findings, the rules of lint, and the formats they are told in."""
