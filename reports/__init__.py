"""Statistics, tables, figures and pages over finished tables; nothing here triggers work."""
