"""Every module can be imported where Python lacks the modules of Unix, as on Windows."""

import subprocess
import sys

WITHOUT_UNIX = """
import builtins, importlib, pkgutil
plain = builtins.__import__
def import_on_windows(name, variables=None, *rest, **names):
    importer = (variables or {}).get("__name__", "")  # other packages choose by the name of the system
    if importer.startswith("transduce") and name in ("fcntl", "resource", "termios", "pwd", "grp", "pty"):
        raise ImportError(f"{importer} imports {name}")
    return plain(name, variables, *rest, **names)
builtins.__import__ = import_on_windows
import transduce
for module in pkgutil.walk_packages(transduce.__path__, "transduce."):
    if module.name != "transduce.__main__":
        importlib.import_module(module.name)
        print(module.name)
"""


def test_no_module_needs_unix() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_UNIX], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert {"transduce.cli", "transduce.wings.serving.network"} <= set(run.stdout.split())
