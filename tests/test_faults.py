"""The faults that benchmarks/attack/mutants.py plants fit the source."""

import pytest
from mutants import ROOT, listed, planted, squeezed

SOURCE = ROOT / "src"


def test_each_planted_fault_has_one_place() -> None:
    faults = [*planted(SOURCE)]
    assert len({fault.name for fault in faults}) == len(listed("planted")) == len(faults)
    for fault in faults:
        assert fault.content != (SOURCE / fault.file).read_bytes()
        compile(fault.content, fault.file, "exec")


@pytest.mark.parametrize("fault", listed("excused"), ids=lambda fault: fault["old"])
def test_each_excused_fault_has_a_place_and_a_reason(fault: dict[str, str]) -> None:
    assert squeezed(fault["old"]) in squeezed((SOURCE / fault["file"]).read_text(encoding="utf-8"))
    assert fault["why"]
