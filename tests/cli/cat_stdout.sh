#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_stdout.sh - output that cannot be written is an error, and a reader that leaves early ends the
# work
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

ds=$ROOT/format/golden/dataset
count=0
while read -r line; do
	code=0
	eval "\"\$CAT\" $line" >/dev/full 2>err </dev/null || code=$?
	[ $code = 3 ] || die "shardcat $line >/dev/full: exit code $code"
	grep -q '^shardcat: stdout: ' err && [ "$(wc -l <err)" = 1 ] || die "shardcat $line >/dev/full: $(cat err)"
	code=0
	eval "\"\$CAT\" $line" >&- 2>err </dev/null || code=$?
	[ $code = 3 ] || die "shardcat $line >&-: exit code $code"
	count=$((count + 1))
done <<END
info $ds
info $ds --json
list $ds
list $ds --json
get $ds 0
get $ds 0 --field image --raw
get $ds 0 --field image --npy
get $ds 0 --png
show $ds --out -
verify $ds
manifest $ds
manifest $ds --json
manifest $ds --sha256sums
order $ds
--help
--version
END

code=0
"$CAT" get "$ds" 0 --png --out /dev/full 2>err || code=$?
[ $code = 3 ] || die "--out /dev/full: exit code $code"
[ "$(cat err)" = "shardcat: /dev/full: No space left on device" ] || die "$(cat err)"

# A reader that left early knows: no line, but the code says that not all was read.
mkfifo pipe
true <pipe &
exec 3>pipe
wait $!
code=0
"$CAT" list "$ds" >&3 2>err || code=$?
exec 3>&-
[ $code = 3 ] && [ ! -s err ] || die "early reader: exit code $code, $(cat err)"
echo "$count commands"
