"""Partial sums for the facts of a report: made by tasks that decode, merged on the driver."""
