#!/usr/bin/env python3
"""Runs a session with trtmc that is written down as text, and compares what comes out.

    run_transcripts.py --bin DIR --bundle FILE --checkpoint DIR CASE.txt...

A case is commands, each with what it prints:

    # A comment.
    $ printf Hello | trtmc tokenize tiny.trtmc
    1> [1748]
    $ trtmc rum
    2> trtmc: unknown command "rum"
    = 2

"1>" is a line of standard output, "2>" one of standard error, "1|" and "2|" the last one when it does
not end in a newline, "=" the exit status unless it is 0. A command that ends in a backslash goes on in
the next line. They run in sh in one new folder per case, where tiny.trtmc is the embedded model's bundle
and smollm3-tiny its checkpoint. In a case that begins with "# With a hub", HF_ENDPOINT is a hub of our own
(../hub/fake_hub.py) that holds the checkpoint as example/smollm3-tiny. In one that begins with "# With a server", $SERVER
is the address of `trtmc serve` with the bundle, which clients call "tiny". TRTMC_UPDATE_GOLDEN=1 rewrites the cases; the
diff is the review.
"""
import argparse
import contextlib
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "hub"), str(TESTS / "clients")]
from fake_hub import FakeHub, Repository  # noqa: E402
from served_model import ServedModel  # noqa: E402

TIMEOUT_S = 120
# What differs from run to run and from machine to machine.
SCRUBS = [
    (re.compile(r'"((?:load|prefill|decode|ttft)_ms|seconds)":[0-9.e+-]+'), r'"\1":0'),
    (re.compile(r"(100 %)  \d+ s$", re.M), r"\1  0 s"),
    (re.compile(r"^(\w+ +)ready( +).*$", re.M), r"\1ready\2..."),
    (re.compile(r"^(build|compiler)( +).*$", re.M), r"\1\2..."),
    (re.compile(r'(there is no instruction set "\w+", only) .*$', re.M), r"\1 ..."),
    # A snapshot of our own hash would say nothing; tests of the bundle hold it to SHA-256.
    (re.compile(r"^(identity +)[0-9a-f]{64}$", re.M), r"\1..."),
    # Of the server: what is drawn or tells the time.
    (re.compile(r'"id":"(chatcmpl|cmpl|call)[-_][0-9a-f]+"'), r'"id":"\1-..."'),
    (re.compile(r'"created":\d+'), '"created":0'),
    (re.compile(r'"system_fingerprint":"fp_[0-9a-f]{10}"'), '"system_fingerprint":"fp_..."'),
    (re.compile(r"(?i)^(x-request-id: req-|date: ).*$", re.M), r"\1..."),
]


def scrub(text):
    for pattern, replacement in SCRUBS:
        text = pattern.sub(replacement, text)
    return text


def shown(stream, data):
    """The lines of one stream as a case has them."""
    text = scrub(data.decode("utf-8", "backslashreplace"))
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n")
    marks = [">"] * len(lines)
    if not text.endswith("\n"):
        marks[-1] = "|"
    return [f"{stream}{mark} {line}".rstrip() for mark, line in zip(marks, lines)]


def hub_of(lines, checkpoint):
    """The hub of a case that has one."""
    if not lines or not lines[0].startswith("# With a hub"):
        return contextlib.nullcontext()
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.is_file()}
    return FakeHub({"example/smollm3-tiny": Repository(files)})


def server_of(lines, arguments):
    """The server of a case that has one."""
    if not lines or not lines[0].startswith("# With a server"):
        return contextlib.nullcontext()
    return ServedModel(arguments.bin / "trtmc", arguments.bundle)


def environment(bin_dir, home, hub, server):
    keep = {name: value for name, value in os.environ.items()
            if name.startswith(("ASAN_", "UBSAN_", "TSAN_", "LSAN_"))}
    more = {"HF_ENDPOINT": hub.endpoint} if hub else {}
    more |= {"SERVER": server.url} if server else {}
    return keep | more | {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(home), "TZ": "UTC", "TERM": "dumb"}


def run_case(lines, arguments):
    """The case's text with what its commands print now."""
    out = []
    with tempfile.TemporaryDirectory() as folder, hub_of(lines, arguments.checkpoint) as hub, \
            server_of(lines, arguments) as server:
        folder = pathlib.Path(folder)
        work, home = folder / "work", folder / "home"
        work.mkdir()
        home.mkdir()
        (work / "tiny.trtmc").symlink_to(arguments.bundle)
        (work / "smollm3-tiny").symlink_to(arguments.checkpoint)
        number = 0
        while number < len(lines):
            line = lines[number]
            number += 1
            if not line.startswith("$ "):
                if not re.match(r"[12][>|]|= ", line):
                    out.append(line)
                continue
            out.append(line)
            command = line[2:]
            while command.endswith("\\"):
                out.append(lines[number])
                command = command[:-1] + lines[number]
                number += 1
            done = subprocess.run(["/bin/sh", "-c", command], cwd=work, capture_output=True,
                                  env=environment(arguments.bin, home, hub, server), timeout=TIMEOUT_S,
                                  stdin=subprocess.DEVNULL)
            out += shown("1", done.stdout.replace(str(folder).encode(), b"/tmp"))
            out += shown("2", done.stderr.replace(str(folder).encode(), b"/tmp"))
            if done.returncode != 0:
                out.append(f"= {done.returncode}")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    parser.add_argument("--checkpoint", required=True, type=pathlib.Path)
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    for case in arguments.cases:
        expected = case.read_text(encoding="utf-8").splitlines()
        if not any(line.startswith("$ ") for line in expected):
            sys.exit(f"{case}: no command")
        actual = run_case(expected, arguments)
        if actual == expected:
            continue
        if os.environ.get("TRTMC_UPDATE_GOLDEN") == "1":
            case.write_text("\n".join(actual) + "\n", encoding="utf-8")
            print(f"{case}: rewritten")
            continue
        failed = True
        print("\n".join(difflib.unified_diff(expected, actual, str(case), "now", lineterm="")))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
