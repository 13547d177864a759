"""The tables and figures of "Attention Is All You Need", computed, with the printed figures beside ours."""
