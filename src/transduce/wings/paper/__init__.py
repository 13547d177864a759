"""The paper's tables and figures, computed here beside what the paper prints."""
