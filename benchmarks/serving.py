"""The speed of the server under load, compared with a loop that calls the same engine once per request.

    python benchmarks/serving.py MODEL SOURCE [--clients 1 8 64] [--seconds 10] [--rounds 3] [--overload 60]

Every line of SOURCE is a request. The loop runs in this process with one thread. The server is `transduce serve` in a
separate process with its defaults, except that it accepts 100,000 connections. Clients keep their
connections and send the next request after each answer. The loop and each number of clients take turns, --rounds times.
The table has medians and the smallest and largest ratio; latencies and "equal", the share of answers equal to the
loop's, are of the last round. "clients' CPU" is their share of one core, since they run on the same machine.
Then requests are sent for --overload seconds at ten times the highest rate, without waiting for answers. Prints how
many are answered, refused with status 503, and neither, and whether the answers are equal to the loop's.
"""

import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measuring import ratio, run_script

import transduce
from transduce.text.plain import read_lines

TIMES = 10  # rate of requests under overload, relative to the highest rate of answers
IDLE = 4.0  # seconds; servers close connections that are idle for long


class Answer(NamedTuple):
    """The answer to a request."""

    sentence: int
    status: int
    text: str
    seconds: float


def main(
    model: Path,
    source: str,
    *,
    clients: list[int] | None = None,
    seconds: float = 10,
    rounds: int = 3,
    overload: float = 60,
) -> None:
    """Measure the loop and each number of clients in turns, then the overload, and print the results."""
    sentences = list(read_lines(source))
    one = transduce.load(model, device="cpu", threads=1)
    expected = [each.text for each in one.translate(sentences)]
    data = transduce.model_folder.read_config(model).data
    bodies = [
        json.dumps({"q": sentence, "source": data.source, "target": data.target}).encode()
        for sentence in sentences
    ]
    print(f"{model}, {one.engine.name}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}\n")
    with server(model) as port:
        asyncio.run(closed(port, bodies, 8, 2.0))  # warm-up
        rates: dict[int, list[float]] = {number: [] for number in clients or [1, 8, 64]}
        alone: list[float] = []
        last: dict[int, list[Answer]] = {}
        busy: dict[int, float] = {}
        for _ in range(rounds):
            times = loop(one, sentences, seconds)
            alone.append(len(times) / sum(times))
            for number in rates:
                began = cpu()
                last[number] = asyncio.run(closed(port, bodies, number, seconds))
                busy[number] = (cpu() - began) / seconds
                rates[number].append(len(last[number]) / seconds)
        print(
            "| requests | sentences/s | relative to the loop | p50 | p99 | equal | clients' CPU |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- |")
        print(
            f"| one after the other, no server | {statistics.median(alone):.0f} | 1 | {latencies(times)} | | |"
        )
        for number, each in rates.items():
            found = last[number]
            right = statistics.mean(
                answer.status == 200 and answer.text == expected[answer.sentence]
                for answer in found
            )
            print(
                f"| {number} clients | {statistics.median(each):.0f} | {ratio(each, alone)} "
                f"| {latencies([answer.seconds for answer in found])} | {right:.1%} | {busy[number]:.0%} |"
            )
        if overload:
            capacity = max(statistics.median(each) for each in rates.values())
            began = time.monotonic()
            used = cpu()
            sent, answers = asyncio.run(opened(port, bodies, TIMES * capacity, overload))
            elapsed = time.monotonic() - began
            print(described(sent, answers, expected, capacity, elapsed, cpu() - used))


