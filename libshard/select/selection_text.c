/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_text.c - see selection_text.h
 */
#include "libshard/select/selection_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/codec/sha256.h"
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

/* Hash the canonical text; copy it to `out` too, if that is not NULL. */
static void sign(struct shard_selection *s, uint64_t gaps, uint8_t *out)
{
	uint8_t buffer[4096], digest[SHA256_BYTES];
	uint64_t i = 0, next = 0;
	size_t n = (size_t)selection_put_head(s, gaps, (char *)buffer);
	struct sha256 sha;

	sha256_init(&sha);
	for (;;) {
		sha256_update(&sha, buffer, n);
		if (out) {
			memcpy(out, buffer, n);
			out += n;
		}
		if (i == s->count)
			break;
		n = put_gaps(s, &i, &next, buffer, sizeof(buffer) - 1);
		if (i == s->count)
			buffer[n++] = '\n';
	}
	sha256_final(&sha, digest);
	hex_from_bytes(s->digest, digest, sizeof(digest));
}

int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err)
{
	int rc = selection_form(out, ds, bits, what, err);

	if (!rc)
		sign(*out, gap_bytes(*out), NULL);
	return rc;
}

int shard_selection_write(const struct shard_selection *s, const char *path, struct shard_error *err)
{
	struct shard_selection again = *s;
	uint64_t gaps = gap_bytes(s);
	char head[SELECTION_HEAD_BYTES], tail[SELECTION_TAIL_BYTES + 1];
	size_t bytes = (size_t)selection_put_head(s, gaps, head) + (size_t)gaps + 1, tail_bytes;
	uint8_t *text = mem_alloc(bytes + SELECTION_TAIL_BYTES);
	int rc;

	if (!text)
		return error_set(err, SHARD_E_MEMORY, "no memory for a file of %zu bytes",
				 bytes + SELECTION_TAIL_BYTES);
	sign(&again, gaps, text);
	tail_bytes = (size_t)snprintf(tail, sizeof(tail), "sha256 %s\n", again.digest);
	memcpy(text + bytes, tail, tail_bytes);
	rc = shard_publish(path, text, bytes + tail_bytes, 0, err);
	mem_free(text);
	return rc;
}
