# SPDX-License-Identifier: Apache-2.0
# tests/cli/broken.sh - links shardcat with a library that is wrong in one place, for scripts that
# source it behind lib.sh: they write broken.c, and set wraps to the functions that it stands before
san=
case ${VARIANT-} in asan) san=-fsanitize=address,undefined ;; tsan) san=-fsanitize=thread ;; esac
read -r CC _ <"$BUILD/flags" # the compiler that made the objects
objects=("$BUILD/tools/shardcat/manual.o")
for source in $(cd "$ROOT" && find tools/shardcat tools/cli tools/common -name '*.c'); do
	objects+=("$BUILD/$source")
done
objects=("${objects[@]/%.c/.o}")
work=$PWD
# break_library NUMBER: ./broken is shardcat with broken.c in it, whose BREAK is NUMBER
break_library() {
	# shellcheck disable=SC2046,SC2086 # words of flags and names
	(cd "$ROOT" && $CC -std=c11 -pthread -D_GNU_SOURCE -O1 -g $san -DBREAK="$1" -Iinclude -I. -o "$work/broken" \
		"$work/broken.c" \
		"${objects[@]}" $(sed "s,[^ ]* *,$BUILD/&,g" "$BUILD/objects") \
		$(printf ' -Wl,--wrap=%s' $wraps) \
		$(pkg-config --libs liblz4 libpng) $(pkg-config --silence-errors --libs liburing) -ldl -lm)
}
