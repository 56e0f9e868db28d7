"""The changes that mutate.py makes: each turns one line of C++ into another."""
import re

# What a kind replaces, as pattern and replacement in a line without comments and texts.
KINDS = {
    "comparison": [(" == ", " != "), (" != ", " == "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "),
                   (" >= ", " > ")],
    "sum": [(" + ", " - "), (" - ", " + "), (" += ", " -= "), (" -= ", " += ")],
    "logic": [(" && ", " || "), (" || ", " && ")],
    "constant": [(r"(?<![\w.'])\d+(?=[uU]?[lL]*(?![\w.']))", lambda match: str(int(match[0]) + 1)),
                 (r"\btrue\b", "false"), (r"\bfalse\b", "true")],
    "condition": [(r"\bif \((?!constexpr)", "if (!"), (r"\bwhile \(", "while (!")],
    "limit": [(r"std::min\b", "std::max"), (r"std::max\b", "std::min")],
    "order": [(r"memory_order_(acquire|release|acq_rel|seq_cst)", "memory_order_relaxed")],
}
LOCK = re.compile(r"^\s+(const )?(std::(lock_guard|unique_lock|scoped_lock)|SlowCall)\b.*;$")
STATEMENT = re.compile(r"^\s+[\w\[\](][^=]*?(\(.*\)|( [-+|&]?= ).*|\+\+|--);$")
NOT_DROPPED = re.compile(r"^\s+(return|const|auto|static|using|unsigned|bool|char|void|int|std::\w+ \w|"
                         r"if|for|while|else|break|continue|delete)\b|^\s+[\w:<>]+[*&]? [*&]?\w+( =|\(|\{)")
SKIPPED = re.compile(r"^\s*(#|static_assert|assert\(|namespace|template|using|extern|case |//)|static_assert\(")


def plain(line):
    """Returns the line with texts and its comment blanked, of the same length."""
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', lambda match: '"' + "~" * (len(match[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda match: " " * len(match[0]), line)


def negated(line, start):
    """Returns the line with the condition whose parenthesis opens at start negated, if it ends there."""
    depth = 0
    for at in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            inside = line[start + 1:at]
            return None if ";" in inside else f"{line[:start]}(!({inside})){line[at + 1:]}"
    return None


def changes(lines, number):
    """Yields (kind, line) for each change of one line."""
    line = lines[number]
    code = plain(line)
    if SKIPPED.search(code) or not code.strip():
        return
    for kind, patterns in KINDS.items():
        for pattern, replacement in patterns:
            for match in re.finditer(re.escape(pattern) if pattern[0] == " " else pattern, code):
                if kind == "condition":
                    changed = negated(line, code.index("(", match.start()))
                else:
                    new = replacement(match) if callable(replacement) else replacement
                    changed = line[:match.start()] + new + line[match.end():]
                if changed:
                    yield kind, changed
    before = plain(lines[number - 1]).rstrip() if number else ""
    begins = before.endswith((";", "{", "}", ":")) or not before or lines[number - 1].strip().startswith("//")
    indent = line[:len(line) - len(line.lstrip())]
    if LOCK.match(code):
        yield "lock", indent + "// no lock"
    elif begins and STATEMENT.match(code) and not NOT_DROPPED.match(code) and code.count("(") == code.count(")"):
        yield "statement", indent + ";"


def sites(text, choice):
    """Returns the changes of a source, one a line, in an order that takes all kinds in turns."""
    lines = text.split("\n")
    kinds = {}
    for number in range(len(lines)):
        for kind, changed in changes(lines, number):
            kinds.setdefault(kind, []).append((number, changed))
    for found in kinds.values():
        choice.shuffle(found)
    taken, ordered = set(), []
    while any(kinds.values()):
        names = sorted(kind for kind in kinds if kinds[kind])
        choice.shuffle(names)
        for kind in names:
            number, changed = kinds[kind].pop()
            if number not in taken:
                taken.add(number)
                content = "\n".join(lines[:number] + [changed] + lines[number + 1:])
                ordered.append((number + 1, kind, lines[number], changed, content))
    return ordered[::-1]
