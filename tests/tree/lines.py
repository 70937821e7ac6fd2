# SPDX-License-Identifier: Apache-2.0
"""lines.py FILE... - lines that are too long; run by docs.sh

Documents and comments have 100 columns, code has 120.  Lines with `|` (tables) or `://` (links)
may be longer.  So may blocks of text in format/: they are lines of files, or frozen numbers.  A
line is a comment if nothing else is on it; docstrings are comments.  Tabs end at multiples of 8.
"""

import io
import re
import sys
import tokenize

PROSE, CODE = 100, 120
EXACT = "format/"


def comments_c(lines):
    """Numbers of the lines that hold a comment only."""
    found, inside = set(), False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if inside:
            found.add(number)
            inside = "*/" not in text
        elif text.startswith("//"):
            found.add(number)
        elif text.startswith("/*"):
            end = text.find("*/", 2)
            inside = end < 0
            if inside or end == len(text) - 2:
                found.add(number)
    return found


def comments_python(lines):
    found, fresh = set(), True  # fresh: a string here stands alone
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        if token.type == tokenize.COMMENT and not lines[token.start[0] - 1][: token.start[1]].strip():
            found.add(token.start[0])
        elif token.type == tokenize.STRING and fresh and lines[token.end[0] - 1][token.end[1] :].strip() == "":
            found.update(range(token.start[0], token.end[0] + 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            fresh = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return found


def comments_other(lines):
    return {number for number, line in enumerate(lines, 1) if re.match(r"\s*#", line)}


def limits(path, lines):
    """The limit of each line; 0: none."""
    if path.endswith(".md") or path.rsplit("/", 1)[-1] == "NEWS":
        inside = False
        for line in lines:
            inside = line == "```text" if not inside else line != "```"
            yield 0 if inside and path.startswith(EXACT) else PROSE
        return
    kind = comments_c if re.search(r"\.(c|h|cu)$", path) else comments_python if path.endswith(".py") else comments_other
    comments = kind(lines)
    for number in range(1, len(lines) + 1):
        yield PROSE if number in comments else CODE


def too_long(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for number, (line, limit) in enumerate(zip(lines, limits(path, lines)), 1):
        columns = len(line.expandtabs(8))
        if limit and columns > limit and "|" not in line and "://" not in line:
            kind = "documents and comments have" if limit == PROSE else "code has"
            yield f"{path}:{number}: {columns} columns; {kind} {limit}"


def main(paths):
    found = [line for path in paths for line in too_long(path)]
    print("\n".join(found))
    return bool(found)


sys.exit(main(sys.argv[1:]))
