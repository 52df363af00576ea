#!/usr/bin/env python3
"""make_tokenizer_goldens.py OUT_DIR NAME=tokenizer.json...

Writes OUT_DIR/tokenizer_NAME.json: texts, and what PyPI `tokenizers` makes of them. The C++ tests
read these without Python.
"""
import json
import pathlib
import sys

import tokenizers

TEXTS = [
    "", " ", "\n", "Hello world", "Hello, world!", "The quick brown fox jumps over the lazy dog.",
    "I'm you're we've they'll he'd it's don't", "I'M YOU'RE WE'VE THEY'LL HE'D IT'S DON'T",
    "'\u017f 'S 's 'T 'll 'LL 'lL 'Re 'vE 'k '\u212a 'x", "''s'''t '", "1 12 123 1234 12345 1234567890 3.14159 1e-5",
    "\u0663\u0664\u0665\u0666 \u0967\u0968\u0969\u096a \u2160\u2161\u2162\u2163 \u00bd\u00bc\u00b2\u00b3",
    "  two  spaces   three    four", "tab\tand\t\ttabs\t", "line\nline\n\nline\r\nline\r\n\r\n", "  \n  \n x", "x  \n",
    "x   ", " \u00a0x\u00a0 \u3000y\u2003 \u2028z\u2029\u0085", "\u180ex\u180e \u200bx\u200b \ufeffx", "\x00\x01\x02 \x7f",
    "Fran\u00e7ais, na\u00efve caf\u00e9; cafe\u0301", "Stra\u00dfe \u00c4pfel \u00fcber GR\u00d6SSE",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff01",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3082", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\U0001f600\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\U00010d40\U00010d4a \U0001c890", "\U0010ffff\ufffd\ufffe", "def f(x):\n    return x ** 2  # square\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n", "{\"key\": [1, 2.5, null], \"s\": \"a\\n\"}",
    "https://example.com/a_b?c=d&e=%20#f", "a/b\\c|d~e`f^g", "...?!;:--\u2014\u2026", "!!!\n\n???\r\n", "$100 \u20ac5 \u00a3\u00a5",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "a<|im_end|>b <|im_end|> <|im_end", "<think>\n\n</think>\n",
    "<tool_call>{\"name\": \"f\"}</tool_call><tool_response>x</tool_response>", "<|im_start|><|im_start|>", "<<think>>",
    "<|begin_of_text|><|end_of_text|>", "\u0120hello \u010a", "\u00ad soft\u00adhyphen",
]


def cases(tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        yield {"text": text, "ids": ids,
               "decoded": tokenizer.decode(ids, skip_special_tokens=False),
               "decoded_without_special": tokenizer.decode(ids, skip_special_tokens=True)}


def main():
    out = pathlib.Path(sys.argv[1])
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        tokenizer = tokenizers.Tokenizer.from_file(path)
        golden = {"made_by": "tools/make_tokenizer_goldens.py", "tokenizers": tokenizers.__version__,
                  "cases": list(cases(tokenizer))}
        lines = ",\n".join("  " + json.dumps(case, ensure_ascii=True) for case in golden.pop("cases"))
        head = json.dumps(golden)[:-1]
        (out / f"tokenizer_{name}.json").write_text(f"{head}, \"cases\": [\n{lines}\n]}}\n", encoding="utf-8")


main()
