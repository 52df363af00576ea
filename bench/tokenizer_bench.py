#!/usr/bin/env python3
"""tokenizer_bench.py TOKENIZER_BENCH tokenizer.json [TEXT...]

Runs tokenizer_bench, then PyPI `tokenizers` on the same text, both on one core in processor time, and compares.
`tokenizers` gets the text whole and in lines, whichever is faster, after a first round that warms its cache.
Without TEXT: 2 MB each of English (licences), code (Python's library) and CJK (message catalogues), as far as Debian has them here.
"""
import gettext
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402  # Reads the variable above.

ROUNDS = 5
BYTES = 2_000_000


def best_seconds(rounds, body):
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        body()
        best = min(best, time.process_time() - start)
    return best


def read(paths):
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(paths))


def messages(paths):
    """The translations in compiled catalogues."""
    lines = []
    for path in sorted(paths):
        try:
            with open(path, "rb") as file:
                lines += [text for key, text in gettext.GNUTranslations(file)._catalog.items() if key and isinstance(text, str)]
        except (UnicodeDecodeError, OSError):
            continue
    return "\n".join(lines)


def own_texts():
    library, locale = pathlib.Path(sysconfig.get_path("stdlib")), pathlib.Path("/usr/share/locale")
    return {
        "English": read(path for path in pathlib.Path("/usr/share/common-licenses").glob("*") if not path.is_symlink()),
        "code": read(library.glob("*.py")),
        "CJK": messages(path for language in ("ja", "zh_CN", "zh_TW", "ko") for path in locale.glob(f"{language}/LC_MESSAGES/*.mo")),
    }


def compare(name, program, json_path, text_path):
    ours = subprocess.run([program, json_path, text_path, str(ROUNDS)], check=True, capture_output=True, text=True).stdout
    print(f"{name}\n{ours}", end="")
    with open(text_path, encoding="utf-8", newline="") as file:
        text = file.read()
    megabytes = len(text.encode()) / 1e6
    start = time.process_time()
    tokenizer = tokenizers.Tokenizer.from_file(json_path)
    load = time.process_time() - start
    lines = text.splitlines(keepends=True)
    whole = megabytes / best_seconds(ROUNDS, lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False))
    batch = megabytes / best_seconds(ROUNDS, lambda: tokenizer.encode_batch_fast(lines, add_special_tokens=False))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    decode = megabytes / best_seconds(ROUNDS, lambda: tokenizer.decode(ids, skip_special_tokens=False))
    print(f"tokenizers {tokenizers.__version__}: load {load * 1e3:.0f} ms, encode {whole:.1f} MB/s whole, "
          f"{batch:.1f} MB/s in {len(lines)} lines, decode {decode:.1f} MB/s, {len(ids)} ids")
    our_encode = float(ours.split("encode ")[1].split()[0])
    print(f"ratio of encode: {our_encode / max(whole, batch):.1f}")


def main():
    program, json_path, *texts = sys.argv[1:]
    for path in texts:
        compare(path, program, json_path, path)
    if texts:
        return
    for name, text in own_texts().items():
        if not text.strip():
            print(f"{name}: no such text on this machine")
            continue
        data = text.encode()
        data = (data * (BYTES // len(data) + 1))[:BYTES]
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(data.decode("utf-8", errors="ignore").encode())
            file.flush()
            compare(name, program, json_path, file.name)


main()
