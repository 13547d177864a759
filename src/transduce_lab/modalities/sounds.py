"""Reads recorded speech as frames of a mel spectrogram, as Speech-Transformer does (Dong et al., 2018)."""

import wave
from functools import cache

import numpy as np
from numpy.typing import NDArray

from transduce.system.console import log
from transduce.system.errors import UserError, needing

SAMPLE_RATE = 16_000  # hertz
WINDOW_SAMPLES = 400  # 25 ms
HOP_SAMPLES = 160  # 10 ms
MEL_CHANNELS = 40
QUIETEST = 1e-6  # power below which all is silence
MAX_DEVIATIONS = 3.0  # from the mean of a recording: louder and quieter values are clipped
MAX_SECONDS = 30
WIDTHS = {1: "u1", 2: "<i2", 4: "<i4"}  # numpy's types of samples, by their bytes


def read_sound(path: str) -> NDArray[np.uint8]:
    """The frames of a WAV file, one every 10 ms: (frames, MEL_CHANNELS), normalised over the recording.

    Other rates than SAMPLE_RATE are resampled, and channels are averaged. Raises UserError if the file is missing,
    damaged, in another format, empty or too long.
    """
    samples, rate = _samples(path)
    if rate != SAMPLE_RATE:
        _say_resampled(rate)
        with needing("lab", "Resampling"):
            from scipy.signal import resample_poly
        divisor = int(np.gcd(rate, SAMPLE_RATE))
        samples = resample_poly(samples, SAMPLE_RATE // divisor, rate // divisor)
    if len(samples) < WINDOW_SAMPLES:
        raise UserError(f"{path} has less than 25 ms of sound.", "Leave it out.")
    return _quantised(_log_mel(samples))


def _samples(path: str) -> tuple[NDArray[np.float64], int]:
    """The samples of a WAV file from -1 to 1, and their rate in hertz."""
    try:
        with wave.open(path, "rb") as file:
            rate = file.getframerate()
            count = file.getnframes()
            channels = file.getnchannels()
            width = file.getsampwidth()
            if width not in WIDTHS:
                raise wave.Error("its samples have neither 8, 16 nor 32 bits")
            if count > MAX_SECONDS * rate:
                raise UserError(
                    f"{path} takes {count / rate:.0f} seconds, more than {MAX_SECONDS}.",
                    "Cut it into sentences.",
                )
            content = file.readframes(count)
    except FileNotFoundError:
        raise UserError(
            f"There is no recording {path}.",
            "Write a path and its text, separated by a TAB. Paths begin at the working directory.",
        ) from None
    except (OSError, EOFError, wave.Error, ZeroDivisionError) as error:
        reason = str(error) or "it ends too early"
        raise UserError(f"{path} can't be read: {reason}.", "Convert it to a WAV file.") from None
    if len(content) < count * channels * width:
        raise UserError(f"{path} is damaged: it ends too early.", "Restore it from another copy.")
    values = (
        np.frombuffer(content, WIDTHS[width]).astype(np.float64).reshape(-1, channels).mean(axis=1)
    )
    if width == 1:  # unsigned
        return values / 128 - 1, rate
    return values / 2.0 ** (8 * width - 1), rate


@cache
def _say_resampled(rate: int) -> None:
    """Say once for each rate that recordings are resampled."""
    log(f"Recordings with {rate:,} samples a second are resampled to {SAMPLE_RATE:,}.")


def _log_mel(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms of the power in each mel channel: (frames, MEL_CHANNELS)."""
    count = 1 + (len(samples) - WINDOW_SAMPLES) // HOP_SAMPLES
    places = np.arange(count)[:, None] * HOP_SAMPLES + np.arange(WINDOW_SAMPLES)
    spectrum = np.fft.rfft(samples[places] * np.hanning(WINDOW_SAMPLES), axis=1)
    return np.log(np.maximum(np.abs(spectrum) ** 2 @ _mel_filters(), QUIETEST))


@cache
def _mel_filters() -> NDArray[np.float64]:
    """Overlapping triangles that are equally wide on the mel scale: (frequencies, MEL_CHANNELS)."""
    frequencies = np.fft.rfftfreq(WINDOW_SAMPLES, 1 / SAMPLE_RATE)
    top = 1127 * np.log1p(SAMPLE_RATE / 2 / 700)
    edges = 700 * np.expm1(np.linspace(0, top, MEL_CHANNELS + 2) / 1127)
    rising = (frequencies[:, None] - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - frequencies[:, None]) / np.diff(edges)[1:]
    return np.maximum(0, np.minimum(rising, falling))


def _quantised(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values from 0 to 255, with the mean of each channel over the recording in the middle."""
    centred = (values - values.mean(axis=0)) / max(1e-3, values.std())
    return np.round((centred / MAX_DEVIATIONS).clip(-1, 1) * 127.5 + 127.5).astype(np.uint8)
