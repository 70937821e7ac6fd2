/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_text.c - a selection as bytes: what is hashed, and what a file holds
 *
 *   libshard selection 1
 *   dataset 66e2...
 *   records 1281167
 *   selected 128117
 *   gaps 131072
 *   (so many bytes)
 *   sha256 8d1f...
 *
 * A gap is the number of records that are left out before a selected one, as a LEB128 number: seven
 * bits in a byte, the low ones first, and bit 7 set in each byte but the last.  The last line is
 * the SHA-256 of all bytes before it, and is the selection's digest.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "shard_pack.h"
#include "shard_select.h"

#define GAP_BYTES 10u /* of a LEB128 number of 64 bits */

/* ---- writing ---- */

static size_t put_gap(uint8_t *to, uint64_t gap)
{
	size_t n = 0;

	for (; gap >= 128; gap >>= 7)
		to[n++] = (uint8_t)(gap | 128);
	to[n++] = (uint8_t)gap;
	return n;
}

/* Encode the gaps from the i-th selected record on, as many as fit.  Returns how many bytes. */
static size_t put_gaps(const struct shard_selection *s, uint64_t *i, uint64_t *next, uint8_t *to, size_t room)
{
	size_t used = 0;

	for (; *i < s->count && room - used >= GAP_BYTES; (*i)++) {
		uint64_t record = selection_following(s, *i, *next);

		used += put_gap(to + used, record - *next);
		*next = record + 1;
	}
	return used;
}

static uint64_t gap_bytes(const struct shard_selection *s)
{
	uint8_t buffer[4096];
	uint64_t i = 0, next = 0, bytes = 0;

	while (i < s->count)
		bytes += put_gaps(s, &i, &next, buffer, sizeof(buffer));
	return bytes;
}

int selection_put_head(const struct shard_selection *s, uint64_t gaps, char head[SELECTION_HEAD_BYTES])
{
	return snprintf(head, SELECTION_HEAD_BYTES,
			"libshard selection 1\ndataset %s\nrecords %" PRIu64 "\nselected %" PRIu64 "\ngaps %" PRIu64
			"\n",
			s->dataset_id, s->of_count, s->count, gaps);
}

/* Compute the digest. */
static void sign(struct shard_selection *s)
{
	uint8_t buffer[4096], digest[SHA256_BYTES];
	uint64_t i = 0, next = 0;
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, buffer, (size_t)selection_put_head(s, gap_bytes(s), (char *)buffer));
	while (i < s->count)
		sha256_update(&sha, buffer, put_gaps(s, &i, &next, buffer, sizeof(buffer)));
	sha256_update(&sha, "\n", 1);
	sha256_final(&sha, digest);
	hex_from_bytes(s->digest, digest, sizeof(digest));
}

uint64_t selection_beginning(const struct shard_selection *s, const char id[65], uint64_t of_count, char digest[65])
{
	struct shard_selection part = *s; /* signing asks for its first records only */

	part.of_count = of_count;
	part.count = selection_below(s, of_count);
	memcpy(part.dataset_id, id, sizeof(part.dataset_id));
	sign(&part);
	memcpy(digest, part.digest, sizeof(part.digest));
	return part.count;
}

int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err)
{
	int rc = selection_form(out, ds, bits, what, err);

	if (!rc)
		sign(*out);
	return rc;
}

int shard_selection_write(const struct shard_selection *s, const char *path, struct shard_error *err)
{
	uint64_t gaps = gap_bytes(s), i = 0, next = 0;
	size_t room = SELECTION_HEAD_BYTES + (size_t)gaps + 1 + SELECTION_TAIL_BYTES + 1, used;
	char *text = mem_alloc(room);
	int rc;

	if (!text)
		return error_set(err, SHARD_E_MEMORY, "no memory for a file of %zu bytes", room);
	used = (size_t)selection_put_head(s, gaps, text);
	used += put_gaps(s, &i, &next, (uint8_t *)text + used, room - used); /* all: the tail is longer than a gap */
	used += (size_t)snprintf(text + used, room - used, "\nsha256 %s\n", s->digest);
	rc = shard_publish(path, text, used, 0, err);
	mem_free(text);
	return rc;
}
