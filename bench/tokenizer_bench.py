#!/usr/bin/env python3
"""tokenizer_bench.py TOKENIZER_BENCH tokenizer.json TEXT [ROUNDS]

Runs tokenizer_bench, then PyPI `tokenizers` on the same text, both on one core in processor time, and compares.
`tokenizers` gets the text whole and in lines, whichever is faster, after a first round that warms its cache.
"""
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402  # Reads the variable above.


def best_seconds(rounds, body):
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        body()
        best = min(best, time.process_time() - start)
    return best


def main():
    program, path, text_path = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    ours = subprocess.run([program, path, text_path, str(rounds)], check=True, capture_output=True, text=True).stdout
    print(ours, end="")
    with open(text_path, encoding="utf-8", newline="") as file:
        text = file.read()
    megabytes = len(text.encode()) / 1e6
    start = time.process_time()
    tokenizer = tokenizers.Tokenizer.from_file(path)
    load = time.process_time() - start
    lines = text.splitlines(keepends=True)
    whole = megabytes / best_seconds(rounds, lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False))
    batch = megabytes / best_seconds(rounds, lambda: tokenizer.encode_batch_fast(lines, add_special_tokens=False))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    decode = megabytes / best_seconds(rounds, lambda: tokenizer.decode(ids, skip_special_tokens=False))
    print(f"tokenizers {tokenizers.__version__}: load {load * 1e3:.0f} ms, encode {whole:.1f} MB/s whole, "
          f"{batch:.1f} MB/s in {len(lines)} lines, decode {decode:.1f} MB/s, {len(ids)} ids")
    our_encode = float(ours.split("encode ")[1].split()[0])
    print(f"ratio of encode: {our_encode / max(whole, batch):.1f}")


main()
