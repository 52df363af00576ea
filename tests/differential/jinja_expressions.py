"""Random expressions over random values, from one seed: every operator, filter, test, method and format with random arguments.

None makes a method without calling it, as that prints an address, nor an integer beyond 64 bits or a complex number, which we refuse by name.
"""
import random

WORDS = ["", "a", "b", "l", "A", "Hello World", "it's", 'say "hi"', " x ", "a,b,,c", "\n", "l1\nl2\r\nl3", "\t", "ß", "ǅ", "Σας", "日本", "🙂", "e\u0301", "<b>&", "12", "-7", " 1_0 ",
         "0x1F", "1e3", "2.50", "nan", "%s", "{}", "aaa", "İx", "\u00a0y", "\x00", "\x85", "role", "x y z", "foo bar baz qux", "a-b (c) [d]", "None", "true", "\\", "9" * 15]
KEYS = ["a", "b", "role", "content", "n", "items", "x y", "", "ключ"]
NUMBERS = [0, 1, 2, 3, -1, -2, 7, 10, 100, -100, 255, 65, 1000000, 2**31, 0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e3, 1e16, 1e-7, 123456.789, 3.0, 1e18, 2.675]
NAMES = ["s", "t", "i", "f", "b", "z", "l", "m", "d", "rows", "any1", "any2", "undef"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "count", "first", "last", "list", "string", "int", "float", "abs", "round", "sort", "reverse", "unique", "items",
           "dictsort", "tojson", "safe", "e", "escape", "sum", "min", "max", "wordcount", "default", "d", "join", "urlencode", "select", "reject", "map", "groupby", "batch", "slice", "attr",
           "format", "indent", "replace", "truncate", "center", "selectattr", "rejectattr"]
ITERATORS = {"reverse", "unique", "items", "select", "reject", "map", "batch", "slice", "selectattr", "rejectattr"}
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable", "callable", "odd", "even", "upper", "lower",
         "escaped", "filter", "test"]
ARGUMENT_TESTS = ["divisibleby", "eq", "ne", "lt", "le", "gt", "ge", "in", "equalto", "==", "!=", "<", "<=", ">", ">=", "greaterthan", "lessthan"]
# Methods and how many arguments they take.
METHODS = {"upper": 0, "lower": 0, "title": 0, "capitalize": 0, "swapcase": 0, "strip": 1, "lstrip": 1, "rstrip": 1, "split": 2, "rsplit": 2, "splitlines": 1, "replace": 3, "startswith": 3,
           "endswith": 3, "find": 3, "rfind": 3, "index": 3, "rindex": 3, "count": 3, "join": 1, "isdigit": 0, "isalpha": 0, "isspace": 0, "isupper": 0, "islower": 0, "isalnum": 0,
           "istitle": 0, "isnumeric": 0, "isdecimal": 0, "isascii": 0, "isprintable": 0, "zfill": 1, "removeprefix": 1, "removesuffix": 1, "center": 2, "ljust": 2, "rjust": 2,
           "partition": 1, "rpartition": 1, "format": 3, "get": 2, "items": 0, "keys": 0, "values": 0, "copy": 0, "append": 1, "update": 1, "pop": 1, "nope": 0}
