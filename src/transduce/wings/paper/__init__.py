"""The paper's tables and figures: the values it prints, and the same values measured with this package."""
