"""Recorded speech as sources: frames, rates, and files that can't be read."""

import wave
from pathlib import Path

import numpy as np
import pytest

from transduce.system.errors import UserError
from transduce_lab.modalities.sounds import MAX_SECONDS, MEL_CHANNELS, SAMPLE_RATE, read_sound

pytest.importorskip("scipy", reason="pip install 'transduce[lab]'")


def tone(
    path: Path, hertz: float, *, seconds: float = 0.5, rate: int = SAMPLE_RATE, channels: int = 1
) -> str:
    """Silence, and then a tone."""
    times = np.arange(int(seconds * rate)) / rate
    samples = np.sin(2 * np.pi * hertz * times) * (times > seconds / 2) * 20_000
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(samples, channels).astype("<i2").tobytes())
    return str(path)


def loudest(frames: np.ndarray) -> int:
    """The channel with the tone."""
    half = len(frames) // 2
    gain = frames[half + 3 :].astype(float).mean(axis=0) - frames[: half - 3].mean(axis=0)
    return int(gain.argmax())


def test_frames_follow_every_ten_milliseconds(tmp_path: Path) -> None:
    frames = read_sound(tone(tmp_path / "a.wav", 440))
    assert frames.shape == (1 + (8000 - 400) // 160, MEL_CHANNELS) and frames.dtype == np.uint8


def test_higher_tones_are_in_higher_channels(tmp_path: Path) -> None:
    places = [loudest(read_sound(tone(tmp_path / "a.wav", hertz))) for hertz in (200, 800, 3200)]
    assert places == sorted(set(places))


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (22_050, 1), (48_000, 2)])
def test_other_rates_and_channels_sound_the_same(tmp_path: Path, rate: int, channels: int) -> None:
    usual = read_sound(tone(tmp_path / "a.wav", 1000))
    other = read_sound(tone(tmp_path / "b.wav", 1000, rate=rate, channels=channels))
    assert abs(len(usual) - len(other)) <= 1 and loudest(usual) == loudest(other)


def test_loudness_does_not_matter(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 700)
    loud = read_sound(path)
    with wave.open(path, "rb") as file:
        parameters = file.getparams()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    with wave.open(path, "wb") as file:
        file.setparams(parameters)
        file.writeframes((samples // 4).astype("<i2").tobytes())
    assert loudest(read_sound(path)) == loudest(loud)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.wav", "There is no recording"),
        ("text.wav", "can't be read"),
        ("empty.wav", "can't be read"),
        ("cut.wav", "is damaged: it ends too early"),
        ("short.wav", "less than 25 ms"),
        ("long.wav", f"takes {MAX_SECONDS + 1} seconds, more than {MAX_SECONDS}"),
    ],
)
def test_unusable_recordings_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "text.wav").write_text("a red square, spoken")
    (tmp_path / "empty.wav").write_bytes(b"")
    whole = Path(tone(tmp_path / "whole.wav", 440)).read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[:-600])
    tone(tmp_path / "short.wav", 440, seconds=0.02)
    tone(tmp_path / "long.wav", 440, seconds=MAX_SECONDS + 1, rate=1000)
    with pytest.raises(UserError, match=message):
        read_sound(str(tmp_path / name))
