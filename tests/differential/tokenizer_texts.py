"""The texts and the synthetic tokenizers of tokenizer_diff.py."""
import random
import unicodedata

SAMPLES = [
    "Hello, world! I'm here; you're there. DON'T SHOUT, it's 12345 o'clock.",
    "def f(x):\n\tif x > 0:\n        return {'a': [1, 2.5e-3], \"b\": None}  # it's\n\n\n",
    "for (size_t i = 0; i < n; ++i) {\r\n  sum += a[i] * b[i];\r\n}\r\n\r\n",
    "Le cœur a ses raisons que la raison ne connaît point.", "Größe, Straße, Übermut — „Zitat“.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.", "我能吞下玻璃而不伤身体。你好，世界！",
    "いろはにほへと ちりぬるを、カタカナ。", "다람쥐 헌 쳇바퀴에 타고파", "نص حكيم له سر قاطع وذو شأن عظيم",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה", "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "Γαζέες καὶ μυρτιὲς δὲν θὰ βρῶ πιὰ", "Ἑλλάς ἐστίν", "სამართალი", "հայերեն", "አማርኛ ቋንቋ", "ᏣᎳᎩ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛𝟜",
    "👨‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️‍🔥 1️⃣2️⃣", "e\u0301\u0302\u0303 a\u0308o\u0308", "https://ex.am/p?q=1&r=%20#frag_ment-x.y~z",
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x''y';", "\\begin{align} x^2 &= y_{ij} \\\\ \\end{align}",
    "<html>\n  <body class=\"a b\">&nbsp;</body>\n</html>", "a" * 3000, " " * 3000, "\n" * 1000, "1" * 1000, "é" * 1500, "!" * 999,
    "ab" * 2000, "\r\n" * 500 + "x", "x" + " " * 77, "中" * 1000,
]

SPACES = [chr(c) for c in (9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x2009, 0x200A, 0x200B, 0x2028,
                           0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF)]
FRAGMENTS = ["'s", "'S", "'t", "'T", "'re", "'RE", "'rE", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'lL", "'d", "'D", "'\u017f",
             "'k", "'\u212a", "'", "''", "don't", "we'll", "\u2019s", "hello", "World", " the", " of", "ing", "http://", "x_y",
             "...", "--", "!?", "()", "{}", "[]", "\n\n", "\r\n", "  ", "   ", "\n \n", " \n", "\t\t", "0", "12", "123", "1234",
             "12345", "3.14", "١٢٣", "½", "²", "Ⅷ", "①", "é", "e\u0301", "ß", "ﬁ", "ÀÉ", "мир", "你好", "ひら", "한글", "عرب",
             "हिन्", "ไทย", "🙂", "👍🏽", "\u200d", "\ufe0f", "\x00", "\x1f", "\x7f", "\u00ad", "\ufffd", "\U0010ffff", "𝒳", "𞤀"]


def is_scalar(code_point):
    return not 0xD800 <= code_point <= 0xDFFF


def sampled_code_points():
    """The first two kilobytes, each end of a run of one category, every 389th of the rest."""
    previous = None
    for c in range(0x110000):
        category = unicodedata.category(chr(c))
        if is_scalar(c) and (c < 0x800 or category != previous or c % 389 == 0):
            yield c
            if is_scalar(c - 1) and c > 0:
                yield c - 1
        previous = category


def code_points_in_context(every, first=0, step=1):
    points = (c for c in range(first, 0x110000, step) if is_scalar(c)) if every else sampled_code_points()
    for c in map(chr, points):
        yield from (c, f"a{c}b", f" {c}", c + c, f"1{c}", f"'{c}", f"{c}\n x", f"  {c}.")


def random_code_point(rng):
    limit = rng.choice([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000])
    c = rng.randrange(limit)
    return chr(c) if is_scalar(c) else "\ue000"


