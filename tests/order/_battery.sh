#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# _battery.sh - the statistics of the order, seeded and short: the order passes, and each known bad
# one is found
#
# TIMEOUT: 600
#
# The order is frozen: tests/format/order_frozen.sh holds its vectors.  So this can only fail where
# the statistics themselves change.  The full run of format/ORDER.md, part 10, is
# build/tests/order/prog_battery.
set -eu
battery=$BUILD/tests/order/prog_battery
log=$TMPDIR/log

try() { # wanted exit status, words of the program; $last becomes its verdict
	want=$1
	shift
	status=0
	"$battery" --short "$@" >"$log" || status=$?
	last=$(tail -n 1 "$log")
	[ "$status" = "$want" ] ||
		{ cat "$log" && echo "prog_battery --short $*: status $status, not $want" && exit 1; }
}

try 0 reference
while IFS=: read -r control sign; do # each is found, and by the statistic that should find it
	# shellcheck disable=SC2086 # an option stands before the name
	try 1 $control
	grep -q "^rejected: $sign" "$log" || { cat "$log" && echo "$control: not rejected by '$sign'" && exit 1; }
done <<END
--part levels rounds-2:halves of one level
--part levels constant:fixed of epochs e, e+1, places
--part small modulo:all n! of one level, n 6
--part small no-table:all n! of one level, n 6
--part tiny table-4:all n! of two windows, n 6
--part windows table-4:columns of windows v, v+1, places, n 64
--part windows rounds-2:columns of windows v, v+1, places
--part windows no-tweak:fixed of windows v, v+1, places
--part windows rounds-4:columns of a window, n 4096
END
try 0 order
echo "$last"
