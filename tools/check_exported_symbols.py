#!/usr/bin/env python3
"""check_exported_symbols.py LIBRARY: it defines what include/trtmc/ declares and nothing else.

The C functions are compared by name with trtmc_c.h; of C++ only the classes and functions of trtmc.h and
Error of values.h may show, and none of what they are made of inside."""
import pathlib
import re
import subprocess
import sys

HEADERS = pathlib.Path(__file__).resolve().parent.parent / "include/trtmc"


def exported(library):
    """{symbol without its version: demangled name}"""
    command = ["nm", "-D", "--defined-only", "--format=posix", library]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[0].split("@")[0] for line in lines if line.split()[1] != "A"]
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, plain.splitlines()))


def main():
    symbols = exported(sys.argv[1])
    c_header = (HEADERS / "trtmc_c.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^TRTMC_API [^;(]*?\b(trtmc_\w+)\(", c_header, re.M))
    cpp = "".join((HEADERS / name).read_text(encoding="utf-8") for name in ("trtmc.h", "values.h"))
    classes = set(re.findall(r"^class TRTMC_API (\w+)", cpp, re.M))
    functions = set(re.findall(r"^TRTMC_API [^;(]*?\b(\w+)\(", cpp, re.M))
    owner = re.compile(r"^(?:vtable for |typeinfo for |typeinfo name for )?trtmc::(\w+)(::(\w+))?")
    problems = [f"{name} is declared but not exported" for name in sorted(declared - set(symbols))]
    seen = set()
    for symbol, name in sorted(symbols.items()):
        if symbol in declared:
            continue
        match = owner.match(name)
        if not match or match[1] not in classes | functions or match[3] == "Impl":
            problems.append(f"{name} is exported but no part of the interface")
        else:
            seen.add(match[1])
    problems += [f"trtmc::{name} is declared but not exported" for name in sorted((classes | functions) - seen)]
    print("\n".join(problems) or f"{len(symbols)} symbols")
    sys.exit(1 if problems else 0)


main()
