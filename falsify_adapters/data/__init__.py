"""What the package carries: the table of BEIR's data sets and the sample collection."""
