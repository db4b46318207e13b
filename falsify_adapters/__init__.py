"""The check that a retrieval score means anything: four nulls, one gate."""
