#!/usr/bin/env python3
"""Runs the sessions that pages of docs/ show (blocks marked `console`) and compares what they print.

    examples_test.py --bin DIR --source DIR [--python PYTHON] PAGE.md...

In a block, "$ " begins a command, which a here-document or a backslash continues; what follows is its
output and its errors as a terminal shows them. A line that is "..." stands for any lines. The blocks of a
page run one after the other in one folder that holds models/ and tools/ of the repository, with a hub of
our own that has the embedded model as example/smollm3-tiny. Times do not count. Blocks that call
.venv/bin/python are left out where PYTHON, which plays its part, does not exist.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(SOURCE / "transcripts"), str(SOURCE / "hub")]
from fake_hub import FakeHub, Repository  # noqa: E402
from run_transcripts import environment, scrub  # noqa: E402

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def sessions(block):
    """(command, lines that it prints) for each command of a block."""
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            sys.exit(f"a block begins with output: {line}")
        command = [line[2:]]
        end = re.search(r"<<'?(\w+)'?$", line)
        while command[-1].endswith("\\") or (end and command[-1] != end[1]):
            command.append(lines.pop(0))
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield "\n".join(command), output


def agree(expected, actual):
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(agree(expected[1:], actual[skipped:]) for skipped in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and agree(expected[1:], actual[1:])


def run_block(block, folder, variables):
    """Whether every command of the block prints what the page says."""
    good = True
    for command, output in sessions(block):
        done = subprocess.run(["/bin/bash", "-c", command], cwd=folder / "work", env=variables, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.replace(str(folder / "home").encode(), b"/home/me").decode("utf-8", "backslashreplace")
        expected, actual = (scrub(lines).rstrip("\n").splitlines() for lines in ("\n".join(output), text))
        if not agree(expected, actual):
            good = False
            print(f"$ {command}")
            print("\n".join(difflib.unified_diff(expected, actual, "page", "now", lineterm="")))
    return good


def run_page(page, options):
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    if not blocks:
        sys.exit(f"{page}: no block is marked `console`")
    model = options.source / "models/smollm3-tiny"
    files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    good = True
    with tempfile.TemporaryDirectory() as name, FakeHub({"example/smollm3-tiny": Repository(files)}) as hub:
        folder = pathlib.Path(name)
        for part in ("home", "work", "work/.venv/bin"):
            (folder / part).mkdir(parents=True)
        for part in ("models", "tools"):
            (folder / "work" / part).symlink_to(options.source / part)
        python = folder / "work/.venv/bin/python"
        python.write_text(f'#!/bin/sh\nexec "{options.python}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        for block in blocks:
            if ".venv/" in block and not (options.python and options.python.exists()):
                print(f"{page}: left out, for want of Python with tests/requirements.txt:\n{block}")
                continue
            good = run_block(block, folder, environment(options.bin, folder / "home", hub, None)) and good
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    sys.exit(0 if all([run_page(page, options) for page in options.pages]) else 1)


if __name__ == "__main__":
    main()
