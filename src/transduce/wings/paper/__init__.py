"""The tables and figures of the paper: the printed values, and the same values as measured with this package."""
