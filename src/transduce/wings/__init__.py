"""Everything around the core: a wing imports the core, but the core never imports a wing (docs/architecture.md)."""
