# SPDX-License-Identifier: Apache-2.0
"""The includes of the whole tree, held to libshard/LAYERS.  Prints what is wrong, a line each.

A room is a folder.  Inside a room files may know each other; between rooms nothing goes in a circle.
"""

import re
import sys
from pathlib import Path

PUBLIC = re.compile(r"include/[^/]+\.h")
FORMAT = "format/shard_format.h"
HOUSE = ("libshard/", "tools/", "python/core/", "bench/", "examples/", "include/", "format/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.M)

# What comes from outside has one door: pattern of the header, pattern of the files that may include
# it, and why.
DOORS = [
    (r"(lz4|xxh)\w*\.h", r"libshard/format/|bench/", "hashes and LZ4 are used through libshard/format only"),
    (r"(jpeglib|jerror|turbojpeg|jansson|png|zlib|zstd|webp/\w+)\.h", r"tools/|bench/", "decoders and JSON belong to tools/"),
    (r"(liburing|linux/io_uring)\.h", r"libshard/io/|tools/shardcat/doctor/|bench/", "io_uring belongs to libshard/io"),
    (r"dlfcn\.h", r"libshard/gpu/", "libshard/gpu alone loads a library at run time: the GPU driver"),
    (r"cpuid\.h", r"libshard/base/cpu\.c|bench/", "libshard/base/cpu.h says what the CPU has"),
]
# Both ask the compiler's runtime what the CPU has, and that of the wheel's compiler always says that it has nothing.
RUNTIME = re.compile(r'__builtin_cpu_(?:supports|is)\s*\(\s*"|target_clones')


def room(path):
    return path.rpartition("/")[0]


def circles(graph):
    """The strongly connected components with more than one node (Tarjan, 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for to in sorted(graph.get(node, ())):
            if to not in number:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in stack:
                low[node] = min(low[node], number[to])
        if low[node] == number[node]:
            component = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def read_layers(text, complain):
    """Room -> all rooms whose headers it may use."""
    named = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rooms = line.partition(":")
            named[name] = set(rooms.split())
    for name, rooms in named.items():
        for unknown in sorted(rooms - named.keys()):
            complain(f"libshard/LAYERS: {name} names {unknown}, which has no line")
    for circle in circles(named):
        complain(f"libshard/LAYERS: rooms in a circle: {', '.join(circle)}")

    def reach(name, seen):
        for other in named.get(name, ()):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen

    return {name: reach(name, set()) for name in named}


def target_of(path, kind, name, files):
    """The file of the tree that an include means, or None if it is none of ours."""
    for candidate in (name, f"{room(path)}/{name}", f"include/{name}"):
        if candidate in files:
            return candidate
    return name if kind == '"' and "/" in name else None


def check_include(path, to, granted, complain):
    if PUBLIC.fullmatch(to):
        return
    if to == FORMAT:
        if room(path) != "libshard/format":
            complain(f"{path}: includes {to}: only libshard/format sees it")
    elif room(path) not in granted:
        complain(f"{path}: libshard/LAYERS has no line for {room(path)}")
    elif room(to) != room(path) and room(to) not in granted[room(path)]:
        complain(f"{path}: includes {to}: libshard/LAYERS does not grant {room(to)} to {room(path)}")


def check_doors(path, name, complain):
    for header, allowed, why in DOORS:
        if re.fullmatch(header, name) and not re.match(allowed, path):
            complain(f"{path}: includes <{name}>: {why}")


def check(files, layers):
    """What is wrong with a tree: files maps paths to texts, layers is the text of LAYERS."""
    wrong = []
    granted = read_layers(layers, wrong.append)
    for path, text in sorted(files.items()):
        if RUNTIME.search(text) and not path.startswith("bench/"):
            wrong.append(f"{path}: asks the compiler what the CPU has, and the wheel's knows of nothing: libshard/base/cpu.h")
        for kind, name in INCLUDE.findall(text):
            check_doors(path, name, wrong.append)
            to = target_of(path, kind, name, files)
            if not to:
                continue
            if not PUBLIC.fullmatch(path):
                check_include(path, to, granted, wrong.append)
    return wrong


# ---- the rules notice offenders: each tree breaks one rule once ----

LAYERS = (
    "libshard/base:\n"
    "libshard/format: libshard/base\n"
    "libshard/io: libshard/base\n"
    "libshard/feed: libshard/format libshard/io\n"
    "tools/a:\n"
)
SOUND = {
    "include/shard.h": "#include <stdint.h>\n",
    "format/shard_format.h": "",
    "libshard/base/mem.h": "#include <stddef.h>\n",
    "libshard/format/page.h": '#include "libshard/base/mem.h"\n#include "format/shard_format.h"\n#include "shard.h"\n',
    "libshard/format/page.c": '#include "libshard/format/page.h"\n',
    "libshard/feed/feed.c": '#include "libshard/format/page.h"\n#include "libshard/base/mem.h"\n',
    "tools/a/a.c": '#include "shard.h"\n#include <jpeglib.h>\n',
}
OFFENDERS = [
    (
        "points up",
        {"libshard/base/mem.h": '#include "libshard/format/page.h"\n'},
        "does not grant libshard/format to libshard/base",
    ),
    (
        "sideways",
        {"libshard/io/file.c": '#include "libshard/format/page.h"\n'},
        "does not grant libshard/format to libshard/io",
    ),
    (
        "a tool inside the library",
        {"tools/a/a.c": '#include "libshard/base/mem.h"\n'},
        "does not grant libshard/base to tools/a",
    ),
    (
        "the format elsewhere",
        {"tools/a/a.c": '#include "format/shard_format.h"\n'},
        "only libshard/format sees it",
    ),
    ("a room without a line", {"tools/b/b.c": '#include "libshard/base/mem.h"\n'}, "has no line for tools/b"),
    ("LZ4 elsewhere", {"libshard/io/file.c": "#include <lz4.h>\n"}, "through libshard/format only"),
    ("a decoder in the library", {"libshard/io/file.c": "#include <jpeglib.h>\n"}, "belong to tools/"),
    ("io_uring elsewhere", {"libshard/feed/slot.c": "#include <liburing.h>\n"}, "belongs to libshard/io"),
    ("a library loaded elsewhere", {"libshard/feed/slot.c": "#include <dlfcn.h>\n"}, "the GPU driver"),
    ("CPUID elsewhere", {"libshard/format/page.c": "#include <cpuid.h>\n"}, "says what the CPU has"),
    ("the compiler's CPUID", {"tools/a/a.c": 'int a = __builtin_cpu_supports("avx2");\n'}, "the wheel's knows of nothing"),
    ("the compiler's choice", {"tools/a/a.c": '__attribute__((target_clones("avx2")))\n'}, "the wheel's knows of nothing"),
]
BAD_LAYERS = [
    ("rooms in a circle", LAYERS.replace("libshard/base:", "libshard/base: libshard/feed"), "rooms in a circle"),
    (
        "a room that is not there",
        LAYERS.replace("tools/a:", "tools/a: tools/common"),
        "names tools/common, which has no line",
    ),
]


def test_rules():
    assert check(SOUND, LAYERS) == [], check(SOUND, LAYERS)
    for story, change, words in OFFENDERS:
        found = check({**SOUND, **change}, LAYERS)
        assert len(found) == 1 and words in found[0], f"planted: {story}; the check says {found}"
    for story, layers, words in BAD_LAYERS:
        found = check(SOUND, layers)
        assert any(words in line for line in found), f"planted: {story}; the check says {found}"


def main():
    test_rules()
    names = [str(p) for top in HOUSE for p in Path(top).rglob("*") if p.suffix in (".c", ".h", ".cu")]
    files = {name: Path(name).read_text(encoding="utf-8") for name in names}
    wrong = check(files, Path("libshard/LAYERS").read_text(encoding="utf-8"))
    print("\n".join(wrong) if wrong else f"{len(files)} sources", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
