# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# tests/tree/lib.sh - the files of this tree, for tests that read them; sourced, not run

# Prints every file that belongs to the tree, one a line: what git would take, or all but build/
# without git.
tree_files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard | while read -r f; do
			[ ! -f "$f" ] || echo "$f"
		done
	else
		find . -type f ! -path './build/*' ! -path './.git/*' | sed 's,^\./,,'
	fi
}
