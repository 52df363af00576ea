#!/usr/bin/env python3
"""Compares trtmc's tokenizer with PyPI `tokenizers`, live: every difference is a failure.

usage: tokenizer_diff.py DRIVER SUITE TOKENIZER_JSON [--every [--part I/N]] [--random N]
  checkpoint TOKENIZER_JSON   code points in context, random strings, samples; decoding
  synthetic TOKENIZER_JSON    its vocabulary under other pre-tokenizers, added tokens, templates
  transformers TOKENIZER_JSON what AutoTokenizer makes of its folder
--every takes every code point instead of the ends of runs of equal properties and a sample; with --part only every Nth of them.
"""
import argparse
import array
import itertools
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading

try:
    import tokenizers
except ImportError:
    print("skipped: this Python has no module tokenizers (pip install -r tests/requirements.txt)")
    sys.exit(77)

import tokenizer_texts as texts_of

os.environ["RUST_BACKTRACE"] = "0"  # Some texts make `tokenizers` panic.

DECODE, SPECIAL, PLAIN, ERROR = 1, 1 << 8, 1 << 9, 0xFFFFFFFF
CHUNK = 20000


class Refused(Exception):
    pass


class Driver:
    """tokenizer_driver.cc as a process."""

    def __init__(self, program, path):
        self.process = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def answer(self):
        size, = struct.unpack("<I", self.process.stdout.read(4))
        if size != ERROR:
            return self.process.stdout.read(size)
        size, = struct.unpack("<I", self.process.stdout.read(4))
        raise Refused(self.process.stdout.read(size).decode())

    def ask(self, kind, bodies):
        requests = b"".join(struct.pack("<II", kind, len(body)) + body for body in bodies)

        def write():
            self.process.stdin.write(requests)
            self.process.stdin.flush()
        writer = threading.Thread(target=write)
        writer.start()
        answers = [self.answer() for _ in bodies]
        writer.join()
        return answers

    def encode(self, texts, kind=0):
        answer, = self.ask(kind, [b"\xff".join(text.encode() for text in texts)])
        numbers, result, at = array.array("i", answer), [], 0
        while at < len(numbers):
            end = at + 1 + numbers[at]
            result.append(numbers[at + 1:end].tolist())
            at = end
        assert len(result) == len(texts)
        return result

    def decode(self, lists, skip_special):
        bodies = [struct.pack(f"<{len(ids)}i", *ids) for ids in lists]
        return self.ask(DECODE | (SPECIAL if skip_special else 0), bodies)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Comparison:
    def __init__(self, driver, path, name):
        self.driver = Driver(driver, path)
        self.oracle = tokenizers.Tokenizer.from_file(path)
        self.oracle.no_truncation()
        self.oracle.no_padding()
        self.name, self.texts, self.differences, self.unanswered = name, 0, 0, 0

    def report(self, what, text, ours, theirs):
        self.differences += 1
        if self.differences <= 5:
            print(f"{self.name}: {what} of {text!r}: trtmc {ours!r}, tokenizers {theirs!r}")

    def expected(self, texts, special):
        """Ids by text; None where `tokenizers` itself panics."""
        try:
            return [e.ids for e in self.oracle.encode_batch_fast(texts, add_special_tokens=special)]
        except BaseException as error:  # pyo3's PanicException is no Exception.
            if isinstance(error, KeyboardInterrupt) or len(texts) == 1:
                return [None] * len(texts)
        return [self.expected([text], special)[0] for text in texts]

    def encode(self, texts, special=False):
        for chunk in chunks(texts):
            theirs = self.expected(chunk, special)
            for text, a, b in zip(chunk, self.driver.encode(chunk, SPECIAL if special else 0), theirs):
                if b is None:
                    self.unanswered += 1
                elif a != b:
                    self.report("ids", text, a, b)
            self.texts += len(chunk)

    def decode(self, texts):
        """What the ids of `texts` decode to, and that it is the texts again."""
        ids = [e.ids for e in self.oracle.encode_batch_fast(texts, add_special_tokens=False)]
        for skip in (False, True):
            theirs = self.oracle.decode_batch(ids, skip_special_tokens=skip)
            for text, a, b in zip(texts, self.driver.decode(ids, skip), theirs):
                if a.decode(errors="replace") != b or (not skip and a != text.encode()):
                    self.report(f"decoding (skip {skip})", text, a, b)

    def decode_ids(self, lists):
        for skip in (False, True):
            theirs = self.oracle.decode_batch(lists, skip_special_tokens=skip)
            for ids, a, b in zip(lists, self.driver.decode(lists, skip), theirs):
                if a.decode(errors="replace") != b:
                    self.report(f"decoding (skip {skip})", ids, a, b)

    def finish(self):
        self.driver.close()
        if self.unanswered > self.texts // 10:
            print(f"{self.name}: tokenizers panics on {self.unanswered} of {self.texts} texts: that compares little")
            self.differences += 1
        return self.texts, self.differences


