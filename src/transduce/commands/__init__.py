"""One file per command: it reads the arguments, calls the other packages and prints the result.

CONTRIBUTING.md says how to add a command. A command's parameters are its options and its docstring is its help. Results
go to standard output, messages and progress to standard error (`system/console.py`). Modules that would make `--help`
slow (torch, numpy, sacrebleu, matplotlib, and our modules that need them) are imported inside the function;
`tests/commands/test_cli.py` checks this.
"""
