"""Each command is a module that reads the arguments, calls the other packages and prints the result.

CONTRIBUTING.md says how to add a command. The parameters of a command's function are the command's options, and the
function's docstring is the command's help. Results go to standard output; messages and progress go to standard error
(`system/console.py`). To keep `--help` fast, slow modules are imported only inside functions: torch,
numpy, sacrebleu, matplotlib, and our modules that import these. `tests/commands/test_cli.py` checks this.
"""
