"""Random small templates, from one seed: expressions of every kind, and statements around them."""
import random

VARIABLES = {
    "s": "Hello World", "e": "", "uni": "ǅüß Σας ΑΣ 日本\u0301🙂 İx", "ws": " \t a b\u00a0 \n c \r\n", "num": "42", "flo": " 1_0.5e1 ",
    "q": "it's \"q\" \\ \x00\x7f\x85é", "i": 7, "neg": -3, "zero": 0, "f": 2.5, "g": -0.125, "big": 1e16, "t": True, "no": False,
    "z": None, "l": [3, 1, 2], "strs": ["b", "A", "c", "a", "B"], "mix": [1, "a", None, True, 2.5], "el": [], "d": {"a": 1, "b": [1, 2], "items": 3},
    "ed": {}, "nest": {"x": {"y": [{"z": 1}, {"z": 2}]}, "k y": "v"}, "pairs": [["a", 1], ["b", 2]],
    "msgs": [{"role": "user", "content": "Hi", "n": 2}, {"role": "assistant", "content": None, "n": 1},
             {"role": "user", "content": "héllo", "n": 3, "extra": {"deep": True}}],
}
NAMES = list(VARIABLES) + ["undef", "u2"]
STRINGS = ["''", "'a'", "'l'", "'Hello'", "\"it's\"", "'ß'", "' '", "'a,b,,c'", "'\\n'", "'x\\ty'", "'role'", "'a' 'b'", "'%s'", "'\\x41\\u00e9'",
           "'lo W'", "'日'", "'A-b (c) [d] <e'", "'12'", "'0x1F'", "'x\\\\y'", "'aaa'"]
NUMBERS = ["0", "1", "2", "3", "-1", "-2", "10", "1.5", "0.1", "2.0", "1e3", "1_000", "0x1f", "0b11", "0o17"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable",
         "callable", "odd", "even", "upper", "lower", "divisibleby 3", "divisibleby(2)", "eq 1", "ne('a')", "lt 3", "ge 2", "in l", "in s", "sameas none",
         "equalto 'a'", "== 1", "gt(2)", "le(7)", "escaped", "filter", "test"]
PLAIN_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "count", "first", "last", "list", "string", "int", "float", "abs", "round",
                 "sort", "reverse|list", "unique|list", "items|list", "dictsort", "tojson", "safe", "e", "escape", "sum", "min", "max", "wordcount", "default", "d",
                 "join", "first|upper", "urlencode", "map('upper')|list", "select|list", "reject|list"]
CALL_FILTERS = ["default('x')", "default('x', true)", "d(1, boolean=true)", "join(', ')", "join(',', attribute='role')", "replace('l', 'L')",
                "replace('l', 'LL', 1)", "replace('', '-')", "trim('Hd')", "round(1)", "round(2, 'ceil')", "round(0, 'floor')", "round(-1)", "sort(reverse=true)",
                "sort(case_sensitive=true)", "sort(attribute='n')", "sort(attribute='role,n')", "unique(true)|list", "unique(attribute='role')|list",
                "map(attribute='role')|list", "map(attribute='nope', default='?')|list", "map(attribute='extra.deep')|list", "map('default', 'q')|list",
                "selectattr('content')|list", "selectattr('role', 'equalto', 'user')|list", "rejectattr('role', 'eq', 'user')|map(attribute='n')|list",
                "rejectattr('extra')|list|length", "select('string')|list", "reject('none')|list", "select('in', [1, 'a'])|list", "indent", "indent(2)", "indent(2, true)",
                "indent('> ', blank=true)", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)",
                "tojson(indent=0)", "batch(2)|list", "batch(2, 'f')|list", "slice(2)|list", "slice(2, 'f')|list", "dictsort(by='value')", "dictsort(true, reverse=true)",
                "groupby('role')", "groupby('role')|map(attribute='list')|map('length')|list", "groupby('nope', default='x')|length", "int(5)", "int(0, 16)", "float(1.5)",
                "format('x')", "format(1, 2)", "sum(start=10)", "sum(attribute='n')", "max(attribute='n')", "min(case_sensitive=true)", "truncate(5)",
                "truncate(7, true, '..', 0)", "center(20)", "attr('upper')", "map('int')|sum", "map('replace', 'a', 'o')|list", "list|first", "batch(3)|map('join', '-')|list"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip('Hd ')", "lstrip('\\n')", "rstrip('o')", "split()",
           "split(' ')", "split('l', 1)", "split(maxsplit=1)", "rsplit('l', 1)", "rsplit(none, 1)", "splitlines()", "splitlines(true)", "replace('l', '')",
           "replace('l', 'x', 1)", "startswith('He')", "startswith(('x', 'H'))", "endswith('d')", "startswith('e', 1)", "endswith('l', 0, 3)", "find('l')", "find('z')",
           "find('l', 4)", "rfind('l')", "rfind('o', 0, 5)", "index('o')", "count('l')", "count('l', 3)", "count('')", "join(['a', 'b'])", "join('xyz')", "isdigit()", "isalpha()",
           "isspace()", "isupper()", "islower()", "isalnum()", "istitle()", "isnumeric()", "isdecimal()", "isascii()", "isprintable()", "zfill(5)", "zfill(15)",
           "removeprefix('He')", "removesuffix('ld')", "center(15)", "center(16, '*')", "ljust(14, '.')", "rjust(14)", "partition('o')", "rpartition('o')",
           "format(1, 2)", "get('a')", "get('zz', 'dflt')", "get('zz')", "items()|list", "keys()|list", "values()|list", "items()", "keys()", "copy()", "count(1)", "index(2)",
           "index('a')", "append(1)", "update({})", "pop()", "nope()", "role", "a", "items", "x.y[1].z", "__class__", "_x", "upper", "find(undef)"]
