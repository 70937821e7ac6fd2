#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/run.sh - run the scripts beside it and print one table of them all
#
# Each is a scheduler, _NAME.sh.  Three run at a time, since they wait more than they compute.  The
# caller sets BUILD, and may set T, to run only those whose name contains it, and SEED, to draw the
# same shards and moments again.
set -eu
cd "$(dirname "$0")/../.."
SEED=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "seed $SEED: 'make check-cluster SEED=$SEED' draws the same"
ROWS=$(mktemp)
export SEED ROWS
trap 'rm -f "$ROWS"' EXIT
trap 'exit 130' INT TERM
status=0
JOBS=3 tests/run.sh tests/cluster/_*.sh || status=$?
for script in tests/cluster/_*.sh; do
	name=${script##*/}
	case cluster/$name in *"${T-}"*) ;; *) continue ;; esac
	grep -q "^$name|" "$ROWS" || { echo "$script tells of no packing" && status=1; }
done
echo
{ echo '-|scheduler|workers|kills|result|time' && sort "$ROWS"; } | awk -F '|' '
	{ for (i = 2; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > wide[i]) wide[i] = length($i) } }
	END { for (r = 1; r <= NR; r++) { line = ""
		for (i = 2; i <= NF; i++) line = line sprintf("%-" wide[i] + 2 "s", cell[r, i])
		sub(/ *$/, "", line); print line } }'
exit $status
