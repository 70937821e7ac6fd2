/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_says.c - what a compressed file says that it unpacks to
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "libshard/base/bytes.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/parse/zip.h"

#define SLACK_BYTES (UINT64_C(1) << 20) /* by which a file may be larger than what is packed in it */

#define DEFLATE_MOST 1032 /* a byte of deflate cannot hold more of them */

/*
 * A gzip ends with the size of its last member, below 4 GiB.  One that is cut ends with any number,
 * which is mostly more than its bytes can hold: that says nothing.
 */
static uint64_t gzip_says(int fd, uint64_t in_bytes)
{
	uint8_t size[4];

	if (in_bytes <= sizeof(size) ||
	    pread(fd, size, sizeof(size), (off_t)(in_bytes - sizeof(size))) != sizeof(size) ||
	    load32(size) / DEFLATE_MOST > in_bytes)
		return 0;
	return load32(size);
}

/* The first frame of Zstandard may say its size. */
static uint64_t zstd_says(int fd)
{
	uint8_t head[18]; /* the longest there is */
	ssize_t n = pread(fd, head, sizeof(head), 0);
	unsigned long long bytes = n > 0 ? ZSTD_getFrameContentSize(head, (size_t)n) : 0;

	return bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR ? 0 : bytes;
}

/* What the records of an index say, which begins with their count; 0 if it is none. */
static uint64_t index_says(const uint8_t *at, const uint8_t *end)
{
	uint64_t count, packed, bytes, sum = 0;

	if (at == end || *at++ || !xz_number(&at, end, &count))
		return 0;
	for (; count; count--) {
		if (!xz_number(&at, end, &packed) || !xz_number(&at, end, &bytes) || bytes > UINT64_MAX / 2 - sum)
			return 0;
		sum += bytes;
	}
	return sum;
}

#define XZ_FOOTER_BYTES 12
#define XZ_INDEX_MOST	(UINT32_C(1) << 24)

/* The last stream of an xz ends with an index of its blocks. */
static uint64_t xz_says(int fd, uint64_t in_bytes)
{
	uint8_t footer[XZ_FOOTER_BYTES], *index = NULL;
	uint64_t index_bytes, says = 0;

	if (in_bytes < sizeof(footer) ||
	    pread(fd, footer, sizeof(footer), (off_t)(in_bytes - sizeof(footer))) != sizeof(footer) ||
	    memcmp(footer + 10, "YZ", 2) != 0)
		return 0;
	index_bytes = (load32(footer + 4) + UINT64_C(1)) * 4;
	if (index_bytes <= XZ_INDEX_MOST && index_bytes <= in_bytes - sizeof(footer))
		index = malloc((size_t)index_bytes);
	if (index && pread(fd, index, (size_t)index_bytes, (off_t)(in_bytes - sizeof(footer) - index_bytes)) ==
			     (ssize_t)index_bytes)
		says = index_says(index, index + index_bytes);
	free(index);
	return says;
}

static bool pread_all(void *context, uint64_t offset, void *out, size_t bytes)
{
	return pread(*(const int *)context, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* By its directory; 0 if that cannot be read, which is found when it is unpacked. */
static uint64_t zip_says(int fd, uint64_t in_bytes)
{
	char why[ZIP_WHY_BYTES];
	struct zip z = {.bytes = in_bytes, .read = pread_all, .context = &fd, .why = why};
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status = ZIP_BAD;
	uint64_t sum = 0;

	while (m && (status = zip_next(&z, m)) == ZIP_MEMBER)
		sum += m->bytes > UNPACK_MEMBER_BYTES_MAX ? 0 : m->bytes;
	free(m);
	return status == ZIP_END ? sum : 0;
}

uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes)
{
	uint64_t says = 0, packed = in_bytes - in_bytes / 64; /* what cannot be packed grows by less */

	if (!strcmp(how, "gzip"))
		says = gzip_says(in_fd, in_bytes);
	else if (!strcmp(how, "zstd"))
		says = zstd_says(in_fd);
	else if (!strcmp(how, "xz"))
		says = xz_says(in_fd, in_bytes);
	else
		return !strcmp(how, "zip") ? zip_says(in_fd, in_bytes) : 0;
	packed = packed > SLACK_BYTES ? packed - SLACK_BYTES : 0;
	return says > packed ? says : packed;
}