def chunks(items):
    items = iter(items)
    while chunk := list(itertools.islice(items, CHUNK)):
        yield chunk


def checkpoint_suite(options):
    with open(options.tokenizer, encoding="utf-8") as file:
        added = [token["content"] for token in json.load(file)["added_tokens"]]
    comparison = Comparison(options.driver, options.tokenizer, "checkpoint")
    part, parts = map(int, options.part.split("/"))
    comparison.encode(texts_of.code_points_in_context(options.every, part - 1, parts))
    rng = random.Random(1)
    strings = [texts_of.random_text(rng, added) for _ in range(options.random)]
    comparison.encode(strings)
    comparison.encode(strings[:2000], special=True)
    comparison.encode(texts_of.SAMPLES)
    comparison.decode(strings[:20000] + texts_of.SAMPLES)
    size = comparison.oracle.get_vocab_size()
    comparison.decode_ids([[rng.randrange(size) for _ in range(rng.randrange(1, 12))] for _ in range(20000)])
    comparison.decode_ids([[i] for i in range(size)])
    return comparison.finish()


def synthetic_suite(options):
    with open(options.tokenizer, encoding="utf-8") as file:
        base = json.load(file)
    texts, differences = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, document, strings, special in texts_of.synthetic_tokenizers(base, options.random):
            path = str(pathlib.Path(folder) / "tokenizer.json")
            pathlib.Path(path).write_text(json.dumps(document), encoding="utf-8")
            try:
                comparison = Comparison(options.driver, path, name)
            except Refused as error:
                print(f"{name}: refused: {error}")
                differences += 1
                continue
            comparison.encode(strings)
            if special:
                comparison.encode(strings[:200], special=True)
            counts = comparison.finish()
            texts, differences = texts + counts[0], differences + counts[1]
    return texts, differences


def transformers_suite(options):
    try:
        import transformers
    except ImportError:
        print("skipped: this Python has no module transformers")
        sys.exit(77)
    folder = pathlib.Path(options.tokenizer).parent
    oracle = transformers.AutoTokenizer.from_pretrained(folder)
    comparison = Comparison(options.driver, options.tokenizer, f"transformers {transformers.__version__}")
    rng = random.Random(3)
    strings = texts_of.SAMPLES + [texts_of.random_text(rng, list(oracle.get_added_vocab())) for _ in range(options.random)]
    for special in (False, True):
        theirs = oracle(strings, add_special_tokens=special)["input_ids"]
        for text, a, b in zip(strings, comparison.driver.encode(strings, SPECIAL if special else 0), theirs):
            if a != b:
                comparison.report("ids", text, a, b)
    comparison.texts = 2 * len(strings)
    for skip in (False, True):
        theirs = oracle.batch_decode(oracle(strings)["input_ids"], skip_special_tokens=skip)
        ours = comparison.driver.decode(oracle(strings)["input_ids"], skip)
        for text, a, b in zip(strings, ours, theirs):
            if a.decode(errors="replace") != b:
                comparison.report(f"decoding (skip {skip})", text, a, b)
    return comparison.finish()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("suite", choices=["checkpoint", "synthetic", "transformers"])
    parser.add_argument("tokenizer")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--random", type=int, default=100000)
    options = parser.parse_args()
    suites = {"checkpoint": checkpoint_suite, "synthetic": synthetic_suite, "transformers": transformers_suite}
    texts, differences = suites[options.suite](options)
    print(f"tokenizers {tokenizers.__version__}: {texts} texts, {differences} differences")
    sys.exit(1 if differences or not texts else 0)


if __name__ == "__main__":
    main()
