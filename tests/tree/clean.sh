#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/clean.sh - a build and a test run write into BUILD and TMPDIR, and nowhere else
# TIMEOUT: 600
# TAKES: 20
#
# Works on a copy of the sources under a git of its own, so that work in progress does not matter
# here.  All is made by the same rules, with a stand-in for the compiler whose outputs are one and
# the same small object.  The unit tests that run are those of BUILD.  The one that only computes,
# and longest, is left out.
set -eu
copy=$TMPDIR/copy
mkdir -p "$copy" "$TMPDIR/tmp"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -type f ! -path './build/*' -print0
fi | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$copy"
cd "$copy"
git init -q .
git add -A
touched() { # changed, then new; `build` counts as new here although git is told to ignore it
	git diff --name-only
	git ls-files --others
}
[ -z "$(touched)" ] || { echo "some files of the tree are ignored by .gitignore:" && touched && exit 1; }

quietly() {
	"$@" >"$TMPDIR/log" 2>&1 || { tail -n 30 "$TMPDIR/log" && exit 1; }
}
echo 'int nothing;' | ${CC:-cc} -c -x c -o "$TMPDIR/nothing.o" -
cat >"$TMPDIR/cc" <<STANDIN
#!/bin/sh
for word; do
	[ "\$before" != -o ] || exec cp "$TMPDIR/nothing.o" "\$word"
	before=\$word
done
STANDIN
chmod +x "$TMPDIR/cc"
quietly make --no-print-directory -j2 DEPS=skip CC="$TMPDIR/cc" CFLAGS=-O0 BUILD="$TMPDIR/out" all tests
# shellcheck disable=SC2046 # our file names hold no blanks
quietly env TMPDIR="$TMPDIR/tmp" BUILD="$BUILD" JOBS=1 T=unit/ \
	tests/run.sh $(find tests/unit -name 't_*.c' ! -name t_order.c | sed "s,^,$BUILD/,; s,\.c$,,")
[ -z "$(touched)" ] || { echo "written outside BUILD:" && touched && exit 1; }
[ -z "$(ls "$TMPDIR/tmp")" ] || { echo "tests left in TMPDIR: $(ls "$TMPDIR/tmp")" && exit 1; }
git check-ignore -q build/libshard.a || { echo ".gitignore does not cover the usual BUILD" && exit 1; }

# The same questions see a file that should not be there, and one that was changed.
touch stray
echo >>Makefile
[ "$(touched | tr '\n' ' ')" = "Makefile stray " ] || { echo "a planted file went unnoticed" && exit 1; }
make --no-print-directory DEPS=skip BUILD="$TMPDIR/out" clean >/dev/null
[ ! -e "$TMPDIR/out" ] || { echo "make clean left $(ls "$TMPDIR/out")" && exit 1; }
tail -n 1 "$TMPDIR/log"
