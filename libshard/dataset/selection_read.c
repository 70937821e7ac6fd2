/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_read.c - a selection from a file, which anybody may have damaged
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_select.h"

#define FILE_MAX (UINT64_C(1) << 40)

struct parsed {
	char dataset_id[65];
	uint64_t records, selected, gaps;
	int head_bytes;
};

/* The head of a file; false if it is none. */
static bool read_head(const char *text, struct parsed *p)
{
	char again[SELECTION_HEAD_BYTES];
	struct shard_selection s = {.count = 0};

	memset(p, 0, sizeof(*p));
	if (sscanf(text,
		   "libshard selection 1\ndataset %64[0-9a-f]\nrecords %" SCNu64 "\nselected %" SCNu64 "\ngaps %" SCNu64
		   "\n",
		   p->dataset_id, &p->records, &p->selected, &p->gaps) != 4)
		return false;
	memcpy(s.dataset_id, p->dataset_id, sizeof(s.dataset_id));
	s.of_count = p->records;
	s.count = p->selected;
	p->head_bytes = selection_put_head(&s, p->gaps, again); /* there is one way to write it */
	return strlen(p->dataset_id) == 64 && !strncmp(text, again, (size_t)p->head_bytes);
}

/* Set the bits that the gaps name.  Returns false if they are not what the head says. */
static bool set_bits(const struct parsed *p, const uint8_t *at, uint64_t *bits)
{
	const uint8_t *end = at + p->gaps;
	uint64_t next = 0, count = 0;

	while (at < end) {
		uint64_t gap = 0;
		unsigned shift = 0;
		uint8_t b;

		do {
			if (at == end || shift > 56)
				return false;
			b = *at++;
			gap |= (uint64_t)(b & 127) << shift;
			shift += 7;
		} while (b & 128);
		if (next >= p->records || gap >= p->records - next)
			return false;
		next += gap;
		selection_set_bit(bits, next);
		next++;
		count++;
	}
	return count == p->selected;
}

static int read_whole(const char *path, uint8_t **out, uint64_t *bytes, struct shard_error *err)
{
	uint64_t inode;
	struct shown s;
	int fd, rc = file_open(path, &fd, bytes, &inode, err);

	if (rc)
		return rc;
	*out = *bytes > FILE_MAX ? NULL : mem_alloc((size_t)*bytes + 1);
	if (!*out)
		rc = error_set(err, SHARD_E_MEMORY, "%s: no memory for its %" PRIu64 " bytes", show(&s, path), *bytes);
	if (!rc)
		rc = file_read_at(fd, *out, (size_t)*bytes, 0, path, err);
	file_close(fd);
	if (rc)
		mem_free(*out);
	else
		(*out)[*bytes] = '\0';
	return rc;
}

/* Is the last line the SHA-256 of what stands before it? */
static bool is_intact(const uint8_t *text, uint64_t bytes, const struct parsed *p)
{
	uint64_t signed_bytes = (uint64_t)p->head_bytes + p->gaps + 1;
	uint8_t digest[SHA256_BYTES];
	char hex[65], tail[SELECTION_TAIL_BYTES + 1];
	struct sha256 sha;

	if (p->gaps > bytes || signed_bytes + SELECTION_TAIL_BYTES != bytes)
		return false;
	sha256_init(&sha);
	sha256_update(&sha, text, (size_t)signed_bytes);
	sha256_final(&sha, digest);
	hex_from_bytes(hex, digest, sizeof(digest));
	snprintf(tail, sizeof(tail), "sha256 %s\n", hex);
	return !memcmp(text + signed_bytes, tail, SELECTION_TAIL_BYTES);
}

static int refuse(const char *path, const char *why, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_CORRUPT, "%s: %s", show(&s, path), why);
}

static int parse(struct shard_selection **out, const struct shard_dataset *ds, const char *path, const uint8_t *text,
		 uint64_t bytes, struct shard_error *err)
{
	struct parsed p;
	char id[65];
	uint64_t *bits;
	struct shown s;
	int rc;

	if (!read_head((const char *)text, &p))
		return refuse(path, "is no selection; make one with shardcat select", err);
	if (!is_intact(text, bytes, &p))
		return refuse(path, "is damaged: its last line is not the SHA-256 of what stands before it", err);
	dataset_id(ds, id);
	if (strcmp(id, p.dataset_id) || p.records != ds->m.record_count)
		return error_set(err, SHARD_E_MISMATCH,
				 "%s: selects records of dataset %.16s..., and this is dataset %.16s...",
				 show(&s, path), p.dataset_id, id);
	rc = selection_open_bits(ds, &bits, err);
	if (rc)
		return rc;
	if (!set_bits(&p, text + p.head_bytes, bits)) {
		mem_free(bits);
		return refuse(path, "is damaged: its gaps are not those of so many records", err);
	}
	rc = selection_make(out, ds, bits, path, err);
	if (rc || !memcmp((*out)->digest, text + bytes - 65, 64))
		return rc;
	shard_selection_close(*out); /* a selection has one digest, so it has one text */
	return refuse(path, "is a selection, but not written as libshard writes it", err);
}

int shard_selection_read(struct shard_selection **out, struct shard_dataset *ds, const char *path,
			 struct shard_error *err)
{
	uint8_t *text;
	uint64_t bytes;
	int rc = read_whole(path, &text, &bytes, err);

	if (rc)
		return rc;
	rc = parse(out, ds, path, text, bytes, err);
	mem_free(text);
	return rc;
}