def random_text(rng, added):
    """A few fragments of all kinds, with added tokens whole and cut."""
    parts = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 21])):
        kind = rng.randrange(10)
        if kind == 0:
            parts.append(rng.choice(SPACES) * rng.choice([1, 1, 2, 3]))
        elif kind == 1:
            parts.append(random_code_point(rng))
        elif kind == 2 and added:
            token = rng.choice(added)
            parts.append(token if rng.randrange(3) else token[:rng.randrange(len(token) + 1)])
        elif kind == 3:
            parts.append(str(rng.randrange(10 ** rng.randrange(1, 12))))
        elif kind == 4:
            parts.append("".join(rng.choice("abcdefghijklmnopqrstuvwxyzABCDXYZ") for _ in range(rng.randrange(1, 14))))
        else:
            parts.append(rng.choice(FRAGMENTS))
        if rng.randrange(3) == 0:
            parts.append(" ")
    return "".join(parts)


def added_token(content, number, **flags):
    token = {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": False}
    return {**token, **flags}


def split(pattern, behavior="Isolated", invert=False, literal=False):
    return {"type": "Split", "pattern": {"String" if literal else "Regex": pattern}, "behavior": behavior,
            "invert": invert}


def byte_level(add_prefix_space=False, use_regex=False, trim_offsets=True):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets,
            "use_regex": use_regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Patterns that no hand-written scanner knows, so PCRE2 runs them.
PATTERNS = [
    r"\s+", r"[^\s]+", r"\d", r"\p{N}+", r"\w+", r"\W", r"[\p{P}\p{S}]", r"\P{L}+", r"\p{^L}", r"[^\P{N}]", r"x*", r"(?=[A-Z])", r"(?<=\n)",
    r"(?<!a)b", r"^.", r".$", r"\A.|.\z", r"[a-c-]+", r"a{2}", r"a{1,2}+b?", r"a{,2}b", r"a+?b", r"(?>a+)b|c", r"(a|b)+c", r"a*+b?",
    r"[一-龥぀-ヿ]+", r"[\r\n]", r"\s?[A-Za-zÀ-ÖØ-öø-ÿ]+", r"\s?[!-/:-~]+", r"\s+$", r"\x41|\u00e9|\x{1F600}", r"(?i:'s|'t|KM)", r"|a",
    r"[\p{Lu}\p{Lt}][\p{Ll}\p{M}]*", r"\p{Cn}|\p{Co}|\p{Cf}", r"[\d\s_]+|\.", O200K, CL100K % r"\p{N}+", CL100K % r"\p{N}{1,2}",
]
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def added_token_sets():
    flags = ["lstrip", "rstrip", "single_word", "normalized"]
    for bits in range(16):
        chosen = {flag: bool(bits >> i & 1) for i, flag in enumerate(flags)}
        yield f"one {chosen}", [("<a>", chosen)]
        yield f"words {chosen}", [("ab", chosen), ("abc", {}), ("b", {**chosen, "special": True}), ("é", chosen)]
        yield f"spaces {chosen}", [("<a>", chosen), (" ", {}), ("  ", chosen), (" b", {"lstrip": True})]
    yield "overlaps", [("ab", {}), ("abcd", {}), ("bc", {}), ("cde", {}), ("abcde\n", {})]
    yield "passes", [("ab", {"normalized": True}), ("bcd", {}), ("a", {"normalized": True}), ("abc", {"normalized": True})]
    yield "alphabet", [("Ġ", {}), ("Ġa", {"normalized": True}), ("Ċ", {"special": True}), ("a\u0301", {})]


def small_text(rng):
    alphabet = ["a", "b", "c", "d", "e", " ", "  ", "\t", "\n", "<a>", "<a", "ab", "abc", "é", "_", "-", ".", "Ġ", "Ċ", "1", "\u200d", "\u00a0", "a\u0301"]
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 14)))


def with_template(single, special_tokens):
    piece = {"A": {"Sequence": {"id": "A", "type_id": 0}}}
    pieces = [piece.get(name, {"SpecialToken": {"id": name, "type_id": 0}}) for name in single]
    tokens = {name: {"id": name, "ids": ids, "tokens": [f"t{i}" for i in ids]} for name, ids in special_tokens.items()}
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": tokens}


def small_model(model, size=1200):
    """The first tokens and what merges among them: quick to load many times."""
    vocab = {text: number for text, number in model["vocab"].items() if number < size}
    merges = [merge for merge in model["merges"] if {*merge, "".join(merge)} <= vocab.keys()]
    return {**model, "vocab": vocab, "merges": merges}


