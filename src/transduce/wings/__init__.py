"""Wings are the additional parts of transduce; the core imports no wing (docs/architecture.md)."""
