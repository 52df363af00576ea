#!/usr/bin/env python3
"""messages_test.py SOURCE: docs/troubleshooting.md has every message that the sources can end with, and no other.

A message of the page is a code span in the first column of a table; "…" stands for what varies. Its parts between
those must stand in string literals under src/. The other way round, every literal that is given to Error, to one of
the functions that throw it, or to a warning must be part of a message of the page. Every exit status is explained.
"""
import pathlib
import re
import sys

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TOKEN = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R\"(?P<tag>\w*)\(.*?\)(?P=tag)\")|(?P<literal>{LITERAL})|"
                   r"(?P<character>'(?:[^'\\\n]|\\.)+')|(?P<other>\w+|.)", re.S)
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
# What ends in an Error or in a warning: the type itself, and the helpers that throw it.
CALL = re.compile(r"\b(Error|Failure|(?:fail|refuse)(?:_\w+)?|corrupt|unsupported|invalid|unexpected|file_error|system_error"
                  r"|log_warning|warnings\.push_back)\s*([({])")
# Why a part of a template is no constant is caught while constants are worked out.
NEVER_SEEN = re.compile("is no constant$")
ESCAPES = {"n": " ", "t": " ", "r": " "}


def without_comments(text):
    """The text with comments, raw strings and characters blanked."""
    kept = []
    for token in TOKEN.finditer(text):
        kept.append(token[0] if token["literal"] or token["other"] else " ")
    return "".join(kept)


def plain(literals):
    """Adjacent literals as one text."""
    text = "".join(part[1:-1] for part in re.findall(LITERAL, literals))
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), text)


def message_of(literals):
    """The same of fmt's literals, "…" for a placeholder."""
    text = plain(literals)
    text = text.replace("{{", "\x01").replace("}}", "\x02")
    text = re.sub(r"\{[^{}% ]*\}", "…", text)
    return text.replace("\x01", "{").replace("\x02", "}")


def arguments_of(text, begin):
    """The arguments of a call whose bracket opens in front of `begin`."""
    arguments, depth, start = [], 0, begin
    for token in re.compile(rf"{LITERAL}|.", re.S).finditer(text, begin):
        if token[0] in ("(", "{", "["):
            depth += 1
        elif token[0] in (")", "}", "]"):
            depth -= 1
            if depth < 0:
                return [*arguments, text[start:token.start()]]
        elif token[0] == "," and depth == 0:
            arguments.append(text[start:token.start()])
            start = token.end()
    return arguments


def messages_of(text):
    """The messages that a source can end or warn with. An Error's third argument is a hint."""
    for call in CALL.finditer(text):
        arguments = arguments_of(text, call.end())
        if call[1] == "Error":
            arguments = arguments[1:2]
        for argument in arguments:
            for literals in LITERALS.finditer(argument):
                yield plain(literals[0]), message_of(literals[0])


def core(message):
    return re.sub(r"^[\s…:,;\"]+|[\s…:,;\"]+$", "", message)


def main():
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/troubleshooting.md").read_text(encoding="utf-8")
    quoted = [message for cell in re.findall(r"^\|([^|]*)\|", page, re.M) for message in re.findall(r"`([^`]+)`", cell)]
    if len(quoted) < 100:
        sys.exit(f"the page quotes only {len(quoted)} messages")
    faults, said = [], set()
    for path in sorted([*root.glob("src/**/*.cc"), *root.glob("src/**/*.h")]):
        if path.name.endswith("_test.cc") or "testdata" in path.parts:
            continue
        text = without_comments(path.read_text(encoding="utf-8"))
        for literals in LITERALS.finditer(text):
            said |= {plain(literals[0]), message_of(literals[0])}
        for forms in messages_of(text):
            message = forms[-1]
            if NEVER_SEEN.search(message) or " " not in core(message):
                continue
            if not any(core(form) in other for form in forms for other in quoted):
                faults.append(f"{path.relative_to(root)}: not in the page: {message}")
    everything = "\n".join(said)
    for message in quoted:
        for part in message.split("…"):
            part = core(part)
            if re.search(r"\w", part) and part not in everything:
                faults.append(f"the page quotes what no source says: {message} ({part})")
    statuses = set(re.findall(r"return (\d+);|Status = (\d+);",
                              "".join((root / f"src/{name}").read_text(encoding="utf-8")
                                      for name in ("base/error.cc", "cli/main.cc"))))
    for status in {number for pair in statuses for number in pair if number} | {"130"}:
        if not re.search(rf"^\| {status} \|", page, re.M):
            faults.append(f"the exit status {status} is not explained")
    print("\n".join(dict.fromkeys(faults)) or f"{len(quoted)} messages")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
