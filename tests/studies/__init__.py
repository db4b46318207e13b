"""Studies: each claim about intervals and verdicts is a table that a script here makes."""
