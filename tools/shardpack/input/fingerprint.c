/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.c - what tells two versions of a file apart without reading all of a large one
 */
#include "tools/shardpack/input/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/files.h"

#define ALL_BYTES	(UINT64_C(1) << 30)
#define WHOLE_BYTES_MIN (UINT64_C(1) << 16)
#define WHOLE_BYTES_MAX (UINT64_C(1) << 24)
#define ALL_PAGES	UINT64_C(65536)
#define PAGES_MIN	UINT64_C(16)
#define PAGES_MAX	UINT64_C(1024)

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

struct fingerprint_rule fingerprint_rule(uint64_t file_count)
{
	uint64_t n = file_count ? file_count : 1;

	return (struct fingerprint_rule){.whole_bytes = between(ALL_BYTES / n, WHOLE_BYTES_MIN, WHOLE_BYTES_MAX),
					 .page_count = between(ALL_PAGES / n, PAGES_MIN, PAGES_MAX)};
}

/*
 * The file is divided into equal parts, one for each page.  The place of a page in its part is
 * pseudo-random, so that pages do not always meet the same part of a record.
 */
uint64_t fingerprint_page(const struct fingerprint_rule *rule, uint64_t file_bytes, uint64_t i)
{
	uint64_t stretch = file_bytes / rule->page_count, z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (!i)
		return 0;
	if (i == rule->page_count - 1)
		return file_bytes - FINGERPRINT_PAGE_BYTES;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return i * stretch + z % (stretch - FINGERPRINT_PAGE_BYTES + 1);
}

static bool read_pages(int fd, uint64_t bytes, const struct fingerprint_rule *rule, uint8_t *out)
{
	/* Ask for all of them at once, so that the disk has many to choose from. */
	for (uint64_t i = 0; i < rule->page_count; i++)
		posix_fadvise(fd, (off_t)fingerprint_page(rule, bytes, i), FINGERPRINT_PAGE_BYTES, POSIX_FADV_WILLNEED);
	for (uint64_t i = 0; i < rule->page_count; i++)
		if (files_read_at(fd, out + i * FINGERPRINT_PAGE_BYTES, FINGERPRINT_PAGE_BYTES,
				  fingerprint_page(rule, bytes, i)) < FINGERPRINT_PAGE_BYTES)
			return false;
	return true;
}

bool fingerprint_take(int fd, uint64_t bytes, const struct fingerprint_rule *rule, uint8_t out[FINGERPRINT_BYTES])
{
	bool whole = bytes <= rule->whole_bytes, ok;
	uint64_t room = whole ? bytes : rule->page_count * FINGERPRINT_PAGE_BYTES;
	uint8_t *data = malloc(room ? (size_t)room : 1), sha256[32];

	if (!data) {
		errno = ENOMEM;
		return false;
	}
	ok = whole ? files_read_at(fd, data, bytes, 0) == bytes : read_pages(fd, bytes, rule, data);
	if (ok) {
		shard_sha256(data, (size_t)room, sha256);
		memcpy(out, sha256, FINGERPRINT_BYTES);
	}
	free(data);
	return ok;
}
