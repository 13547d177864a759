"""Who may use a server, how often, and with how much; what it says while its engine is busy."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.text.languages import nearest_code
from transduce.wings.serving.access import MAX_BUCKETS, RateLimit

# -- rates


@given(st.integers(1, 50), st.lists(st.floats(0, 100), max_size=100))
def test_rate_limit_is_never_exceeded(per_minute: int, pauses: list[float]) -> None:
    now = 0.0
    rates = RateLimit(per_minute, lambda: now)
    allowed: list[float] = []
    for pause in pauses:
        now += pause
        wait = rates.wait("alice")
        if not wait:
            allowed.append(now)
        else:
            before = now
            now += wait + 1e-6
            assert rates.wait("alice") == 0  # as promised
            allowed.append(now)
            assert now > before
    for begin in allowed:
        assert sum(begin <= each <= begin + 60 for each in allowed) <= 2 * per_minute
    assert rates.wait("bob") == 0


def test_a_rate_limit_by_hand() -> None:
    """Six requests a minute: a bucket of six, and one more every ten seconds."""
    now = 0.0
    rates = RateLimit(6, lambda: now)
    assert [rates.wait("alice") for _ in range(8)] == [0] * 6 + [10, 10]
    now = 2.5
    assert (rates.wait("alice"), rates.wait("bob")) == (8, 0)
    now = 9.5
    assert rates.wait("alice") == 1
    now = 10.0
    assert [rates.wait("alice") for _ in range(2)] == [0, 10]
    now = 35.0
    assert [rates.wait("alice") for _ in range(3)] == [0, 0, 5]
    now = 10_000.0
    assert [rates.wait("alice") for _ in range(7)] == [0] * 6 + [10]


def test_the_client_that_was_not_heard_of_for_longest_is_forgotten() -> None:
    rates = RateLimit(1, lambda: 0.0)
    assert rates.wait("first") == 0
    assert not any(rates.wait(str(number)) for number in range(MAX_BUCKETS - 1))
    assert rates.wait("first") == 60, "as many are known as fit"
    assert rates.wait("last") == 0, "one more"
    assert len(rates.buckets) == MAX_BUCKETS
    assert (rates.wait("last"), rates.wait("first"), rates.wait("1")) == (60, 60, 60)
    assert rates.wait("0") == 0, "it was forgotten"


@pytest.mark.parametrize(
    "origin", ["example.org", "https://a.b/c", "https://", "https://ü.de", "https://u@a.b"]
)
def test_an_origin_that_no_browser_sends_is_refused(
    origin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(capsys, "serve", tmp_path, "--cors", origin, "--port", 0)
    assert status == 2 and f"'{origin}' is not an origin" in error


@given(st.sampled_from(["en", "de", "pt_BR", "pt-PT", "zh_Hans", "zh"]), st.data())
def test_the_nearest_code_is_of_the_same_language(code: str, data: st.DataObject) -> None:
    among = data.draw(
        st.lists(st.sampled_from(["en", "de", "pt", "pt_BR", "zh_Hant", "zh-Hans"]), max_size=4)
    )
    found = nearest_code(code, among)
    scripts = {"zh_Hans": "zh_Hant", "zh_Hant": "zh_Hans"}
    same = [
        each
        for each in among
        if each[:2] == code[:2] and each.replace("-", "_") != scripts.get(code)
    ]
    assert found in same if same else found is None
    if code in among:
        assert found == code
