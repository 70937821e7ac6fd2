#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/docs/control.sh - each kind of mistake on a page is noticed, and a good page runs to its end
set -eu
. "$ROOT/tests/docs/lib.sh"
use_python "$PYTHON"
PYTHONPATH=$BUILD/python
export PYTHONPATH

# Of the tree these pages need no more than what runs them, and are run sooner for that.
mv "$TMPDIR/tree" "$TMPDIR/whole"
mkdir -p "$TMPDIR/tree/tests" "$TMPDIR/tree/planted"
mv "$TMPDIR/whole/tests/docs" "$TMPDIR/tree/tests"
count=0

# page NAME: a page of what comes on stdin, in which ''' is a fence
page() {
	sed "s/'''/\`\`\`/" >"$TMPDIR/tree/planted/$1.md"
}
# refused NAME WORDS: the page is not passed, and the reason has these words
refused() {
	! run_pages "" "planted/$1.md" >"$TMPDIR/out" 2>&1 ||
		{ echo "planted/$1.md went unnoticed: $(cat "$TMPDIR/out")" && exit 1; }
	grep -qF -- "$2" "$TMPDIR/out" || { echo "planted/$1.md: '$2' expected: $(cat "$TMPDIR/out")" && exit 1; }
	count=$((count + 1))
}

page good <<'END'
'''sh
mkdir there && cd there
export WORD=word
echo one
echo two
'''
<!-- prints -->
'''text
t…o
'''
'''python
import os
seen = os.getcwd(), os.environ["WORD"]
with open("made", "w") as f:
    f.write("x")
'''
'''python
assert seen[0].endswith("/there") and seen[1] == "word"
'''
<!-- file: program.c -->
'''c
#include <shard.h>
#include <stdio.h>
int main(void) { return puts(shard_version()) < 0; }
'''
'''sh
[ -s made ]
cc program.c -o program $(pkg-config --cflags --libs libshard)
./program
'''
<!-- needs: torch -->
'''python
raise SystemExit("this needs what is not here")
'''
<!-- not run: a reason -->
'''sh
false
'''
END
run_pages "" planted/good.md >"$TMPDIR/out" 2>&1 || { cat "$TMPDIR/out" && exit 1; }
grep -q 'planted/good.md:33: needs torch' "$TMPDIR/out" ||
	{ echo "what is left out is not named: $(cat "$TMPDIR/out")" && exit 1; }
grep -q 'planted/good.md:37: not run: a reason' "$TMPDIR/out" ||
	{ echo "what is not run is not named: $(cat "$TMPDIR/out")" && exit 1; }
grep -q '^5 blocks of 1 pages; 1 need more than this, 1 are never run$' "$TMPDIR/out" ||
	{ cat "$TMPDIR/out" && exit 1; }

printf "'''sh\ntrue\nfalse\ntrue\n'''\n" | page sh
refused sh "planted/sh.md:2: exit status 1"
printf "'''sh\nshardpack images nowhere -o ds\n'''\n" | page tool
refused tool "nowhere"
printf "'''python\nx = 1\nassert x == 2\n'''\n" | page python
refused python 'planted/python.md", line 3'
printf "'''python\nimport libshard\nlibshard.open('gone')\n'''\n" | page error
refused error "NotFoundError"
printf "'''c\nint main(void) { return undeclared; }\n'''\n" | page compile
refused compile "planted/compile.md:2"
printf "'''c\nint main(void) { return 3; }\n'''\n" | page main
refused main "exit status 3"
printf "'''c\nx = 1;\n'''\n" | page part
refused part "needs <!-- with: NAME -->"
printf "<!-- with: loader -->\n'''c\nno_such_call(loader);\n'''\n" | page with
refused with "no_such_call"
printf "<!-- file: x.py -->\n'''python\nif\n'''\n" | page file
refused file "SyntaxError"
printf "'''sh\necho one\n'''\n<!-- prints -->\n'''text\ntwo\n'''\n" | page prints
refused prints "not printed, or not here: two"
printf "'''\nls\n'''\n" | page language
refused language "a block without a language"
printf "'''bash\nls\n'''\n" | page unknown
refused unknown "a block in bash"
printf "'''sh\nls\n" | page open
refused open "does not end"
printf "Type:\n\n    make demo\n" | page indented
refused indented "indented"
printf -- "- Type:\n\n  '''sh\n  ls\n  '''\n" | page nested
refused nested "at the start of a line"
printf "<!-- not run -->\n'''sh\nls\n'''\n" | page reason
refused reason "no such comment"
printf "<!-- not run: a reason -->\n\n'''sh\nls\n'''\n" | page apart
refused apart "belongs to no block"
printf "<!-- needs: luck -->\n'''sh\nls\n'''\n" | page luck
refused luck "needs luck"
printf "<!-- not run: a reason -->\n'''python\nif\n'''\n" | page syntax
refused syntax "invalid syntax"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	printf "<!-- not run: a reason -->\n'''sh\nls\n'''\n"
done | page ten
refused ten "10 blocks are not run; at most 9 may be"
echo "$count mistakes"
