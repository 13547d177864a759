"""Every option: names, types, defaults, the paper's values, and the table that chooses sizes."""
