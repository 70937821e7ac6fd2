#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# waiting.sh - SIGTERM and SIGINT end a tool that waits for somebody else: for names on stdin, for
# the other end of a named pipe, or for a reader of what it prints
#
# Nothing here depends on time: the tool ends with 130 whenever the signal comes, and one that does
# not end is ended by this test's time limit.
# TIMEOUT: 120
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

mkdir -p in/a m/a
for i in 1 2 3; do
	{ printf 'P6 8 8 255\n'; head -c 192 /dev/zero; } >in/a/$i.ppm
	{ printf 'P5 8 8 255\n'; head -c 64 /dev/zero; } >m/a/$i.pgm
done
run 0 "$PACK" images in -o ds --resize 8 --crop 8 -q
# `quiet` has a writer that says nothing, `none` has no other end, and the reader of `full` does not
# read.
mkfifo quiet none full
exec 7<>quiet 8<>full
"$PYTHON" -c '
import os
fd = os.open("full", os.O_WRONLY | os.O_NONBLOCK)
for piece in (65536, 1):
    try:
        while True:
            os.write(fd, b"x" * piece)
    except BlockingIOError:
        pass'

# waits PID: it catches SIGTERM and sleeps, so it has begun, and waits for something
waits() {
	local caught
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) && [ -n "$caught" ] &&
		((16#${caught: -4} & 16#4000)) && grep -q '^State:[[:space:]]*S' "/proc/$1/status" 2>/dev/null
}
contents() {
	find . -path ./o -prune -o -print | sort
}
n=0 signal=TERM
# stopped STDIN STDOUT COMMAND...: $signal ends it with 130, and it leaves no temporary files
stopped() {
	local in=$1 out=$2 code=0 pid before
	shift 2
	touch out err
	before=$(contents)
	env --default-signal=INT "$@" <"$in" >"$out" 2>err 7>&- 8>&- &
	pid=$!
	until waits $pid || ! kill -0 $pid 2>/dev/null; do :; done
	kill -s $signal $pid 2>/dev/null || true
	wait $pid || code=$?
	[ $code = 130 ] || die "exit code $code instead of 130 at SIG$signal: $* <$in >$out: $(cat err)"
	! grep -q 'Interrupted system call' err || die "a reason that helps nobody: $* <$in >$out: $(cat err)"
	[ "$(contents)" = "$before" ] || die "left behind by $*: $(ls -A)"
	[ -z "$(find . -name '.tmp.*' -o -name '.spool*')" ] || die "temporary files of $*: $(find .)"
	rm -rf o
	n=$((n + 1))
}
size='--resize 8 --crop 8'
# shellcheck disable=SC2086 # $size is two options
for signal in TERM INT; do
	stopped quiet out "$PACK" images - -o o $size --no-label
	stopped quiet out "$PACK" raw - -o o --schema 'x:u8[16]'
	stopped quiet out "$PACK" array - -o o
	stopped quiet out "$PACK" tokens - -o o --seq-len 8
	for pipe in none quiet; do
		stopped /dev/null out "$PACK" images in -o o $size --classes $pipe
		stopped /dev/null out "$PACK" plan images in -o o $size --classes $pipe
		stopped /dev/null out "$PACK" images in -o o $size --field "mask:kind=mask,from=m/{}.pgm,map=$pipe"
		stopped /dev/null out "$CAT" prove-order --mix $pipe
	done
	for pipe in none full; do
		stopped /dev/null out "$PACK" images in -o o $size -q --report $pipe
		stopped /dev/null out "$CAT" get ds 0 --field image --npy --out $pipe
		stopped /dev/null out "$CAT" show ds --out $pipe
	done
	for words in --help --print-man 'images --help' 'status ds'; do
		stopped /dev/null full "$PACK" $words
	done
	for words in --help 'info ds' 'list ds' 'get ds 0 --field image' 'verify ds' 'stats ds' \
		'manifest ds' 'order ds' doctor; do
		stopped /dev/null full "$CAT" $words
	done
done
echo "$n waits"
