#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/layers.sh - the graph of libshard/LAYERS, read from the includes and from what the objects call
#
# Includes: a layer uses the headers of the layers that LAYERS grants it, and no others; only disk and codec see the
# format; tools, examples, benchmarks and the Python package see shard.h and their own folders.
# Calls: base/mem alone allocates, io alone makes file system calls, order, transform, disk and codec are pure, and the library
# never prints, exits, or reads the environment.
set -eu
sources=$(find libshard tools examples bench python/core -name '*.[ch]' -size -200k -o -path 'libshard/*.cu' 2>/dev/null || :)

# Prints what is wrong with the includes of the given files.
bad_includes() {
	grep -Ho '^#[ \t]*include "[^"]*"' "$@" | sed 's/:#[ \t]*include "/ /; s/"$//' | awk '
	BEGIN {
		while ((getline line < "libshard/LAYERS") > 0) {
			if (line ~ /^#/ || split(line, kv, ":") < 2) continue
			n = split(kv[2], d, " ")
			for (i = 1; i <= n; i++) granted[kv[1], d[i]] = 1
			granted[kv[1], kv[1]] = 1
		}
	}
	function bad(why) { print $1 ": includes " $2 ": " why }
	$2 == "shard.h" { next }
	$1 ~ /(^|\/)libshard\// {
		sub(/.*libshard\//, "", $1); split($1, from, "/"); split($2, to, "/"); $1 = "libshard/" $1
		if (to[1] == "format") {
			if (from[1] != "disk" && from[1] != "codec") bad("only disk and codec see the format")
		} else if (to[1] != "libshard")
			bad("write libshard/LAYER/FILE.h")
		else if (!((from[1], to[2]) in granted))
			bad("libshard/LAYERS does not grant " to[2] " to " from[1])
		next
	}
	$2 ~ /^(tools\/|bench\/|examples\/)/ { next }
	$1 ~ /^python\/core\// && ($2 == "core.h" || $2 == "dlpack.h") { next }
	{ bad("tools, examples, benchmarks and python see shard.h and their own folders only") }'
	# What a layer gets from outside: one door each.
	grep -HE '^#[ \t]*include <(lz4|xxh|xxhash)[a-z0-9_]*\.h>' "$@" | grep -v '^[^:]*libshard/codec/\|^bench/' |
		sed 's/$/   (hashes and LZ4 are used through libshard\/codec only)/' || :
	grep -HE '^#[ \t]*include <(jpeglib|jerror|turbojpeg|jansson)\.h>' "$@" | grep -v '^[^:]*tools/\|^bench/' |
		sed 's/$/   (decoders belong to tools\/)/' || :
	grep -HE '^#[ \t]*include <(liburing|linux/io_uring)\.h>' "$@" | grep -v '^[^:]*libshard/io/\|^bench/' |
		sed 's/$/   (io_uring belongs to libshard\/io)/' || :
	grep -HE '^#[ \t]*include <dlfcn\.h>' "$@" | grep -v '^[^:]*libshard/cuda/' |
		sed 's/$/   (what is loaded at run time is the GPU driver, by libshard\/cuda)/' || :
}

ALLOCATE=$(tr -d '\n\t' <<-'END'
	malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|valloc|strdup|strndup|
	asprintf|vasprintf|__asprintf_chk|__vasprintf_chk|getline|getdelim|open_memstream
	END
)
FILES=$(tr -d '\n\t' <<-'END'
	(f?(open|openat|creat|pread|preadv2?|pwrite|pwritev2?|ftruncate|truncate|fallocate|posix_fallocate|
	posix_fadvise|lseek|sendfile|copy_file_range|stat|lstat|fstat|fstatat|statfs|statvfs|mkstemp|mkostemp|
	mmap)(64)?)|read|readv|write|writev|close|fsync|fdatasync|sync|syncfs|sync_file_range|rename|renameat2?|
	link|linkat|symlink|symlinkat|unlink|unlinkat|remove|mkdir|mkdirat|rmdir|readlink|readlinkat|realpath|
	opendir|fdopendir|readdir(64)?|scandir(64)?|closedir|nftw|statx|access|faccessat|chmod|fchmod|fchmodat|
	chown|fchown|utimensat|futimens|munmap|mremap|msync|madvise|posix_madvise|mincore|flock|lockf(64)?|
	fcntl(64)?|ioctl|dup[23]?|pipe2?|umask|chdir|fchdir|syscall|fopen(64)?|fdopen|freopen(64)?|tmpfile(64)?|
	fread|fwrite|fclose|fgets|fgetc|fputs|fputc|fflush|fseeko?(64)?|ftello?(64)?|setvbuf|io_uring_[a-z0-9_]+
	END
)
NEVER=$(tr -d '\n\t' <<-'END'
	printf|fprintf|dprintf|vprintf|vfprintf|puts|putchar|perror|psignal|syslog|__printf_chk|__fprintf_chk|
	__vprintf_chk|__vfprintf_chk|__dprintf_chk|exit|_exit|_Exit|quick_exit|atexit|abort|err|errx|warn|warnx|
	error|system|popen|getenv|secure_getenv|setenv|putenv|strtok|rand|srand|random|srandom|localtime|gmtime|
	ctime|strerror|setlocale|std(in|out|err)
	END
)
# Whatever a pure layer calls outside itself, in full.  LZ4 and XXH3 are pure where they are given their state.
PURE=$(tr -d '\n\t' <<-'END'
	bcmp|mem(cpy|move|set|cmp|chr|rchr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|spn|cspn|str|tol|toll|toul|toull)|
	__isoc23_strto[a-z]+|v?snprintf|__(mem|str|vsnp|snp)[a-z]*_chk|__stack_chk_fail|__assert_fail|
	__[a-z]+[sdt]i[23]|__errno_location|__cpu_model|__cpu_indicator_init|_GLOBAL_OFFSET_TABLE_|__ctype_b_loc|XXH(32|64|3_64bits|
	3_128bits|128)[A-Za-z0-9_]*|LZ4_(compress_fast_extState|compress_default|decompress_safe|sizeofState|
	compressBound|versionString)[A-Za-z_]*|LZ4_versionNumber|XXH_versionNumber
	END
)

calls() { # what the objects call: "object symbol"
	nm -A --undefined-only "$@" | sed 's/:* *[Uwv] / /'
}
defines() {
	nm --defined-only --extern-only "$@" 2>/dev/null | awk 'NF == 3 {print $3}'
}

# Prints what is wrong with the calls of the objects below DIR/libshard.
bad_calls() {
	find "$1/libshard" -name '*.o' | sort | while read -r object; do
		case $object in
		*/libshard/base/mem.o) ;;
		*)
			calls "$object" | grep -E " ($ALLOCATE)\$" | sed 's/$/: only libshard\/base\/mem.c allocates/'
		esac
		case $object in
		*/libshard/io/*) ;;
		*)
			calls "$object" | grep -E " ($FILES)\$" | sed 's/$/: only libshard\/io makes file system calls/'
		esac
		calls "$object" | grep -E " ($NEVER)\$" | sed 's/$/: a library does not do that/'
	done
	for layer in order transform disk codec; do
		[ -d "$1/libshard/$layer" ] || continue
		# Its own layer, pure ones that it is granted, and those parts of base that neither allocate nor lock.
		{
			for pure in "$layer" $(sed -n "s/^$layer://p" libshard/LAYERS); do
				[ "$pure" = base ] || [ ! -d "$1/libshard/$pure" ] || find "$1/libshard/$pure" -name '*.o'
			done
			find "$1/libshard/base" -name '*.o' ! -name mem.o ! -name 'thread*.o'
		} | xargs nm --defined-only --extern-only 2>/dev/null | awk 'NF == 3 {print $3}' >"$TMPDIR/granted"
		find "$1/libshard/$layer" -name '*.o' | sort | while read -r object; do
			calls "$object" | grep -vE " ($PURE)\$" | awk -v layer="$layer" '
				BEGIN { while ((getline s < ARGV[1]) > 0) ok[s] = 1; ARGV[1] = "" }
				!($2 in ok) { print $0 ": not pure, as libshard/" layer " must be" }' "$TMPDIR/granted" -
		done
	done || :
}

# First that the checks see anything at all: one sin of each kind, planted beside the real tree.
planted=$TMPDIR/planted
mkdir -p "$planted/libshard/disk" "$planted/libshard/base" "$planted/tools"
cat >"$planted/libshard/disk/sin.c" <<-'SIN'
	#include "libshard/io/file.h"
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>
	#include <lz4.h>
	#include <dlfcn.h>
	int sin_of_every_kind(int fd);
	int sin_of_every_kind(int fd)
	{
		free(malloc(7)), puts(getenv("HOME"));
		return (int)write(fd, "", 1);
	}
SIN
echo '#include "libshard/base/error.h"' >"$planted/tools/sin.c"
found=$(bad_includes "$planted/libshard/disk/sin.c" "$planted/tools/sin.c" 2>&1 | wc -l)
[ "$found" = 4 ] || { echo "planted 4 bad includes, the check sees $found" && exit 1; }
sed '/libshard/d' "$planted/libshard/disk/sin.c" | ${CC:-cc} -fno-builtin -w -c -x c -o "$planted/libshard/disk/sin.o" -
found=$(bad_calls "$planted" | wc -l)
# malloc, free; write; puts, getenv; and each of the five is impure
[ "$found" = 10 ] || { bad_calls "$planted"; echo "planted 10 bad calls, the check sees $found"; exit 1; }

# shellcheck disable=SC2086 # our file names hold no blanks
bad=$(bad_includes $sources; bad_calls "$BUILD")
[ -z "$bad" ] || { echo "$bad" && exit 1; }
echo "$(echo "$sources" | wc -l) sources, $(find "$BUILD/libshard" -name '*.o' | wc -l) objects"
