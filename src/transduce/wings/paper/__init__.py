"""The paper's tables and figures, and constituency parsing (section 6.3)."""