OPERATORS = ["+", "+", "-", "*", "/", "//", "%", "~", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


class Expressions:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, probability):
        return self.random.random() < probability

    # The values of the variables.

    def value(self, depth):
        kind = self.random.randrange(10 if depth else 6)
        if kind < 3:
            return self.pick(WORDS)
        if kind < 5:
            return self.pick(NUMBERS)
        if kind == 5:
            return self.pick([True, False, None])
        if kind < 8:
            return [self.value(depth - 1) for _ in range(self.random.randrange(5))]
        return {self.pick(KEYS): self.value(depth - 1) for _ in range(self.random.randrange(4))}

    def row(self):
        row = {"role": self.pick(["user", "assistant", "tool", "User"]), "content": self.pick(WORDS), "n": self.pick([0, 1, 2, 3, 2.5]), "x": {"y": [self.pick(WORDS)]}}
        if self.chance(0.1):
            del row[self.pick(list(row))]
        return row

    def variables(self):
        return {"s": self.pick(WORDS), "t": self.pick(WORDS) + self.pick(WORDS), "i": self.pick([0, 1, 2, 3, -1, -2, 7, 12]), "f": self.pick([0.5, 1.5, -2.5, 0.1, 3.0, 1e16]),
                "b": self.chance(0.5), "z": None, "l": [self.pick(WORDS) for _ in range(self.random.randrange(5))], "m": [self.value(1) for _ in range(self.random.randrange(5))],
                "d": {self.pick(KEYS): self.value(1) for _ in range(self.random.randrange(5))}, "rows": [self.row() for _ in range(self.random.randrange(4))],
                "any1": self.value(2), "any2": self.value(3)}

    # Literals.

    def string(self):
        text = self.pick(WORDS)
        quote = self.pick("'\"")
        for plain, escaped in (("\\", "\\\\"), (quote, "\\" + quote), ("\n", "\\n"), ("\x00", "\\x00")):
            text = text.replace(plain, escaped)
        if self.chance(0.1):
            text += self.pick(["\\x41", "\\u00e9", "\\101", "\\t", "\\q", "\\U0001F642"])
        return quote + text + quote

    def number(self):
        number = self.pick([str(abs(n)) for n in NUMBERS] + ["1_000", "0x1f", "0b11", "0o17", "1e2", "2.0"])
        return self.pick(["", "", "", "-"]) + number

    def small(self):
        return self.pick(["0", "1", "2", "3", "-1", "5", "i", "none", "true"])

    def literal(self):
        kind = self.random.randrange(8)
        if kind < 3:
            return self.string()
        if kind < 6:
            return self.number()
        return self.pick(["true", "false", "none", "[]", "{}", "()", "(1,)", "[1, 2, 3]", "['b', 'A', 'a']", "{'a': 1, 'b': [1]}", "[[1, 2], [0]]", "range(4)", "range(5, 0, -2)",
                          "dict(a=1, b='x')", "namespace(a=1).a", "[{'n': 2}, {'n': 1}]", "'<b>'|safe", "'<'|e"])

    def atom(self):
        return self.pick(NAMES) if self.chance(0.6) else self.literal()

    # Expressions.

    def grouped(self, depth):
        text = self.expression(depth)
        return text if text.isidentifier() else f"({text})"

    def argument(self):
        return self.pick([self.string(), self.small(), self.number(), self.atom()])

    def arguments(self, most):
        return ", ".join(self.argument() for _ in range(self.random.randint(0, most)))

    def path(self):
        return self.pick(["'role'", "'content'", "'n'", "'x.y'", "'x.y.0'", "'nope'", "'a'", "0", "1", "'0'", "'n,role'"])

    def inner_test(self):
        return self.pick(["'defined'", "'string'", "'odd'", "'none'", "'upper'", "'mapping'", f"{self.pick(['eq', 'ne', 'lt', 'ge', 'in', '==', '>'])!r}, {self.atom()}"])

    def filter_arguments(self, name):
        pick, argument = self.pick, self.argument
        forms = {
            "default": lambda: [f"({argument()})", f"({argument()}, true)", f"({argument()}, boolean={pick(['true', 'false', 'i'])})"], "round": lambda: [f"({pick(['0', '1', '2', '-1', 'i'])})", f"({pick(['0', '1', '2', '-1'])}, {pick(['ceil', 'floor', 'common'])!r})"],
            "sort": lambda: ["(true)", "(reverse=true)", "(case_sensitive=true)", f"(attribute={self.path()})"], "join": lambda: [f"({argument()})", f"({self.string()}, attribute={self.path()})", f"({self.string()})"],
            "unique": lambda: ["(true)", f"(attribute={self.path()})"], "dictsort": lambda: ["(true)", "(by='value')", "(false, 'key', true)", "(reverse=true)"],
            "tojson": lambda: ["(indent=2)", "(ensure_ascii=true)", "(sort_keys=true)", "(separators=(',', ':'))", "(indent=0)", f"(indent={self.small()})"], "sum": lambda: [f"(start={self.number()})", f"({self.path()})"],
            "min": lambda: ["(true)", f"(attribute={self.path()})"], "max": lambda: ["(true)", f"(attribute={self.path()})"], "int": lambda: [f"({argument()})", "(0, 16)", "(0, 2)", "(7, base=0)"], "float": lambda: [f"({argument()})"],
            "trim": lambda: [f"({self.string()})"], "groupby": lambda: [f"({self.path()})", f"({self.path()}, default={argument()})", f"({self.path()}, case_sensitive=true)"], "batch": lambda: ["(2)", "(3, 'f')", f"({self.small()})"],
            "slice": lambda: ["(2)", "(3, 'f')", f"({self.small()})"], "attr": lambda: [f"({pick(['real', 'a', 'nope', '__class__', 'imag'])!r})"],
            "format": lambda: [f"({self.arguments(3)})", f"(a={argument()})"], "indent": lambda: ["(2)", "(4, true)", "('> ', blank=true)", "(width=1, first=true)"], "replace": lambda: [f"({argument()}, {argument()})", f"({self.string()}, {self.string()}, {self.small()})"],
            "truncate": lambda: ["(5)", "(7, true, '..', 0)", "(9, leeway=0)", f"({self.small()})"], "center": lambda: ["(9)", "(20)"],
            "select": lambda: [f"({self.inner_test()})"], "reject": lambda: [f"({self.inner_test()})"], "selectattr": lambda: [f"({self.path()})", f"({self.path()}, {self.inner_test()})"],
            "rejectattr": lambda: [f"({self.path()})", f"({self.path()}, {self.inner_test()})"],
            "map": lambda: [f"({pick(['upper', 'int', 'length', 'string', 'trim', 'abs', 'first', 'tojson', 'nope'])!r})", f"(attribute={self.path()})", f"(attribute={self.path()}, default={argument()})", f"('replace', {self.string()}, {self.string()})", "('default', 'x', true)"],
        }
        needed = {"replace", "batch", "slice", "attr", "groupby", "map", "selectattr", "rejectattr"}
        if name not in forms or (name not in needed and self.chance(0.5)):
            return ""
        return self.pick(forms[name]())

    def subject(self, name):
        """What the filter is meant for."""
        if name in ("abs", "round", "int", "float"):
            return self.pick(["i", "f", self.number()]).lstrip("-")
        if name in ("items", "dictsort"):
            return self.pick(["d", "{'b': 1, 'a': 2}"])
        if name in ("groupby", "selectattr", "rejectattr", "map", "sum"):
            return "rows"
        if name in ("sort", "min", "max", "join", "unique", "first", "last", "reverse", "batch", "slice", "select", "reject", "list"):
            return self.pick(["l", "l", "m", "rows", "s", "range(4)", "[3, 1, 2]"])
        return self.pick(["s", "t", self.string()])

    def filtered(self, depth):
        names = [self.pick(FILTERS) for _ in range(self.pick([1, 1, 2, 3]))]
        text = self.subject(names[0]) if self.chance(0.5) else self.grouped(depth)
        for name in names:
            text += f"|{name}{self.filter_arguments(name)}"
            if name in ITERATORS:  # Else an address may be printed.
                text += self.pick(["|list", "|list", "|join(',')", "|first", "|length", "|sort|list", "|last"])
        return text

    def method(self, depth):
        name = self.pick(list(METHODS))
        receiver = self.pick(["s", "t", "l", "d", "any1", self.string(), self.grouped(depth)])
        if self.chance(0.6):
            receiver = "d" if name in ("get", "items", "keys", "values", "copy", "update") else self.pick(["s", "t", self.string()])
        if self.chance(0.6):
            arguments = [self.string(), self.pick([self.string(), "2"]), self.small()][:self.random.randint(min(METHODS[name], 1), METHODS[name])]
            if name in ("center", "ljust", "rjust", "zfill") and arguments:
                arguments[0] = "9"
            return f"{receiver}.{name}({', '.join(arguments)})"
        return f"{receiver}.{name}({self.arguments(METHODS[name])})"

    def percent_format(self):
        spec = lambda: "%" + self.pick(["", "", "-", "0", "+", " ", "#"]) + self.pick(["", "", "3", "8"]) + self.pick(["", "", ".1", ".3", ".0"]) + self.pick("sdifgexXorcaG%E")
        return f"'{spec()}|{spec()}' % ({self.atom()}, {self.atom()})"

    def brace_format(self):
        spec = lambda: self.pick(["", ":"]) + "".join([self.pick(["", "<", ">", "^", "*^", "="]), self.pick(["", "+", " "]), self.pick(["", "#"]), self.pick(["", "0"]), self.pick(["", "7"]), self.pick(["", ","]),
                                                        self.pick(["", ".2"]), self.pick(["", "s", "d", "f", "g", "e", "x", "b", "%"])])
        if self.chance(0.1):
            return f"'{{:{{}}}}|{{:>{{}}.{{}}{self.pick('fds')}}}'.format({self.atom()}, {self.pick(['5', 'i', self.string()])}, {self.atom()}, 8, {self.pick(['2', 'i', 's'])})"
        field = lambda: "{" + self.pick(["", "", "!r", "!s"]) + (spec() if self.chance(0.6) else "") + "}"
        return f"'{field()}|{field()}'.format({self.atom()}, {self.atom()})"

    def slice(self):
        bound = lambda: self.pick(["", "", "1", "2", "-1", "-2", "0", "5", "-100", "none", "i", "'a'", "f"])
        return f"[{bound()}:{bound()}" + self.pick(["", ":", ":2", ":-1", ":-2", ":i", ":0"]) + "]"

    def expression(self, depth):
        if depth == 0:
            return self.atom()
        inner = lambda: self.expression(depth - 1)
        group = lambda: self.grouped(depth - 1)
        kind = self.random.randrange(20)
        if kind < 3:
            return f"{inner()} {self.pick(OPERATORS)} {inner()}"
        if kind == 3:
            return f"{group()} {self.pick(OPERATORS)} {group()}"
        if kind < 9:
            return self.filtered(depth - 1)
        if kind == 9:
            return f"{group()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 10:
            return f"{group()} is {self.pick(['', 'not '])}{self.pick(ARGUMENT_TESTS)}({self.argument()})"
        if kind < 13:
            return self.method(depth - 1)
        if kind == 13:
            return group() + (self.slice() if self.chance(0.5) else self.pick(["[0]", "[-1]", "['a']", "[undef]", "['items']", "[1.0]", "[true]", ".0", "[i]", "[99]", ".a", ".role", ".nope", "[f]", "[s]"]))
        if kind == 14:
            return f"{inner()} if {inner()}" + self.pick(["", f" else {inner()}"])
        if kind == 15:
            return self.pick([f"not {group()}", f"-{group()}", f"+{group()}", f"{self.pick(['-2', '3', '1.5', '-0.0', '10', '-1', 'f'])} ** {self.pick(['2', '3', '0', 'i', 'b', 's'])}", f"i ** {self.pick(['2', '3', '-1'])}", f"{self.pick(['2', '9.0', '0'])} ** {self.pick(['0.5', 'f', '1.5'])}", f"{self.number()} < {inner()} <= {self.number()}"])
        if kind == 16:
            return self.percent_format()
        if kind == 17:
            return self.brace_format()
        return self.pick([f"[{inner()}, {inner()}]", f"({inner()}, {inner()})", f"{{'k': {inner()}, {self.string()}: {inner()}}}", f"({inner()})"])

    def case(self):
        """A template of one expression, printed, assigned or asked about."""
        text = self.expression(self.random.randint(1, 3))
        template = self.pick(["{{ " + text + " }}", "{{ " + text + " }}", "{% set r = " + text + " %}{{ r }}", "{% if " + text + " %}yes{% else %}no{% endif %}", "{% for r in " + text + " %}{{ r }};{% endfor %}"])
        return {"template": template, "date": "2026-09-04", "input": {"messages": [], **self.variables()}}
