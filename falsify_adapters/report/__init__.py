"""Reports: one typed object in, text out (terminal, JSON, Markdown)."""
