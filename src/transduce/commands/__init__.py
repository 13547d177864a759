"""The commands read their arguments, call the other packages and print their results.

CONTRIBUTING.md says how to add a command. The parameters of a command's function are the command's options, and the
function's docstring is the command's help. Results go to standard output, and messages go to standard error. To keep
`--help` fast, modules that import torch, numpy, sacrebleu or matplotlib are imported only inside functions.
"""
