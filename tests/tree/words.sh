#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/words.sh - no file of the tree knows somebody's machine: no home folders, no package
# mirrors
#
# The patterns are written so that they do not match themselves.
set -eu
. tests/tree/lib.sh
machine='(^|[^A-Za-z0-9_.}/])/([w]ork/|[r]oot/|[h]ome/[a-z]|tmp/[b]rief)'
host='([p]ypi\.org|[p]ythonhosted\.org|[r]egistry\.npmjs|[p]kg\.dev|[m]irrors?\.[a-z]+\.)'
host="$host|"'([d]eb|[s]ecurity|[s]napshot)\.debian\.org|([a]rchive|[s]ecurity|[p]orts)\.ubuntu\.com'
offenders() { # in the files named on stdin
	tr '\n' '\0' | xargs -0 grep -IHnE "$machine|$host" || :
}
bad=$(tree_files | offenders)
[ -z "$bad" ] || { echo "$bad" && exit 1; }

for planted in 'cd /w''ork/main' 'see /h''ome/jane/x' 'from d''eb.debian.org'; do
	echo "$planted" >"$TMPDIR/planted"
	[ -n "$(echo "$TMPDIR/planted" | offenders)" ] || { echo "planted words went unnoticed: $planted" && exit 1; }
done
echo "$(tree_files | wc -l) files"
