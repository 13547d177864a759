"""Tests of transduce/wings/corpora/doctor/machine.py."""

import json

from packaging.requirements import Requirement

from command_line import run
from transduce.wings.corpora.doctor.machine import _complaint, machine_facts


def test_the_machine_is_described(capsys, tmp_path, monkeypatch):
    status, out, _ = run(capsys, "doctor", "--json")
    facts = {fact["what"]: fact for fact in json.loads(out)}
    assert (
        status == 0
        and {"Python", "torch", "GPU", "cores", "memory", "disk", "extra fast"} <= facts.keys()
    )
    assert all(bool(fact["mend"]) == (fact["state"] != "good") for fact in facts.values())
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda _: ["nothing-like-it[x]>=2; extra == 'fast'"]
    )
    (lacking,) = [fact for fact in machine_facts(tmp_path) if fact.what == "extra fast"]
    assert (lacking.state, lacking.mend) == ("lacking", "pip install 'transduce[fast]'")
    assert "nothing-like-it is missing" in lacking.says
    assert _complaint(Requirement("numpy>=1.0")) == ""
    assert "must be >=999.0" in _complaint(Requirement("numpy>=999.0"))
