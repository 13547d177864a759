"""Wings are the parts around the core: a wing imports the core, but the core imports no wing (docs/architecture.md)."""
