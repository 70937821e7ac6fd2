#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/cxx.sh - each public header stands alone in strict C99, C11 and C++17, and a C++
# program links every symbol
set -eu
headers=$(cd include && ls -- *.h)
try() { # COMPILER OPTION...: does it take each header alone?
	for h in $headers; do
		echo "#include \"$h\"" | "$@" -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only -
	done
}
for std in c99 c11 c17; do
	try "${CC:-cc}" -std=$std -x c
done
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	for std in c++11 c++17 c++20; do
		try $compiler -std=$std -x c++
	done
done

# The address of every exported function, by its C++ view of the header.
symbols=$(nm --defined-only --extern-only "$BUILD/libshard.a" | awk 'NF == 3 && $3 !~ /^shard__/ {print $3}')
{
	for h in $headers; do echo "#include \"$h\""; done
	echo '#include <cstdio>'
	echo '#include <cstring>'
	echo 'typedef void (*function)();'
	echo 'static const function all[] = {'
	for s in $symbols; do echo "	reinterpret_cast<function>(&$s),"; done
	echo '};'
	cat <<-'MAIN'
		int main()
		{
			size_t count = 0;
			for (function f : all)
				count += f != nullptr;
			shard_error err = {};
			shard_dataset *ds = nullptr;
			if (shard_dataset_open(&ds, "no/such/dataset", nullptr, &err) != SHARD_E_IO || !std::strlen(err.message))
				return 1;
			std::printf("%zu functions from C++\n", count);
			return 0;
		}
	MAIN
} >"$TMPDIR/user.cc"
libs=$(pkg-config --libs liblz4)
[ ! -e "$BUILD/libshard/io/engine_uring.o" ] || libs="$libs $(pkg-config --libs liburing)"
# shellcheck disable=SC2086 # libraries are words
g++ -std=c++17 -Wall -Wextra -Werror -Iinclude "$TMPDIR/user.cc" -o "$TMPDIR/static" "$BUILD/libshard.a" $libs -pthread
g++ -std=c++17 -Iinclude "$TMPDIR/user.cc" -o "$TMPDIR/shared" -L"$BUILD" -lshard -Wl,-rpath,"$BUILD"
"$TMPDIR/static" >/dev/null
"$TMPDIR/shared"
