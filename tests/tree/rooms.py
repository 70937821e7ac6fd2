# SPDX-License-Identifier: Apache-2.0
"""Rooms that a stranger can take in: few files, each with a name of its own, none too long, and
nothing written twice.

Prints what is wrong with include, libshard, tools and python/core, a line each.
"""

import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from layers import INCLUDE, room, target_of

HOUSE = ("include", "libshard", "tools", "python/core")
READ = (*HOUSE, "format")
FILES_MAX = 40  # in a room
DEPTH_MAX = 8  # includes behind each other
FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60
SAME_LINES_MAX = 5
GENERATED = re.compile(r".*_ptx\.c")  # long, and the same over and over, as its compiler made it


def in_house(path):
    return path.startswith(tuple(top + "/" for top in HOUSE))


def check_names(files, complain):
    rooms = Counter(room(path) for path in files)
    for name, count in sorted(rooms.items()):
        if count > FILES_MAX:
            complain(f"{name}: {count} source files; at most {FILES_MAX} are a room")
    places = defaultdict(list)
    for path in sorted(files):
        places[os.path.basename(path)].append(path)
    for name, paths in sorted(places.items()):
        if len(paths) > 1 and name != "main.c":
            complain(f"{name}: one name for {', '.join(paths)}")


def check_depth(files, all_files, complain):
    """The longest way from a file through quoted includes: 2 if a.c includes b.h and b.h c.h."""
    depths = {}

    def depth(path):
        if path not in depths:
            depths[path] = 0
            to = {target_of(path, kind, name, all_files) for kind, name in INCLUDE.findall(all_files[path])}
            depths[path] = max((1 + depth(t) for t in to if t in all_files), default=0)
        return depths[path]

    for path in sorted(files):
        if depth(path) > DEPTH_MAX:
            complain(f"{path}: {depth(path)} includes behind each other; at most {DEPTH_MAX}")


def functions(text):
    """(first line, lines) of each function: the lines from its type to the brace that ends it."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line != "{":
            continue
        first = i
        while first and lines[first - 1] and not re.search(r"([;}]|\*/|^#.*)$", lines[first - 1]):
            first -= 1
        end = next((k for k in range(i, len(lines)) if lines[k].startswith("}")), len(lines) - 1)
        yield first + 1, end - first + 1


def check_lengths(files, complain):
    for path, text in sorted(files.items()):
        count = text.count("\n")
        if count > FILE_LINES_MAX:
            complain(f"{path}: {count} lines; at most {FILE_LINES_MAX} are a short article")
        for line, length in functions(text):
            if length > FUNCTION_LINES_MAX:
                complain(f"{path}:{line}: a function of {length} lines; at most {FUNCTION_LINES_MAX} fit a screen")


def code_lines(text):
    """(number, line) of each line of code: no comments, includes, blanks or lone punctuation."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        line = " ".join(line.split())
        if re.search(r"\w", line) and not line.startswith("#include"):
            yield number, line


def check_twice(files, complain):
    """Runs of lines that stand in two places."""
    window = SAME_LINES_MAX + 1
    seen = {}
    for path, text in sorted(files.items()):
        lines = list(code_lines(text))
        last = -window
        for i in range(len(lines) - window + 1):
            run = tuple(line for _, line in lines[i:i + window])
            other = seen.setdefault(run, (path, lines[i][0], i))
            if (
                other != (path, lines[i][0], i)
                and not (other[0] == path and i - other[2] < window)
                and i - last >= window
            ):
                complain(f"{path}:{lines[i][0]}: {window} lines or more as at {other[0]}:{other[1]}; write them once")
                last = i


def check(all_files):
    wrong = []
    files = {path: text for path, text in all_files.items() if in_house(path) and not GENERATED.fullmatch(path)}
    check_names([path for path in all_files if in_house(path)], wrong.append)
    check_depth(files, all_files, wrong.append)
    check_lengths(files, wrong.append)
    check_twice(files, wrong.append)
    return wrong


# ---- the rules notice offenders: each tree breaks one rule once ----

BODY = "".join(f"\tstep_{i}(a, b);\n" for i in range(5))
SOUND = {
    "libshard/base/a.c": f"/* a */\nint one(int a)\n{{\n{BODY}}}\n",
    "tools/x/main.c": "",
    "tools/y/main.c": "",
    "tools/y/b.c": f"int two(int a,\n\tint b)\n{{\n{BODY}}}\n",
    **{f"tools/y/deep_{i}.h": f'#include "tools/y/deep_{i + 1}.h"\n' for i in range(8)},
    "tools/y/deep_8.h": "",
}
OFFENDERS = [
    ("a room with 41 files", {f"tools/y/{i}.h": "" for i in range(30)}, "tools/y: 41 source files"),
    ("one name twice", {"tools/x/a.c": ""}, "a.c: one name for libshard/base/a.c, tools/x/a.c"),
    ("too deep", {"tools/y/deep.c": '#include "tools/y/deep_0.h"\n'}, "9 includes behind each other"),
    ("a long file", {"tools/x/a.h": "\n" * 451}, "451 lines"),
    (
        "a long function",
        {"tools/x/f.c": "static int\nf(void)\n{\n" + "\n" * 57 + "}\n"},
        "f.c:1: a function of 61 lines",
    ),
    (
        "lines written twice",
        {f"tools/x/{name}.c": f"\tint {name};\n{BODY}\n\t/* {name} */\n\tlast(a);\n" for name in "pq"},
        "6 lines or more as at tools/x/p.c:2",
    ),
]


def test_rules():
    assert check(SOUND) == [], check(SOUND)
    for story, change, words in OFFENDERS:
        found = check({**SOUND, **change})
        assert len(found) == 1 and words in found[0], f"planted: {story}; the check says {found}"


def main():
    test_rules()
    names = [str(p) for top in READ for p in Path(top).rglob("*") if p.suffix in (".c", ".h", ".cu")]
    wrong = check({name: Path(name).read_text(encoding="utf-8") for name in names})
    print("\n".join(wrong) if wrong else f"{len(names)} sources in {len({room(n) for n in names})} rooms",
          file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
