"""Each command is a module that reads the arguments, calls the other packages and prints the result.

CONTRIBUTING.md says how to add a command. The parameters of a command's function are the command's options, and the
function's docstring is the command's help. Results go to standard output, messages and progress to standard error
(`system/console.py`). Packages that are slow to import (torch, numpy, sacrebleu, matplotlib), and our modules that need
them, are imported inside the function, to keep `--help` fast. `tests/commands/test_cli.py` checks this.
"""
