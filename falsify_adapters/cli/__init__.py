"""Command lines: a thin translation of the library (click)."""
