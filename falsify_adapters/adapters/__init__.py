"""One module per source of runs and qrels."""
