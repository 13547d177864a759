"""Options: their names, types, defaults and values in the paper, and the table that chooses sizes."""
