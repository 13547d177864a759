"""What a machine or a folder lacks, and the line that mends it."""
