"""Runs the JavaScript of an export's page in Node.js."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SITE_FOLDER = Path(__file__).parents[1] / "src" / "transduce" / "wings" / "export" / "site"


def in_node(module: str, expression: str, given: object, folder: Path = SITE_FOLDER) -> Any:
    """The value of an expression, in which `it` is a module of the page and `given` a value."""
    node = shutil.which("node")
    if not node:
        pytest.skip("JavaScript is tested in Node.js; node is missing: apt install nodejs")
    script = (
        f"import * as it from {json.dumps((folder / module).as_uri())};"
        "import { readFileSync } from 'node:fs';"
        "const given = JSON.parse(readFileSync(0, 'utf-8'));"
        f"const found = JSON.stringify(await (async () => ({expression}))());"
        "process.stdout.write(found);"
    )
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)
