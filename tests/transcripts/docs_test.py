#!/usr/bin/env python3
"""Holds docs/ to the program: docs/cli.md is what --help prints, docs/environment_variables.md names
every variable that the sources read. TRTMC_UPDATE_GOLDEN=1 rewrites docs/cli.md.

    docs_test.py --bin DIR --source DIR
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

HEAD = """# The command line

Generated from `trtmc --help` by `tests/transcripts/docs_test.py`; `TRTMC_UPDATE_GOLDEN=1 ctest -R docs.cli`
rewrites it. Options that several commands share can also be set by the environment and by a config file:
see [environment_variables.md](environment_variables.md).
"""


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True,
                          timeout=30).stdout.rstrip("\n")


def cli_page(program):
    overview = help_of(program)
    commands = re.findall(r"^  ([a-z]+) {2,}", overview.split("Commands:")[1].split("\n\n")[0], re.M)
    page = f"{HEAD}\n```\n{overview}\n```\n"
    for command in commands:
        page += f"\n## trtmc {command}\n\n```\n{help_of(program, command)}\n```\n"
    return page


def check_cli_page(program, path):
    expected, actual = cli_page(program), path.read_text(encoding="utf-8") if path.exists() else ""
    if expected == actual:
        return True
    if os.environ.get("TRTMC_UPDATE_GOLDEN") == "1":
        path.write_text(expected, encoding="utf-8")
        return True
    print("\n".join(difflib.unified_diff(actual.splitlines(), expected.splitlines(), str(path), "--help",
                                         lineterm="")))
    return False


def check_variables(source, path):
    """Both ways: what the sources read is documented, what is documented is read."""
    read = set()
    for file in [*source.glob("src/**/*.cc"), *source.glob("src/**/*.h")]:
        if file.name.endswith("_test.cc"):
            continue
        text = file.read_text(encoding="utf-8")
        read.update(re.findall(r'getenv\("([A-Z_]+)"\)', text))
        read.update(re.findall(r'"((?:TRTMC|XDG|HF|HUGGINGFACE|HUGGING_FACE|TRANSFORMERS)_[A-Z_]+|HOME)"', text))
        indirect = [line for line in text.splitlines() if "getenv(" in line and 'getenv("' not in line]
        if indirect and file.relative_to(source).as_posix() != "src/base/environment.cc":
            print(f"{file}: getenv of a name that is no literal: {indirect}")
            return False
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", path.read_text(encoding="utf-8"), re.M))
    for name in sorted(read - documented):
        print(f"{name} is read but not in {path}")
    for name in sorted(documented - read):
        print(f"{name} is in {path} but never read")
    return read == documented


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    options = parser.parse_args()
    docs = options.source / "docs"
    good = check_cli_page(options.bin / "trtmc", docs / "cli.md")
    good = check_variables(options.source, docs / "environment_variables.md") and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
