#!/usr/bin/env python3
"""make_jinja_goldens.py: writes tests/golden/jinja_goldens.json.xz, small templates and what jinja2 makes of them.

`rendered` is null where jinja2 refuses. Also digests of what str's methods do to every code point.
Needs jinja2 3.1.6 and CPython 3.11 (Unicode 14.0.0).
"""
import copy
import hashlib
import json
import pathlib
import sys
import unicodedata
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "differential"))

import jinja_environment  # noqa: E402
import jinja_fuzz  # noqa: E402
import packed  # noqa: E402

CASES = {
    "whitespace": [
        "a\n", "a\n\n", "a\r\n", "a\rb\r\nc\n", "  {% if true %}\n  x\n  {% endif %}\ny", "x {% if true %} y {% endif %} z",
        "x\n  {%- if true %}\n  y\n{%- endif %}\nz", "x {{- 1 -}} y", "  {{ 1 }}  \n  {{- 2 }}", "  {%+ if true %}\nx{% endif %}", "{% if true +%}\nx{% endif %}",
        "  {# c #}\nx", "a {#- c -#} b", "{# c +#}\nx", "{% raw %}\n{{ x }}{% if %}\n{% endraw %}\ny", "  {%- raw -%}  r  {%- endraw -%}  x", "{% raw %} a {%+ endraw %}",
        "{% set x = 1 -%}  \n\n x", "\n\n  {%- set x = 1 %}\n\nx", "{{ '{{' }}{{ '%}' }}", "{%set x=1%}{{x}}", "{% if true %}\n\n{% endif %}", "\t{% if true %}\tx\t{% endif %}\t\n",
        "\u00a0{% if true %}\nx{% endif %}", "{#-#}", "{% raw -%}\n x{% endraw %}", "x{% generation %}\n y {% endgeneration %}\nz", "  {%- generation -%} y {%- endgeneration -%}  z",
    ],
    "literals": [
        "{{ 'a' 'b' \"c\" }}", r"{{ 'a\nb\t\\\'\"' }}", r"{{ '\x41\u00e9\U0001F600\101\7' }}", r"{{ '\q\é' }}", "{{ 'a\\\nb' }}", "{{ 'line\r\nbreak' }}",
        "{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5e3 }} {{ 1e-7 }} {{ 1E16 }} {{ 00 }}", "{{ [1, 'a', none, True, 2.5] }}", "{{ (1,) }} {{ () }} {{ (1) }} {{ 1, 2 }}",
        "{{ {'a': 1, 2: [3], none: none} }}", "{{ {'a': 1, 'a': 2} }}", "{{ 1.0 }} {{ 100.0 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }}", "{{ 007 }}", "{{ 'abc }}", "{{ l.0.1 }}",
    ],
    "repr": [
        "{{ [\"it's\"] }}", "{{ ['say \"hi\"'] }}", "{{ ['both \\' and \"'] }}", "{{ [q] }}", "{{ [uni] }}", "{{ ['\\u00a0\\u200b\\u2028\\ue000\\x7f\\x00'] }}", "{{ ['\\U0001F600\\U000e0001'] }}",
        "{{ [1e16, 1e-7, 0.1, 1e22, -0.0] }}", "{{ {'a': {'b': [1, (2, 'x')]}} }}", "{{ d.items() }} {{ d.keys() }} {{ d.values() }}", "{{ range(3) }} {{ range(0, 9, 2) }}", "{{ [undef] }}",
        "{{ [('a'|safe)] }}", "{{ namespace(a=1) }}", "{{ (1e400, -1e400, 1e400 - 1e400) }}",
    ],
    "operators": [
        "{{ 1 + 2 * 3 - 4 / 2 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }}", "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}", "{{ -2 ** 2 }}",
        "{{ 10 / 4 }} {{ 9 / 3 }}", "{{ 1 ~ 2 ~ 'x' ~ none ~ true ~ undef }}", "{{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }}", "{{ 'ab' * 3 }} {{ 2 * [1, 2] }} {{ 'a' * -1 }}",
        "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }}", "{{ 'b' in 'abc' }} {{ 1 in [1] }} {{ 'a' in d }} {{ 'x' not in d }} {{ 3 in range(5) }}", "{{ 'a' in undef }} {{ '' in '' }}",
        "{{ not 1 == 2 }} {{ not (true and false) or false }}", "{{ 0 or 'x' }} {{ '' and 'y' }} {{ 1 and 2 }}", "{{ 1 if false }}|{{ 1 if false else 2 if true else 3 }}", "{{ [1, 2] < [1, 3] }} {{ 'a' < 'B' }}",
        "{{ 1 + 'a' }}", "{{ 'a' < 1 }}", "{{ 1 // 0 }}", "{{ none + 1 }}", "{{ undef + 1 }}", "{{ 1 in 'a' }}", "{{ [] in d }}", "{{ true + true }} {{ -true }}", "{{ 1 is odd and 2 is even }}", "{{ 'x' * 2 ~ 'y' }}",
        "{{ 1 + 2 ~ 3 }}", "{{ 2|abs ** 2 }}", "{{ -1|abs }}", "{{ (-1)|abs }}", "{{ 1 is divisibleby 1 + 1 }}", "{{ {'a': 1} == {'a': 1.0} }}", "{{ 'a' == 'a'|safe }}",
    ],
    "lookup": [
        "{{ d.a }} {{ d['a'] }} {{ d.b[0] }} {{ d.items is callable }}", "{{ d['items'] }} {{ d.nope }}|{{ d['nope'] }}|{{ l[9] }}|{{ l['x'] }}", "{{ d.nope.more }}", "{{ undef.x }}", "{{ undef['x'] }}", "{{ none.x }}|{{ 5 .x }}",
        "{{ l[-1] }} {{ s[0] }} {{ s[-1] }} {{ uni[0] }} {{ uni[-2] }}", "{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ s[::2] }} {{ uni[3:6] }} {{ s[100:] }}|{{ l[5:1] }} {{ (1, 2, 3)[1:] }}", "{{ undef[:] }}", "{{ l[::0] }}",
        "{{ d.__class__ }}|{{ ''.__class__.mro }}", "{{ s.__class__ }}|", "{{ d._x }}|{{ {'_y': 1}._y }}", "{{ l.append }}|", "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ nest.x.y[1].z }} {{ nest['k y'] }}", "{{ d[[1]] }}|", "{{ msgs[0].role }} {{ msgs.0.role }}",
        "{{ s.nope() }}", "{{ undef() }}", "{{ 5() }}", "{{ namespace(a=1)._a }}|", "{{ l[true] }} {{ l[1.0] }}|", "{{ range(5)[1] }} {{ range(10)[2:8:3] }}",
    ],
    "scoping": [
        "{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}", "{% for i in [1] %}{{ i2 }}{% endfor %}{% set i2 = 5 %}", "{% for k in [1] %}{{ i }}{% endfor %}{% set i = 5 %}{{ i }}",
        "{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "{% if false %}{% set i = 1 %}{% endif %}{{ i }}", "{% if false %}{% set i = 1 %}{% else %}{% endif %}{{ i }}", "{% set ns = namespace(a=0) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
        "{% with a = 1, b = a %}{{ a }}{{ b }}{% set c = 2 %}{% endwith %}{{ a }}{{ c }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set (a, b) = [1, 2] %}{{ a }}{{ b }}", "{% set a, b = 1 %}", "{% set a, b = [1, 2, 3] %}", "{% set x %}a{{ 1 }}{% endset %}[{{ x }}]",
        "{% set x | upper | replace('A', 'b') %}aa{% endset %}{{ x }}", "{% macro m() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ m() }}", "{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y }}", "{% set d.x = 1 %}", "{% set undef.x = 1 %}",
        "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}{{ x }}", "{% set ns = namespace(d, z=1) %}{{ ns.a }}{{ ns.z }}{{ ns.nope }}", "{% filter upper %}a{% set x = 1 %}{% endfilter %}{{ x }}", "{% set i = 1 %}{% for i in [] %}{% else %}{{ i }}{% endfor %}",
        "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% set x = 1 %}{% macro m(a=x) %}{{ a }}{% endmacro %}{% set x = 2 %}{{ m() }}", "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}",
    ],
    "loops": [
        "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}", "{% for x in l %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
        "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in undef %}a{% else %}b{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in 'añ' %}{{ x }},{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}", "{% for x in l if x > 5 %}a{% else %}b{% endfor %}",
        "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% break %}{% else %}b{% endfor %}", "{% break %}", "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
        "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}", "{% for x in l %}{% for y in strs %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{% set ns.stop = true %}{% endfor %}",
        "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{{ loop.last }}{% set ns.stop = true %}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% for x in l %}{{ loop }}{{ loop.nope }}{% endfor %}", "{% for x in l %}{{ loop(x) }}{% endfor %}",
        "{% for m in msgs if m.role == 'user' %}{{ m.content }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in l %}{{ x }}{% filter upper %}a{% continue %}{% endfilter %}{% endfor %}", "{% for x in (1, 2), (3, 4) %}{{ x }}{% endfor %}", "{% for x in [1, [2]] recursive %}{{ i }}{{ loop(l) if loop.depth < 2 }}{% endfor %}",
        "{% for x in l %}{% if x > 1 %}{% continue %}{% endif %}{% else %}b{% endfor %}", "{% for x in l %}{% continue %}{% else %}b{% endfor %}", "{% for x in l recursive %}{{ x }}{% else %}e{% endfor %}",
    ],
    "macros": [
        "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, b=3) }} {{ m() }}", "{% macro m() %}{% endmacro %}{{ m(1) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
        "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m() %}[{{ caller('v') }}]{% endmacro %}{% call(a) m() %}{{ a }}{{ s }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ m2() }}{% endmacro %}{% macro m2() %}2{% endmacro %}{{ m() }}",
        "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(x) %}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}", "{% call undef() %}{% endcall %}",
        "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m() %}\n  x\n{% endmacro %}[{{ m() }}]", "{{ ['a', 'b']|map('upper')|join }}",
    ],
    "globals": [
        "{{ strftime_now('%d %B %Y') }}", "{{ strftime_now('%a %A %b %B %d %e %m %y %Y %j %H:%M:%S %I %p %w %u %U %W %V %G %% %F %D %T %R %-d %-m') }}", "{{ strftime_now('%c|%x|%X|%Z|%z|%C|%h|%n|%t|%f') }}", "{{ raise_exception('no') }}", "{{ range(3)|list }} {{ range(1, 3)|list }} {{ range(3, 0, -1)|list }}", "{{ range(100001) }}", "{{ range(1, 2, 0) }}",
        "{{ dict(a=1) }} {{ dict([('b', 2)], c=3) }} {{ dict(d) }}", "{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}", "{{ namespace is defined }} {{ raise_exception is callable }}", "{{ range('a') }}",
    ],
    "filters": [
        "{{ undef|default('x') }} {{ ''|default('x') }}{{ ''|default('x', true) }} {{ none|d('y') }}", "{{ ' a '|trim }}|{{ 'xax'|trim('x') }}", "{{ 'hello wOrld-foo (bar'|title }} {{ 'aBC'|capitalize }} {{ 'ß'|upper }}", "{{ [1, 2]|join(', ') }} {{ msgs|join(',', attribute='role') }} {{ []|join }}", "{{ 'aaa'|replace('a', 'b', 2) }} {{ 5|replace(5, 6) }}",
        "{{ [1, 2]|first }} {{ [1, 2]|last }} {{ []|first }} {{ 'añ'|last }} {{ {'k': 1}|first }}", "{{ 'añ'|list }} {{ d|list }} {{ undef|list }}", "{{ '12'|int }} {{ '1.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 1.9|int }} {{ none|int }} {{ '0x1f'|int(0, 16) }} {{ '99999999999999999999'|int }} {{ true|int }}", "{{ '1.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ 'inf'|float }}",
        "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 1234|round(-2) }} {{ 1250.0|round(-2) }} {{ 7|round }}", "{{ [3, 1, 2]|sort }} {{ ['b', 'A', 'a']|sort }} {{ ['b', 'A']|sort(case_sensitive=true) }} {{ [1, 2]|sort(reverse=true) }} {{ msgs|sort(attribute='n')|map(attribute='n')|list }}",
        "{{ [1, 'a']|sort }}", "{{ 'abc'|reverse }} {{ [1, 2]|reverse|list }}", "{{ ['a', 'A', 'b']|unique|list }} {{ ['a', 'A']|unique(true)|list }}", "{{ ['a']|map('upper')|list }} {{ msgs|map(attribute='extra', default=0)|list }}", "{{ [0, 1, 2]|select|list }} {{ [0, 1, 2]|select('odd')|list }} {{ [0, 1, 2]|reject('odd')|list }}",
        "{{ msgs|selectattr('role', 'equalto', 'user')|map(attribute='content')|list }} {{ msgs|rejectattr('content')|list|length }}", "{{ d|items|list }} {{ undef|items|list }}", "{{ 5|items|list }}", "{{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }}", "{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent('>', blank=true) }}",
        "{{ {'a': [1, 2.0, none, true, 'é\"\\n<']}|tojson }}", "{{ {'a': [1, {}], 'b': []}|tojson(indent=2) }}", "{{ 'é🙂\\x7f'|tojson(ensure_ascii=true) }} {{ 'é\\x7f'|tojson }}", "{{ {'b': 1, 'a': 2}|tojson(sort_keys=true, separators=(',', ':')) }}", "{{ undef|tojson }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}", "{{ (1, 2)|tojson }} {{ 1e400|tojson }}", "{{ range(2)|tojson }}",
        "{{ '<a>'|e }} {{ '<'|safe + '<' }} {{ '<' + '<'|safe }} {{ '<'|safe ~ '<' }} {{ '<a>'|escape|escape }}", "{{ [1, 2, 3]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 0)|list }} {{ [1, 2, 3]|slice(2)|list }}", "{{ [1, 2]|sum }} {{ msgs|sum(attribute='n') }} {{ []|sum }} {{ [1]|sum(start=2.5) }}", "{{ [3, 1]|min }} {{ ['b', 'A']|max }} {{ []|max }}", "{{ '%s-%d'|format('a', 3) }} {{ '%(x)s'|format(x=1) }}",
        "{{ msgs|groupby('role') }}", "{% for g, items in msgs|groupby('role') %}{{ g }}{{ items|length }}{% endfor %}{{ (msgs|groupby('role'))[0].grouper }}", "{{ 'foo bar_baz, 3'|wordcount }}", "{{ 'a b&c/d'|urlencode }} {{ {'a': 'x y', 'b': 1}|urlencode }}", "{{ undef|upper }}|{{ undef|length }}|{{ undef|trim }}", "{{ 5|length }}", "{{ none|abs }}", "{{ undef|int }}", "{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }}",
        "{{ d|attr('a') }}|{{ 'x'|attr('upper') is callable }}", "{{ [1, 2]|map('nope')|list }}", "{{ [1, 'a']|map('abs')|first }}", "{{ [1, 'a']|map('abs')|list }}", "{{ (5|items) is defined }}", "{{ '<i>%s</i>'|safe % '<' }} {{ ('<i>{}</i>'|safe).format('<') }} {{ ('%s'|safe)|format('<'|safe) }} {{ ('<b>'|safe)|list }} {{ [('<b>'|safe)|last, ('<b>'|safe)|first] }}", "{{ 1|string + '2' }} {{ [1]|string }}", "{{ -5|abs }} {{ (-5)|abs }} {{ 1.5|abs }}", "{% filter upper|replace('A', 'B') %}a{{ 'a' }}{% endfilter %}", "{{ [1, 2, 3]|length }} {{ 'añ'|count }} {{ d|length }}",
    ],
    "more filters": ["{{ [1, 2]|batch(none)|list }} {{ [1, 2, 3]|batch(2.0)|list }} {{ [1, 2]|batch('a')|list }} {{ [1, 2]|batch(undef)|list }}", "{{ [1]|batch('a', 'x')|list }}", "{{ [1]|batch(2.5, 'x')|list }}",
                     "{{ undef|attr('__class__') }}|{{ undef|attr('__nope__') }}|{{ s|attr('__class__') }}|", "{{ undef|attr('x') }}"],
    "tests": ["{{ undef is defined }} {{ i is defined }} {{ none is none }} {{ none is defined }} {{ d.nope is undefined }}", "{{ 's' is string }} {{ 1 is string }} {{ 1 is number }} {{ true is number }} {{ 1.5 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ 1 is boolean }}",
              "{{ {} is mapping }} {{ [] is mapping }} {{ [] is sequence }} {{ 's' is sequence }} {{ {} is sequence }} {{ 5 is sequence }} {{ 's' is iterable }} {{ 5 is iterable }} {{ undef is iterable }}", "{{ true is true }} {{ 1 is true }} {{ false is false }}", "{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }}",
              "{{ 1 is eq 1 }} {{ 1 is equalto(1.0) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is le 1 }} {{ 1 is gt 2 }} {{ 1 is ge 1 }} {{ 1 is sameas 1 }} {{ 1 is sameas 1.0 }}", "{{ 'a' is in 'abc' }} {{ 1 is in [2] }} {{ 'a' is not in 'abc' }}", "{{ 'ab' is lower }} {{ 'AB' is upper }} {{ '1' is lower }}", "{{ s.upper is callable }} {{ s is callable }} {{ undef is callable }}",
              "{{ 'x' is odd }}", "{{ 'upper' is filter }} {{ 'zz' is filter }} {{ 'odd' is test }}", "{{ 1 is not none and 2 is number }}", "{{ not i is string }}", "{{ '<'|e is escaped }}"],
    "methods": [
        "{{ ' a '.strip() }}|{{ 'xax'.lstrip('x') }}|{{ 'xax'.rstrip('x') }}|{{ '\\n a'.lstrip('\\n') }}", "{{ 'a b  c'.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b '.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }}", "{{ 'a'.split('') }}", "{{ 'a\\nb\\r\\nc\\x0bd\\u2028e\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }}",
        "{{ 'abab'.replace('a', 'x') }} {{ 'abab'.replace('a', 'x', 1) }} {{ 'ab'.replace('', '-') }}", "{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('b', 1) }}", "{{ 'abc'.startswith(undef) }}", "{{ 'ÀÉ'.lower() }} {{ 'straße'.upper() }} {{ 'hello world'.title() }} {{ 'ΑΣ ΑΣΑ'.lower() }} {{ 'ǆ'.title() }} {{ 'hELLO'.capitalize() }}",
        "{{ 'añb'.find('b') }} {{ 'a'.find('x') }} {{ 'abab'.rfind('b') }} {{ 'abab'.index('b') }} {{ 'abab'.count('ab') }} {{ 'ab'.count('') }} {{ 'abc'.find('', 9) }} {{ 'abc'.find('c', -1) }}", "{{ 'a'.index('x') }}", "{{ ','.join(['a', 'b']) }} {{ ','.join('ab') }}", "{{ ','.join([1]) }}", "{{ '{} {1}'.format(1, 2) }}", "{{ '{} {b} {0[0]}'.format([1], b=2) }}", "{{ '{1} {0}'.format(1, 2) }} {{ '{a[x]}'.format(a={'x': 5}) }} {{ '{:>5}|{:05.1f}'.format('a', 2.25) }}",
        "{{ '12'.isdigit() }} {{ 'a'.isalpha() }} {{ ' '.isspace() }} {{ ''.isspace() }} {{ 'A'.isupper() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ '½'.isnumeric() }}", "{{ '5'.zfill(3) }} {{ '-5'.zfill(4) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ 'a'.center(4, '*') }} {{ 'a'.ljust(3, '.') }} {{ 'a'.rjust(3) }}",
        "{{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 5) }} {{ d.items()|list }} {{ d.keys()|list }} {{ d.values()|list }}", "{{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }}", "{{ [1].index(5) }}", "{{ range(1, 9, 2).count(3) }}{{ range(4).count('') }}{{ range(4).count(4) }}{{ range(4).count(1.0) }}{{ range(1, 9, 2).index(5) }}{{ range(9, 1, -2).index(7.0) }}", "{{ range(3).index(5) }}", "{{ 'a-b'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'a'.partition('-') }}", "{{ 'aB'.swapcase() }} {{ 'x'.nope }}|", "{{ 'abc'.upper().lower()[1:] }}", "{{ 'a'.strip(1) }}", "{{ 'a'.replace('a') }}", "{{ 'a'.upper(1) }}",
    ],
    "folding": [
        "{{ 5[1:2] }}|", "{{ 5[1:2] is defined }}", "{% set x = 5[1:2] %}{{ x }}", "{% set x = 5[1:2]|default('d') %}{{ x }}{{ i }}", "{{ i ~ 5[1:2] }}", "{{ 'abc'[::0] is defined }}", "{{ 5[::0] is defined }}",
        "{{ 'abc'['a':] is defined }}", "{{ 'abc'[:undef] is defined }}", "{{ ({}.a)[1:] is defined }}", "{{ -2 ** i }} {{ (-2) ** 2 }} {{ (-2.0) ** zero }} {{ [-1 ** zero] }} {{ neg ** 2 }}", "{{ -(-2) ** zero }}",
        "{{ zero * 1e400 }}", "{{ 1e400 }} {{ 1e400 > 5 }} {{ [1e400, 'nan'|float] }}", "{% set x = 'inf'|float %}{{ x }}", "{% if false %}{{ zero * 1e400 }}{% endif %}ok", "{{ (1e400 > 5) and i }}", "{{ 'inf' ~ i|float }}",
        "{{ true or nope() }}", "{{ {}.a|default('x') ~ i }}", "{% macro m() %}{{ true or caller }}{% endmacro %}{% call m() %}{% endcall %}", "{{ [1, 2]|map('string')|join(',') }}", "{{ (1 if false) is defined }}",
        "{% print 5[1:2], i %}", "{{ ([2, 1]|sort)[0] }} {{ {'b': 1}|tojson }} {{ ('<'|e)|list }}", "{% for x in [1, 2]|batch(1) %}{{ x }}{% endfor %}", "{% filter replace('a', 1 ~ 2) %}a{% endfilter %}", "{{ 1 / 0 or 'x' }}", "{{ false and 1 / 0 }}",
    ],
    "formats": [
        "{{ '{:{}}|{:>{}.{}f}|{0:{1}}'.format('a', 3, 2.5, 8, 2) }}", "{{ '{:{}}|{:>{}.{}f}|{:{}}'.format('a', 3, 2.5, 8, 2, 7, '+d') }}", "{{ '{:{:{}}}'.format('a', 3, 2) }}", "{{ '{:{:>2}}|{:{'.format('a', 3) }}", "{{ '{:{:>2}}|'.format('a', 3) }}",
        "{{ '{0:{1}{x}}'.format(5, '<', x=4) }}|",
        "{{ '%.0c|%3.2c' % (65, 'é') }}", "{{ 'a' % d.keys() }}", "{{ 'a' % d.values() }}", "{{ 'a' % d.items() }}", "{{ 'a' % [1] }} {{ 'a' % d }} {{ 'a' % range(3) }}",
        "{{ '{ 0}'.format(1) }}", "{{ '{+0}'.format(1) }}", "{{ '{0_0}'.format(1) }}", "{{ '{-1}'.format(1) }}", "{{ '{00}{01}'.format(1, 2) }}", "{{ '{0[ 1]}'.format([1, 2]) }}", "{{ '{0[-1]}'.format([1, 2]) }}", "{{ '{٠}'.format(5) }}",
        "{{ '%#.0f %#g %#.3g %#e %.0e %#.0e %g' % (2.5, 1.5, 100.0, 1.0, 12345.0, 3.0, 0.0) }}", "{{ '%.3d|%5.3d|%-6.2x|%#.3X|%08.3d|%.0d|%+.2i' % (5, 5, 255, 10, -5, 0, true) }}", "{{ '%#x %#o %#X' % (0, 8, 255) }}",
        "{{ '%a|%5.2a|%r|%a' % ('é\\n🙂', 'é', 'é', ['Б']) }}", "{{ ('%a %r'|safe) % ('<é>', '<é>') }}", "{{ '{!a} {!r:>6}'.format('é', 'b') }}", "{{ '{!x}'.format(1) }}",
        "{{ '{:,.2}|{:+}|{:#}|{:_}|{:.3}|{:#.3}|{:.1}|{: }'.format(0.0, 2.5, 1e16, 12345.5, 1234.5, 1e5, 123.0, 1.0) }}", "{{ '{:07,.2f}|{:04,}|{:012,d}|{:#012_x}|{:010,}'.format(1234.5, 123, -12345, 123456, 1234.5) }}",
        "{{ '{:,e} {:,g} {:,%}'.format(123456.0, 123456.0, 12.5) }}", "{{ '{:+}'.format('a') }}", "{{ '{:#}'.format('a') }}", "{{ '{:,}'.format('a') }}", "{{ '{:=5}'.format('a') }}", "{{ '{: }'.format('a') }}", "{{ '{:-}'.format('a') }}",
        "{{ '{:05}|{:<05}|{:*<05}|{:05}|{:=05}'.format('a', 7, 7, -7, 2.5) }}", "{{ '{:5}|{:n}|{:n}|{:n}'.format(true, 1234, 0.5, 1e7) }}", "{{ '{:,n}'.format(5) }}", "{{ '{:,x}'.format(5) }}", "{{ '{:_x} {:_b}'.format(123456, 300) }}",
        "{{ '{:.2d}'.format(5) }}", "{{ '{:x}'.format(5.0) }}", "{{ '{:y}'.format(5) }}", "{{ '{:5}'.format(none) }}", "{{ 'a\\nb'.splitlines('x') }}", "{{ 'a\\nb'.splitlines(1) }}", "{{ 'a\\nb'.splitlines(undef) }}",
    ],
    "syntax": ["{{ }}", "{{ a b }}", "{{ 1 + }}", "{% if %}{% endif %}", "{% if x %}", "{% endif %}", "{% nope %}", "{{ x|nope }}", "{{ x is nope }}", "{{ (1 }}", "{{ [1 }}", "{# x", "{% raw %}x", "{{ 1 is 2 }}", "{% for x %}{% endfor %}", "{% for 1 in l %}{% endfor %}", "{% set 1 = 2 %}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}",
               "{% set true = 1 %}", "{{ a.1.b }}", "{{ a. }}", "{{ a[ }}", "{{ 'a' if }}", "{{ a ! b }}", "{{ a $ b }}", "{% macro m(a, a) %}{% endmacro %}", "{{ x is odd is even }}", "{% if true: %}x{% endif %}", "{% print 1, 2 %}", "{{ 1 if 2 else }}", "{% else %}", "{% elif %}", "{{ d['a', ] }}|", "{{ l[1, 2] }}|", "{{ f(1, ) }}", "{{ [1, ] }}{{ {1: 2, } }}", "}}{{ 1 }}%}"],
}

PER_CODE_POINT = {
    "repr": repr, "upper": str.upper, "lower": str.lower, "title": str.title, "capitalize": str.capitalize, "swapcase": str.swapcase, "strip": lambda c: "x" + c.strip() + "x",
    "is": lambda c: "".join("01"[f(c)] for f in (str.isalpha, str.isdecimal, str.isdigit, str.isnumeric, str.isalnum, str.isspace, str.isprintable, str.islower, str.isupper, str.istitle)),
    "final_sigma": lambda c: ("A" + c + "\u03a3" + c + "a").lower(),
}


def digest(convert):
    """All of the two planes that hold nearly all properties, and a sample of the rest."""
    whole = hashlib.sha256()
    for c in [*range(0x20000), *range(0x20000, sys.maxunicode + 1, 257)]:
        if not 0xD800 <= c < 0xE000:
            whole.update(convert(chr(c)).encode() + b"\n")
    return whole.hexdigest()


def rendered(template):
    try:
        return jinja_environment.render(template, {"messages": [], **copy.deepcopy(jinja_fuzz.VARIABLES)}, "2026-09-04")
    except Exception:  # Whatever jinja2 or Python says: it is refused.
        return None


def main():
    assert unicodedata.unidata_version == "14.0.0", "another Unicode version than the tables'"
    warnings.simplefilter("ignore")
    cases = [{"group": group, "template": template, "rendered": rendered(template)} for group, templates in CASES.items() for template in templates]
    for case in cases:
        assert " at 0x" not in (case["rendered"] or ""), case
    text = json.dumps({"note": "Made by tools/make_jinja_goldens.py with jinja2 3.1.6; null is refused.", "date": "2026-09-04", "variables": jinja_fuzz.VARIABLES,
               "cases": cases, "code_points": {name: digest(convert) for name, convert in PER_CODE_POINT.items()}}, ensure_ascii=False, indent=1)
    packed.write_xz(ROOT / "tests/golden/jinja_goldens.json.xz", (text + "\n").encode())


main()
