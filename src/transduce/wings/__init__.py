"""Everything around the core: a wing depends on the core, never the other way round (docs/architecture.md)."""
