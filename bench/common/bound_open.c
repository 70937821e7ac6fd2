/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_open.c - the bare way to a record: open, read the two pages, read the record, close; and to
 * a manifest
 */
#include "bench/common/bound_open.h"

#include <fcntl.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "bench/common/say.h"
#include "bench/common/service.h"

#define PAGE_BYTES 4096

double bound_open(const struct bound_open *file, size_t count, size_t bytes, uint8_t *out)
{
	double begin = bench_seconds();
	uint8_t page[2][PAGE_BYTES];

	for (size_t i = 0; i < count; i++) {
		int fd = open(file[i].path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || pread(fd, page[0], PAGE_BYTES, 0) != PAGE_BYTES ||
		    pread(fd, page[1], PAGE_BYTES, (off_t)(file[i].file_bytes - PAGE_BYTES)) != PAGE_BYTES ||
		    pread(fd, out + i * bytes, bytes, (off_t)file[i].offset) != (ssize_t)bytes)
			bench_die("%s: cannot be read", file[i].path);
		close(fd);
	}
	return (bench_seconds() - begin) * 1e3;
}

double bound_load(const char *path, uint8_t *out, size_t bytes)
{
	double begin = bench_seconds();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	XXH128_hash_t hash;

	if (fd < 0 || pread(fd, out, bytes, 0) != (ssize_t)bytes)
		bench_die("%s: cannot be read", path);
	hash = XXH3_128bits(out, bytes);
	close(fd);
	return hash.low64 || hash.high64 ? (bench_seconds() - begin) * 1e3 : 0;
}
