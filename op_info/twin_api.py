# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What the twin offers to kernels: every public declaration of its headers, read from the preprocessor's output.

Reads our own headers only, so it knows just the C++ that they use. Inner namespaces of the twin are left out.
"""

import re
import subprocess
from dataclasses import dataclass

API_HEADERS = ("kernel_operator.h", "lib/matmul_intf.h")
INNER_NAMESPACES = {"detail", "check", "mst"}
TOKEN = re.compile(r'"(?:\\.|[^"])*"|\d(?:[\w.]|(?<=[eE])[+-])*|\w+|::|\.\.\.|&&|==|<=|>=|\|\||\S')
OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}


@dataclass(frozen=True)
class Parameter:
    """Of a function, or of a template, whose types are typename, class, bool, ..."""

    type: str
    name: str
    default: str

    def __str__(self):
        return " ".join(filter(None, (self.type, self.name))) + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True)
class Declaration:
    """One public declaration."""

    kind: str  # class function field enum enumerator constant alias namespace macro
    scope: tuple  # namespaces and classes, outermost first
    name: str
    type: str = ""  # result, type of a field or constant, what an alias stands for; class or struct; type of an enum
    template: tuple = ()
    parameters: tuple = ()
    const: bool = False  # a member function that leaves its object alone
    value: str = ""  # of an enumerator (the number), constant, field (default) or macro
    owner: "Declaration" = None  # the class of a member, the enum of an enumerator
    body: str = ""  # of a class: everything in its braces

    @property
    def qualified(self):
        return "::".join((*self.scope, self.name))

    def __str__(self):
        template = f"template <{', '.join(map(str, self.template))}> " if self.template else ""
        parameters = f"({', '.join(map(str, self.parameters))})" if self.kind == "function" else ""
        kind = "" if self.kind in ("function", "field", "class") else self.kind
        words = filter(None, (kind, self.type, self.qualified + parameters, "const" * self.const))
        return template + " ".join(words) + (f" = {self.value}" if self.value else "")


def declarations(twin_dir):
    """Every public declaration of the twin, and {class: aliases} with the private ones that signatures may use."""
    includes = "".join(f'#include "{header}"\n' for header in API_HEADERS)
    command = ["g++", "-std=c++17", "-E", "-dD", "-I", str(twin_dir), "-I", str(twin_dir.parent), "-x", "c++", "-"]
    text = subprocess.run(command, input=includes, capture_output=True, text=True, check=True).stdout
    lines, macros, ours = [], [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            ours = marker[1].startswith(str(twin_dir))
        elif ours and line.startswith("#define "):
            macros.append(line.split(" ", 1)[1])
        elif ours and line.startswith("#undef "):
            macros = [macro for macro in macros if not re.match(line.split()[1] + r"\b", macro)]
        elif ours:
            lines.append(line)
    reader = _Reader(TOKEN.findall("\n".join(lines)))
    reader.block((), None)
    reader.found += [_macro(text) for text in macros if not text.startswith("MST_")]
    return reader.found, reader.aliases


def _macro(text):
    name, parameters, value = re.match(r"(\w+)(?:\(([^)]*)\))?(.*)", text).groups()
    parameters = () if parameters is None else tuple(Parameter("", p.strip(), "") for p in parameters.split(","))
    return Declaration("macro", (), name, parameters=parameters, value=value.strip())


class _Reader:
    def __init__(self, tokens):
        self.tokens = tokens
        self.at = 0
        self.found = []
        self.aliases = {}

    def block(self, scope, owner):
        """Declarations up to the brace that closes this namespace or class."""
        public = owner is None or owner.type == "struct"
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == "}":
                self.at += 1
                return
            if token in ("public", "private", "protected"):
                public = token == "public"
                self.at += 2
            elif token == ";":
                self.at += 1
            else:
                before = len(self.found)
                self._declaration(scope, owner)
                if not public:
                    del self.found[before:]

    def _declaration(self, scope, owner):
        template = ()
        if self.tokens[self.at] == "template":
            self.at += 1
            template = _parameters(self._balanced()[1:-1])
        head = self._head()
        opens = self.tokens[self.at] == "{"
        keyword = head[0]
        if keyword == "namespace" and head[1] in INNER_NAMESPACES:
            self._balanced()
        elif keyword == "namespace" and opens:
            self.at += 1
            self.block((*scope, head[1]), None)
        elif keyword in ("namespace", "using"):
            self._alias(head, scope, owner, template)
        elif keyword in ("class", "struct") and opens:
            # What follows a colon is a base.
            begin = self.at
            body = _text(self._balanced())
            self.at = begin + 1
            declared = Declaration("class", scope, head[1], keyword, template, value=_text(head[3:]), body=body)
            self.found.append(declared)
            self.block((*scope, head[1]), declared)
        elif keyword == "enum":
            self._enum(head, scope)
        elif "(" in head and keyword != "static_assert":
            self._function(head, scope, owner, template)
            if opens:
                self._balanced()
        elif keyword not in ("friend", "class", "struct", "static_assert"):
            self._value(head, scope, owner, template)

    def _head(self):
        """Tokens before the `;` or the body of a declaration, which becomes the next token."""
        begin = self.at
        while self.tokens[self.at] not in (";", "{"):
            token = self.tokens[self.at]
            if token == "=" and self.tokens[self.at - 1] != "operator":
                while self.tokens[self.at] != ";":  # an initializer, perhaps in braces
                    self._step()
            else:
                self._step()
        return self.tokens[begin : self.at]

    def _step(self):
        if self.tokens[self.at] in ("(", "{"):
            self._balanced()
        else:
            self.at += 1

    def _balanced(self):
        """The tokens from an opening bracket to its partner."""
        begin, opening = self.at, self.tokens[self.at]
        depth = 0
        while True:
            token = self.tokens[self.at]
            depth += (token == opening) - (OPENING.get(token) == opening)
            self.at += 1
            if depth == 0:
                return self.tokens[begin : self.at]

    def _alias(self, head, scope, owner, template):
        if "=" not in head:  # a using directive
            return
        kind = "namespace" if head[0] == "namespace" else "alias"
        declared = Declaration(kind, scope, head[1], template=template, value=_text(head[3:]), owner=owner)
        self.found.append(declared)
        if owner:
            self.aliases.setdefault(owner, []).append(declared)

    def _enum(self, head, scope):
        scoped = head[1] in ("class", "struct")
        name = head[2] if scoped else head[1]
        base = _text(head[head.index(":") + 1 :]) if ":" in head else ""
        declared = Declaration("enum", scope, name, " ".join(filter(None, ("class" * scoped, base))))
        self.found.append(declared)
        numbers, following = {}, 0
        for item in _split(self._balanced()[1:-1]):
            value = _text(item[2:]) or str(following)
            number = numbers[value] if value in numbers else int(value, 0)
            numbers[item[0]], following = number, number + 1
            inside = (*scope, name) if scoped else scope
            self.found.append(Declaration("enumerator", inside, item[0], value=str(number), owner=declared))

    def _function(self, head, scope, owner, template):
        opening = next(i for i, token in enumerate(head) if token == "(" and head[i - 1] != "operator")
        reader = _Reader(head)
        reader.at = opening
        parameters = reader._balanced()[1:-1]
        rest = head[reader.at :]
        if "delete" in rest:
            return
        before = [token for token in head[:opening] if token not in ("inline", "static", "constexpr", "explicit")]
        at = before.index("operator") if "operator" in before else len(before) - 1
        if before[at - 1 : at] == ["~"]:
            return
        name = _text(before[at:])
        function = Declaration(
            "function", scope, name, _text(before[:at]), template, _parameters(parameters), rest[:1] == ["const"],
            owner=owner,
        )  # fmt: skip
        self.found.append(function)

    def _value(self, head, scope, owner, template):
        value = []
        if "=" in head:
            value, head = head[head.index("=") + 1 :], head[: head.index("=")]
        elif self.tokens[self.at] == "{":
            value = self._balanced()[1:-1]
        constant = "constexpr" in head
        head = [token for token in head if token not in ("inline", "static", "constexpr")]
        array = []
        if "[" in head:
            array, head = head[head.index("[") :], head[: head.index("[")]
        declared = Declaration(
            "constant" if constant else "field", scope, head[-1], _text(head[:-1] + array), template,
            value=_text(value), owner=owner,
        )  # fmt: skip
        self.found.append(declared)


def _split(tokens):
    """Comma separated groups of tokens."""
    groups, depth = [[]], 0
    for token in tokens:
        depth += (token in OPENING.values()) - (token in OPENING)
        if token == "," and depth == 0:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _parameters(tokens):
    return tuple(map(_parameter, _split(tokens)))


def _parameter(tokens):
    default = ""
    if "=" in tokens:
        default, tokens = _text(tokens[tokens.index("=") + 1 :]), tokens[: tokens.index("=")]
    array = []
    if "[" in tokens:
        array, tokens = tokens[tokens.index("[") :], tokens[: tokens.index("[")]
    named = len(tokens) > 1 and re.match(r"\w", tokens[-1]) and tokens[-2] not in ("const", "::")
    type_tokens, name = (tokens[:-1], tokens[-1]) if named else (tokens, "")
    return Parameter(_text(type_tokens + array), name, default)


def _text(tokens):
    text = " ".join(tokens)
    text = re.sub(r" ?(::|<|\[) ?", r"\1", text)
    return re.sub(r" (?=[>\]),&*(])|(?<=[(~]) ", "", text)
