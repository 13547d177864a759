"""The wings are optional parts of transduce that the core does not import (docs/architecture.md)."""