FORMATS = ["'%s-%s' % (i, s)", "'%d %5d|%-5d|%05d' % (i, i, i, neg)", "'%.2f %8.3f %e %g' % (f, g, f, f)", "'%r %s' % (q, q)", "'%x %X %o %#x' % (255, 255, 8, 255)",
           "'%(a)s' % d", "'%%' % ()", "'%c%c' % (65, 'z')", "'{} {}'.format(i, s)", "'{0}{1}{0}'.format('a', 'b')", "'{x}-{y!r}'.format(x=1, y='q')",
           "'{:>8}|{:<8}|{:^8}|{:*^9}'.format('ab', 'cd', 'ef', 'gh')", "'{:05d} {:+d} {:,} {:x} {:#b}'.format(i, i, 1234567, 255, 5)", "'{:.3f} {:10.2e} {:%} {:g}'.format(f, f, g, f)",
           "'{0[a]} {1.a}'.format(d, d)", "'{{}}{}'.format(1)", "'{:.3}'.format('abcdef')", "'%s' % undef", "'%5.1s|' % 'abc'", "'{}'.format(l)", "'%s %s' % (l, d)", "'%s' % d", "'{:8}|{:8}'.format(i, 'x')"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


# What jinja2 does not refuse, mostly: statements are tested with these.
SAFE = ["s", "i", "f", "x", "a", "b", "c", "l", "strs", "d.a", "d['b']", "msgs[0].role", "nest.x.y[1].z", "undef", "z", "t", "no", "e", "l[0]", "l[1:]", "strs[::-1]", "i + 1", "i * 2",
        "i > 3", "s ~ i", "s == 'Hello World'", "'l' in s", "x in l", "i is odd", "x is defined", "a is string", "b is none", "not t", "t and e", "e or s", "s.upper()", "s.split()", "uni|upper",
        "strs|join(',')", "strs|sort", "msgs|length", "msgs|map(attribute='role')|list", "msgs|selectattr('role', 'eq', 'user')|list|length", "x|default('dflt')", "a|default(b, true)", "d|tojson",
        "'yes' if t else 'no'", "'yes' if no", "q", "ws|trim", "loop.index", "loop is defined", "ns is defined", "ns.v is defined", "ns.v", "(a, b)", "{'k': x}", "[x, a]", "x ~ a ~ b ~ c", "i // 2", "g|abs",
        "range(3)|list", "d.items()|list", "msgs[-1].content", "msgs[1].content is none"]


class Fuzz:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def mostly_safe(self, depth):
        return self.pick(SAFE) if self.random.random() < 0.93 else self.expression(depth)

    def pick(self, items):
        return self.random.choice(items)

    def atom(self):
        kind = self.random.random()
        if kind < 0.55:
            return self.pick(NAMES)
        if kind < 0.72:
            return self.pick(STRINGS)
        if kind < 0.86:
            return self.pick(NUMBERS)
        return self.pick(["true", "false", "none", "True", "None", "[]", "{}", "()", "(1,)", "range(4)", "range(5, 0, -2)", "[1, 2, 3][1]", "{'a': 1, 2: 'b', none: 3}",
                          "dict(a=1, b=2)", "namespace(a=1).a", "('a', 'b')", "[[1, 2], [3]]", "{'x': [1, {'y': 2}]}", "s|safe", "q|e", "'<b>'|safe"])

    def slice(self):
        bound = lambda: self.pick(["", "", "1", "2", "-1", "-2", "0", "5", "100", "-100", "none"])
        return f"[{bound()}:{bound()}" + self.pick(["", ":", ":2", ":-1", ":-2", ":1"]) + "]"

    def expression(self, depth):
        if depth == 0:
            return self.atom()
        inner = lambda: self.expression(depth - 1)
        kind = self.random.randint(0, 15)
        if kind <= 2:
            return f"{inner()} {self.pick(BINARY)} {inner()}"
        if kind == 3:
            return f"({inner()}) {self.pick(BINARY)} ({inner()})"
        if kind <= 5:
            return f"{self.pick([inner(), self.atom()])}|{self.pick(PLAIN_FILTERS)}"
        if kind == 6:
            return f"({inner()})|{self.pick(CALL_FILTERS)}"
        if kind == 7:
            return f"{self.pick(NAMES)}|{self.pick(CALL_FILTERS)}"
        if kind == 8:
            return f"{inner()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 9:
            return f"{self.pick(NAMES)}.{self.pick(METHODS)}"
        if kind == 10:
            return f"({inner()}).{self.pick(METHODS)}"
        if kind == 11:
            # Not of any constant: where that has no slices, jinja2 takes it for undefined as it compiles, and only then.
            if self.random.random() < 0.3:
                return self.pick(NAMES + ["'h\u00e9llo w\u00f6rld'", "[1, 2, 3]", "(1, 2)", "range(7)"]) + self.slice()
            return self.atom_or_group(inner()) + self.pick(["[0]", "[-1]", "['a']", "[undef]", "['items']", "[1.0]", "[true]", ".0", "[i]", "[99]"])
        if kind == 12:
            return f"{inner()} if {inner()}" + self.pick(["", f" else {inner()}"])
        if kind == 13:
            return self.pick([f"not {inner()}", f"-({inner()})", f"-{self.pick(NUMBERS)} ** 2", f"+{self.pick(NAMES)}", f"{self.pick(NUMBERS)} < {inner()} <= {self.pick(NUMBERS)}",
                              f"{self.pick(NUMBERS)} {self.pick(['+ 1.5', '* 1.5', '** 2', '** 3', '** 0', '// 1.5', '// 2', '% 3', '% 1.5', '- 1', '/ 0', '/ 3'])}"])
        if kind == 14:
            return self.pick(FORMATS)
        return self.pick([f"[{inner()}, {inner()}]", f"({inner()}, {inner()})", f"{{'k': {inner()}, {self.pick(STRINGS)}: {inner()}}}", f"({inner()})"])

    def atom_or_group(self, text):
        return text if text.isidentifier() else f"({text})"

    # Statements.

    def tag(self, text):
        return "{%" + self.pick(["", "", "-", "+"]) + f" {text} " + self.pick(["", "", "-", "+"]) + "%}"

    def output(self, depth=1):
        return "{{" + self.pick(["", "", "-"]) + f" {self.mostly_safe(depth)} " + self.pick(["", "", "-"]) + "}}"

    def text(self):
        return self.pick(["", " ", "\n", "  \n  ", "text", " a\n b", "\n\n", "\t", "x {# c #} y", "  {#- c\n -#}  \n", "\r\n", "{% raw %}{{ x }}\n{% endraw %}\n",
                          "  {%- raw -%} r {%+ endraw +%} \n", "%}", "}}", "{ ", "\n    "])

    def body(self, depth):
        return "".join(self.pick([self.text(), self.text(), self.output(), self.statement(depth)]) for _ in range(self.random.randint(1, 4)))

    def statement(self, depth):
        name = lambda: self.pick(["a", "b", "c", "i", "x"])
        if depth == 0:
            return self.pick([self.tag(f"set {name()} = {self.mostly_safe(1)}"), self.output(), self.tag(f"set ns.v = {self.mostly_safe(1)}"),
                              self.tag(f"set a, b = {self.pick(['1, 2', 'pairs[0]', 'l', '(x, i)'])}"), "{{ a }}|{{ b }}|{{ x }}|{{ c }}"])
        inner = lambda: self.body(depth - 1)
        kind = self.random.randint(0, 11)
        if kind <= 1:
            elif_ = self.tag(f"elif {self.mostly_safe(1)}") + inner() if self.random.random() < 0.4 else ""
            else_ = self.tag("else") + inner() if self.random.random() < 0.5 else ""
            return self.tag(f"if {self.mostly_safe(1)}") + inner() + elif_ + else_ + self.tag("endif")
        if kind <= 4:
            return self.loop(name, inner)
        if kind == 5:
            return self.tag(f"set {name()}" + self.pick(["", " | upper", " | trim | length"])) + inner() + self.tag("endset")
        if kind == 6:
            return self.tag(f"with a = {self.mostly_safe(1)}, b = a") + inner() + self.tag("endwith")
        if kind == 7:
            filters = self.pick(["upper", "trim", "indent(2)", "replace('a', 'b')|title"])
            return self.tag(f"filter {filters}") + inner() + self.tag("endfilter")
        if kind == 8:
            return self.tag("generation") + inner() + self.tag("endgeneration")
        if kind == 9:
            return self.macro(name, inner)
        if kind == 10:
            return self.tag(f"set ns = namespace(v={self.mostly_safe(1)})") + inner() + "{{ ns.v }}" + self.tag("set ns.v = ns.v ~ 'x'") + "{{ ns.v }}"
        return self.tag(f"set {name()} = {self.mostly_safe(2)}") + inner()

    def loop(self, name, inner):
        head = self.pick([f"for {name()} in {self.mostly_safe(1)}", f"for {name()} in {self.pick(['l', 'strs', 'msgs', 'mix', 'd', 'range(3)', 's'])}",
                          "for a, b in d.items()", "for a, b in pairs", "for m in msgs if " + self.pick(["m.role == 'user'", "m.content", "loop is undefined", "x", "not ns.v"]),
                          "for x in l if x > 1", "for (a, b) in d|dictsort"])
        extra = self.pick(["", "{{ loop.index }}", "{{ loop.first }}{{ loop.last }}", "{{ loop.length }}/{{ loop.revindex }}/{{ loop.index0 }}", "{{ loop.previtem }}>{{ loop.nextitem }}",
                           "{{ loop.cycle('o', 'e') }}", "{{ loop.changed(x) }}", "{% if loop.index > 2 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}", "{% if not loop.last %},{% endif %}",
                           "{{ loop.depth }}{{ loop.revindex0 }}{{ loop.nope }}", "{{ x }}", "{% set x = 9 %}", "{{ loop }}"])
        else_ = self.tag("else") + inner() if self.random.random() < 0.3 else ""
        return self.tag(head) + inner() + extra + self.pick(["", inner()]) + else_ + self.tag("endfor") + self.pick(["", "{{ x }}{{ a }}"])

    def macro(self, name, inner):
        signature, calls = self.pick([("mac(p, q=2)", ["mac(1)", "mac(1, 3)", "mac(q=5, p=4)", "mac()", "mac(1, 2, 3)", "mac(r=1)"]),
                                      ("mac()", ["mac()", "mac(1, 2, k=3)"]), ("mac(a, b=a)", ["mac(1)", "mac('x', none)"])])
        extra = self.pick(["{{ p }}{{ q }}", "{{ varargs }}{{ kwargs }}", "{{ caller() if caller else 'none' }}", "{{ a }}{{ b }}", "{{ x }}", "{{ caller(1, y=2) }}"])
        use = self.pick(["{{ " + self.pick(calls) + " }}", "{% call " + self.pick(calls) + " %}body{{ x }}{% endcall %}", "{% call(v, y=3) " + self.pick(calls) + " %}{{ v }}{{ y }}{% endcall %}",
                         "{{ mac.name }}{{ mac.arguments }}"])
        return self.tag(f"macro {signature}") + inner() + extra + self.tag("endmacro") + use

    def template(self):
        parts = [self.tag("set ns = namespace(v=1)")] + [self.pick([self.text(), self.output(), self.statement(2), self.statement(2), self.statement(1)]) for _ in range(self.random.randint(2, 6))]
        return "".join(parts) + self.pick(["", "\n", "\n\n", "\r\n"])