def synthetic_tokenizers(base, count):
    """(name, tokenizer.json, texts, whether add_special matters)."""
    rng = random.Random(2)
    base = {**base, "model": small_model(base["model"])}
    added = [token["content"] for token in base["added_tokens"]]
    mixed = [random_text(rng, added) for _ in range(count)]
    small = [small_text(rng) for _ in range(count)]
    number = len(base["model"]["vocab"])
    base["added_tokens"] = [{**token, "id": number + i} for i, token in enumerate(base["added_tokens"])]

    def variant(**parts):
        return {**base, **parts}

    def with_model(**parts):
        return variant(model={**base["model"], **parts})

    for prefix in (False, True):
        for regex in (False, True):
            step = byte_level(prefix, regex)
            yield f"ByteLevel {prefix} {regex}", variant(pre_tokenizer=step), mixed, False
            yield f"Split, ByteLevel {prefix} {regex}", variant(pre_tokenizer=sequence(split(r"\s"), step)), mixed, False
    for digits in (False, True):
        steps = sequence({"type": "Digits", "individual_digits": digits}, byte_level(False, True))
        extra = ["".join(map(chr, range(c, c + 64))) for c in range(0, 0x20000, 64) if not 0xD7C0 < c < 0xE000]
        yield f"Digits {digits}", variant(pre_tokenizer=steps), mixed + extra, False
    for pattern in (r"\p{N}", r"\p{N}{1,3}", r"\p{N}+"):
        yield f"cl100k {pattern}", variant(pre_tokenizer=sequence(split(CL100K % pattern), byte_level())), mixed, False
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    yield "gpt2", variant(pre_tokenizer=sequence(split(gpt2), byte_level())), mixed, False
    for pattern in PATTERNS:
        for behavior in BEHAVIORS:
            invert = rng.random() < 0.5
            steps = sequence(split(pattern, behavior, invert), byte_level())
            yield f"{pattern} {behavior} {invert}", variant(pre_tokenizer=steps), mixed[:400] + small[:400], False
    for literal in ("-", "ab", ".", "é", " "):
        for behavior in BEHAVIORS:
            for invert in (False, True):
                steps = sequence(split(literal, behavior, invert, literal=True), split(r"\d"), byte_level(True, False))
                yield f"{literal!r} {behavior} {invert}", variant(pre_tokenizer=steps), small[:400], False
    for name, tokens in added_token_sets():
        vocab = base["model"]["vocab"]
        new = iter(range(number, number + 100))
        listed = [added_token(c, vocab[c] if c in vocab else next(new), **flags) for c, flags in tokens]
        yield f"added {name}", variant(added_tokens=listed), small, False
    for ignore in (False, True):
        yield f"ignore_merges {ignore}", with_model(ignore_merges=ignore), mixed, False
    merges = base["model"]["merges"]
    yield "merges as text", with_model(merges=["#version: 0.2"] + [" ".join(m) for m in merges]), mixed[:500], False
    yield "merges twice", with_model(merges=merges + merges[:500], ignore_merges=False), mixed, False
    shuffled = rng.sample(merges, len(merges))
    yield "merges shuffled", with_model(merges=shuffled, ignore_merges=False), mixed, False
    yield "unknown token", with_model(unk_token="a", dropout=0.0, end_of_word_suffix="", continuing_subword_prefix=""), mixed[:500], False
    yield from missing_bytes(base, mixed[:1000])
    first = with_template(["X", "A", "Y"], {"X": [1, 2], "Y": [3]})
    byte_post = byte_level(True, True)
    for name, processor in {"template": first, "bytes": byte_post, "none": None,
                            "both": {"type": "Sequence", "processors": [byte_post, first, byte_post]}}.items():
        yield f"post_processor {name}", variant(post_processor=processor), mixed[:300] + [""], True


def missing_bytes(base, texts):
    """Without the symbols of some bytes: `tokenizers` leaves the bytes out."""
    gone = {"a", "Ġ", "Ã"}
    vocab = [t for t in base["model"]["vocab"] if not gone & set(t)]
    kept = set(vocab)
    merges = [m for m in base["model"]["merges"] if set(m) <= kept and "".join(m) in kept]
    model = {**base["model"], "vocab": {t: i for i, t in enumerate(vocab)}, "merges": merges}
    yield "missing bytes", {**base, "model": model, "added_tokens": []}, texts, False
