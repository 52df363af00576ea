"""Transformers' own Jinja environment, made of jinja2 alone: as transformers/utils/chat_template_utils.py of 5.17.0."""
import datetime
import functools
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %}: prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def noon(date):
    return datetime.datetime.fromisoformat(date).replace(hour=12)


class Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Without the search for a failure's place in the template, which takes longer than all the rest."""

    def handle_exception(self, source=None):
        raise  # What jinja2 is handling.


@functools.lru_cache(maxsize=None)
def environment(date):
    """What a template runs in on `date`, an ISO date."""
    env = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: noon(date).strftime(format)
    return env


def variables(request_input):
    """What apply_chat_template passes, given what the caller does."""
    return {"tools": None, "documents": None, "add_generation_prompt": False, **request_input}


def render(template, request_input, date):
    """What jinja2 prints."""
    return environment(date).from_string(template).render(**variables(request_input))
