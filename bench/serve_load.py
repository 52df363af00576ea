#!/usr/bin/env python3
"""Loads a server with streams and says how fast they come.

    serve_load.py URL [--streams 1,16,64,200] [--prompt-tokens 32] [--max-tokens 64] [--seconds 20]

For each number of streams: so many clients at a time ask /v1/completions for a stream, one request after the other, until
the time is over; prompts are random tokens, so that no prefix is known, and no answer ends early. Printed are requests and
tokens a second, the time to the first token and between tokens (median, 99 %), and the errors. It needs Python alone,
and one core for about 20 000 tokens a second.
"""
import argparse
import asyncio
import dataclasses
import json
import random
import time
import urllib.parse

FIRST_ID = 200  # Below are bytes and what may be special.


@dataclasses.dataclass
class Stream:
    """One streamed answer: its events' texts and when each came, the last of which must be [DONE]."""
    status: int = 0
    headers: dict = dataclasses.field(default_factory=dict)
    start: float = 0
    events: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)
    body: bytes = b""  # Of an answer that is no stream.

    @property
    def is_whole(self):
        return self.status == 200 and bool(self.events) and self.events[-1] == "[DONE]"

    def chunks(self):
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    def text(self):
        """All that it said: of a completion, or the content of a chat."""
        choices = [choice for chunk in self.chunks() for choice in chunk.get("choices", [])]
        return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)

    def finish(self):
        reasons = [choice["finish_reason"] for chunk in self.chunks() for choice in chunk.get("choices", [])]
        return reasons[-1] if reasons else None


async def read_head(reader, stream):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    stream.status = int(head[0].split()[1])
    stream.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}


async def read_chunks(reader, take):
    while size := int(await reader.readuntil(b"\r\n"), 16):
        take((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")


async def ask(address, path, body, *, on_event=None, headers=()):
    """The whole stream of one request on a connection of its own; `on_event` is awaited for nothing, but told."""
    stream, rest = Stream(), b""

    def take(data):
        nonlocal rest
        now = time.perf_counter()
        *blocks, rest = (rest + data).split(b"\n\n")
        for block in blocks:
            if not block.startswith(b"data: "):
                continue  # A comment.
            stream.events.append(block[6:].decode())
            stream.times.append(now)
            if on_event:
                on_event(stream)

    reader, writer = await asyncio.open_connection(*address, limit=1 << 22)
    try:
        data = json.dumps(body).encode()
        head = [f"POST {path} HTTP/1.1", f"Host: {address[0]}", "Content-Type: application/json",
                f"Content-Length: {len(data)}", "Connection: close", *headers]
        stream.start = time.perf_counter()
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + data)
        await read_head(reader, stream)
        if stream.headers.get("transfer-encoding") == "chunked":
            await read_chunks(reader, take)
        else:
            stream.body = await reader.readexactly(int(stream.headers["content-length"]))
    finally:
        writer.close()
    return stream


async def client(address, options, seed, deadline, streams):
    draw = random.Random(seed)
    while time.perf_counter() < deadline:
        body = {"prompt": [draw.randrange(FIRST_ID, options.vocabulary) for _ in range(options.prompt_tokens)],
                "max_tokens": options.max_tokens, "stream": True, "ignore_eos": True, "seed": seed}
        if options.model:
            body["model"] = options.model
        try:
            streams.append(await ask(address, "/v1/completions", body))
        except (OSError, EOFError, ValueError):
            streams.append(Stream())
        if not streams[-1].is_whole:
            await asyncio.sleep(0.1)  # It is refused, or gone.


def share(values, fraction):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * fraction))] if values else float("nan")


def report(num_streams, streams, seconds):
    whole = [stream for stream in streams if stream.is_whole]
    # The last event is [DONE], the one before says why it ended.
    tokens = [stream.times[:-2] for stream in whole]
    first = [times[0] - stream.start for stream, times in zip(whole, tokens) if times]
    gaps = [after - before for times in tokens for before, after in zip(times, times[1:])]
    print(f"{num_streams:7} {len(whole) / seconds:11.1f} {sum(map(len, tokens)) / seconds:9.0f}"
          f" {share(first, 0.5) * 1e3:9.1f} {share(first, 0.99) * 1e3:9.1f}"
          f" {share(gaps, 0.5) * 1e3:9.2f} {share(gaps, 0.99) * 1e3:9.2f} {len(streams) - len(whole):7}", flush=True)


async def measure(address, options, num_streams):
    streams, start = [], time.perf_counter()
    deadline = start + options.seconds
    await asyncio.gather(*(client(address, options, seed, deadline, streams) for seed in range(num_streams)))
    report(num_streams, streams, time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("url", help="what `trtmc serve` prints")
    parser.add_argument("--model", help="its name, if the server has several")
    parser.add_argument("--streams", default="1,16,64,200", help="numbers of streams at a time")
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20, help="of asking, for each number of streams")
    parser.add_argument("--vocabulary", type=int, default=10000, help="prompts have ids below it")
    options = parser.parse_args()
    parts = urllib.parse.urlsplit(options.url)
    print("streams  requests/s  tokens/s  TTFT p50       p99   gap p50       p99  errors\n"
          "                                    [ms]      [ms]      [ms]      [ms]")
    for text in options.streams.split(","):
        asyncio.run(measure((parts.hostname, parts.port or 80), options, int(text)))


if __name__ == "__main__":
    main()
