#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/layers.sh - the graph of libshard/LAYERS, held against the includes and against what
# the objects call
#
# layers.py looks at the includes: a room uses the headers that LAYERS grants it, and rooms make no
# circle.  Calls to other libraries are looked at here: base/mem alone allocates, io alone makes
# file system calls, order, format and transform are pure, and the library never prints, exits,
# or reads the environment.
set -eu
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
# Whatever a pure layer calls outside itself, in full.  LZ4 and XXH3 are pure where they are given
# their state.
PURE=$(tr -d '\n\t' <<-'END'
	bcmp|mem(cpy|move|set|cmp|chr|rchr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|spn|cspn|str|tol|toll|toul|toull)|
	__isoc23_strto[a-z]+|v?snprintf|__(mem|str|vsnp|snp)[a-z]*_chk|__stack_chk_fail|__assert_fail|
	__[a-z]+[sdt]i[23]|__errno_location|_GLOBAL_OFFSET_TABLE_|__ctype_b_loc|XXH(32|64|3_64bits|
	3_128bits|128)[A-Za-z0-9_]*|LZ4_(compress_fast_extState|compress_default|decompress_safe|sizeofState|
	compressBound|versionString)[A-Za-z_]*|LZ4_versionNumber|XXH_versionNumber
	END
)

calls() { # what the objects of a list on stdin call: "object symbol"
	xargs -r nm -A --undefined-only | sed 's/:* *[Uwv] / /'
}

# Prints what is wrong with the calls of the objects below DIR/libshard.
bad_calls() {
	objects=$(find "$1/libshard" -name '*.o' | sort)
	echo "$objects" | grep -v '/libshard/base/mem\.o$' | calls | grep -E " ($ALLOCATE)\$" |
		sed 's/$/: only libshard\/base\/mem.c allocates/'
	echo "$objects" | grep -v '/libshard/io/' | calls | grep -E " ($FILES)\$" |
		sed 's/$/: only libshard\/io makes file system calls/'
	echo "$objects" | calls | grep -E " ($NEVER)\$" | sed 's/$/: a library does not do that/'
	for layer in order transform format; do
		[ -d "$1/libshard/$layer" ] || continue
		# Its own layer, pure ones that it is granted, and those parts of base that neither
		# allocate nor lock.
		{
			for pure in "libshard/$layer" $(sed -n "s,^libshard/$layer:,,p" libshard/LAYERS); do
				[ "$pure" = libshard/base ] || [ ! -d "$1/$pure" ] || find "$1/$pure" -name '*.o'
			done
			find "$1/libshard/base" -name '*.o' ! -name mem.o ! -name thread.o
		} | xargs nm --defined-only --extern-only 2>/dev/null | awk 'NF == 3 {print $3}' >"$TMPDIR/granted"
		echo "$objects" | grep "^$1/libshard/$layer/" | calls | grep -vE " ($PURE)\$" | awk -v layer="$layer" '
			BEGIN { while ((getline s < ARGV[1]) > 0) ok[s] = 1; ARGV[1] = "" }
			!($2 in ok) { print $0 ": not pure, as libshard/" layer " must be" }
			' "$TMPDIR/granted" -
	done || :
}

# First that the check sees anything at all: one sin of each kind, planted beside the real tree.
planted=$TMPDIR/planted
mkdir -p "$planted/libshard/format" "$planted/libshard/base"
cat >"$planted/sin.c" <<-'SIN'
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>
	int sin_of_every_kind(int fd);
	int sin_of_every_kind(int fd)
	{
		free(malloc(7)), puts(getenv("HOME"));
		return (int)write(fd, "", 1);
	}
SIN
${CC:-cc} -fno-builtin -w -c -o "$planted/libshard/format/sin.o" "$planted/sin.c"
found=$(bad_calls "$planted" | wc -l)
# malloc, free; write; puts, getenv; and each of the five is impure
[ "$found" = 10 ] || { bad_calls "$planted"; echo "planted 10 bad calls, the check sees $found"; exit 1; }

bad=$(bad_calls "$BUILD")
[ -z "$bad" ] || { echo "$bad" && exit 1; }
sources=$("$PYTHON" tests/tree/layers.py)
echo "$sources, $(find "$BUILD/libshard" -name '*.o' | wc -l) objects"
