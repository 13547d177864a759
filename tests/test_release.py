"""The release workflow: what it runs exists here, and only `publish` may write anything outside the run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import transduce

ROOT = Path(__file__).parents[1]
WORKFLOW: dict[Any, Any] = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [(job, step) for job, its in JOBS.items() for step in its["steps"]]


def test_a_tag_starts_the_workflow():
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None}  # `on` is true


def test_only_publishing_needs_permissions_and_only_a_repository_that_wants_it_publishes():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    allowed = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    assert allowed == {"publish": {"id-token": "write"}}
    assert JOBS["publish"]["if"] == "github.ref_type == 'tag' && vars.PUBLISH == 'true'"
    assert set(JOBS["publish"]["needs"]) == JOBS.keys() - {"publish"}
    assert not any("run" in step for step in JOBS["publish"]["steps"])
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text


@pytest.mark.parametrize("command", [step["run"] for _, step in STEPS if "run" in step])
def test_targets_and_files_of_its_commands_exist(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\S+)", command, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for file in re.findall(r"(?:src/\S+|constraints\.txt)", command):
        assert (ROOT / file).exists()
    if "docker build" in command:
        assert (ROOT / "Dockerfile").exists()


def test_the_check_of_the_tag_finds_the_version():
    [command] = [step["run"] for _, step in STEPS if "grep" in step.get("run", "")]
    pattern = re.search(r'grep -qx "(.*)" src', command)[1].replace('\\"', '"')
    line = pattern.replace("${GITHUB_REF_NAME#v}", transduce.__version__)
    source = (ROOT / "src" / "transduce" / "__init__.py").read_text(encoding="utf-8")
    assert line in source.splitlines()


def test_what_a_job_builds_is_kept():
    kept = {
        job for job, step in STEPS if step.get("uses", "").startswith("actions/upload-artifact")
    }
    assert kept == JOBS.keys() - {"publish"}