def described(
    sent: int,
    answers: list[Answer],
    expected: list[str],
    capacity: float,
    seconds: float,
    used: float,
) -> str:
    """Describe the result of the overload test."""
    by_status = Counter(answer.status for answer in answers)
    done = [answer for answer in answers if answer.status == 200]
    refused = [answer.seconds for answer in answers if answer.status == 503]
    right = sum(answer.text == expected[answer.sentence] for answer in done)
    return (
        f"\nOverload, {TIMES} times {capacity:.0f} requests/s: {sent:,} sent in {seconds:.0f} s, "
        f"{by_status[200]:,} answered ({right / max(1, len(done)):.1%} equal to the loop's), {by_status[503]:,} "
        f"refused, {sent - len(done) - by_status[503]:,} neither. Answers a second: {len(done) / seconds:.0f}, "
        f"{by_status[200] / seconds / capacity:.2f} of {capacity:.0f}. Refusals: {latencies(refused)} (p50 | p99); "
        f"answers: {latencies([answer.seconds for answer in done])}. Clients' CPU: {used / seconds:.0%} of a core."
    )


def loop(translator: transduce.Translator, sentences: list[str], seconds: float) -> list[float]:
    """Translate sentences one by one, and return the seconds of each call."""
    times: list[float] = []
    while sum(times) < seconds:
        began = time.perf_counter()
        translator.translate([sentences[len(times) % len(sentences)]])
        times.append(time.perf_counter() - began)
    return times


@contextlib.contextmanager
def server(model: Path) -> Iterator[int]:
    """Start a server; yields its port when the server is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transduce", "serve", str(model), "--port", str(port)]
    with subprocess.Popen([*command, "--limit", "limits.connections=100000"]) as process:
        try:
            while asyncio.run(health(port)) != 200:
                assert process.poll() is None
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()


async def health(port: int) -> int:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 0
    status, _ = await request(reader, writer, b"GET", b"/health", b"")
    writer.close()
    return status


async def closed(port: int, bodies: list[bytes], clients: int, seconds: float) -> list[Answer]:
    """Send requests from clients that wait for each answer (closed loop). Answers after the time do not count."""
    until = time.monotonic() + seconds
    found = list[Answer]()

    async def client(seed: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        choice = random.Random(seed)
        while time.monotonic() < until:
            answer = await ask(reader, writer, choice.randrange(len(bodies)), bodies)
            if time.monotonic() < until:
                found.append(answer)
        writer.close()

    await asyncio.gather(*map(client, range(clients)))
    return found


async def opened(
    port: int, bodies: list[bytes], rate: float, seconds: float
) -> tuple[int, list[Answer]]:
    """Send requests at a fixed rate without waiting for answers (open loop); connections are reused."""
    # Idle since this time.
    free: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
    found = list[Answer]()
    tasks = set[asyncio.Task[None]]()
    choice = random.Random(0)

    async def once(sentence: int) -> None:
        while free and time.monotonic() - free[0][0] > IDLE:
            free.pop(0)[2].close()
        connection = free.pop()[1:] if free else await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            found.append(await ask(*connection, sentence, bodies))
            free.append((time.monotonic(), *connection))

    began = time.monotonic()
    sent = 0
    while (now := time.monotonic() - began) < seconds:
        while sent < now * rate:
            task = asyncio.create_task(once(choice.randrange(len(bodies))))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks, return_exceptions=True)
    return sent, found


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sentence: int, bodies: list[bytes]
) -> Answer:
    began = time.perf_counter()
    status, body = await request(reader, writer, b"POST", b"/translate", bodies[sentence])
    text = json.loads(body)["translatedText"] if status == 200 else ""
    return Answer(sentence, status, text, time.perf_counter() - began)


async def request(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: bytes,
    path: bytes,
    body: bytes,
) -> tuple[int, bytes]:
    """Send a request and read its answer with little CPU time, since the server runs on the same machine."""
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % (method, path, len(body)) + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(answer[9:12]), await reader.readexactly(length)


def latencies(seconds: list[float]) -> str:
    """The median and 99th percentile in milliseconds, as cells of the table."""
    if len(seconds) < 2:
        return "– | –"
    cuts = statistics.quantiles(seconds, n=100)
    return f"{1000 * cuts[49]:.1f} ms | {1000 * cuts[98]:.1f} ms"


def cpu() -> float:
    """The CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    run_script(main, __doc__)
