/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_file.c - a manifest read from its file, with no more memory than its lines deserve
 *
 * The size of a file is as little to be trusted as the numbers in it: a hole of many GiB costs its
 * maker nothing.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define HEAD_BYTES  16u	 /* more than M1 looks at, */
#define ENDS_BYTES  128u /* and with these more than M2 does */

struct reading {
	const char *path;
	int fd;
	uint64_t file_bytes, at; /* of the file, and how far it was read */
	struct manifest_end end;
	struct checksum_stream hash;
	char *text, *rest; /* rest: a piece that is not kept */
	size_t room, used;
	size_t line_at; /* where the last line in `text` begins */
};

/* M1 and M2, of the first and the last bytes side by side: the rules look at nothing between. */
static int find_end(struct reading *r, struct shard_error *err)
{
	char ends[ENDS_BYTES];
	size_t head = r->file_bytes <= ENDS_BYTES ? (size_t)r->file_bytes : HEAD_BYTES,
	       tail = r->file_bytes <= ENDS_BYTES ? 0 : ENDS_BYTES - HEAD_BYTES;
	int rc = file_read_at(r->fd, ends, head, 0, r->path, err);

	if (!rc && tail)
		rc = file_read_at(r->fd, ends + head, tail, r->file_bytes - tail, r->path, err);
	if (rc)
		return rc;
	rc = manifest_find_end(ends, head + tail, &r->end, err);
	r->end.end_at += (size_t)(r->file_bytes - head - tail);
	r->end.hash_at += (size_t)(r->file_bytes - head - tail);
	if (rc)
		error_prefix(err, r->path);
	return rc;
}

/* Has a line been read that is longer than M5 allows?  Then the text ends in it. */
static bool has_long_line(struct reading *r)
{
	for (;;) {
		size_t left = r->used - r->line_at;
		const char *lf = memchr(r->text + r->line_at, '\n', left);
		size_t bytes = lf ? (size_t)(lf - r->text) - r->line_at : left;

		if (bytes >= SHARD_MANIFEST_LINE_BYTES_MAX) {
			r->used = r->line_at + SHARD_MANIFEST_LINE_BYTES_MAX;
			return true;
		}
		if (!lf)
			return false;
		r->line_at += bytes + 1;
	}
}

static int read_piece(struct reading *r, char *to, size_t bytes, struct shard_error *err)
{
	int rc = file_read_at(r->fd, to, bytes, r->at, r->path, err);

	if (!rc && r->at < r->end.hash_at)
		checksum128_update(&r->hash, to, (size_t)min_u64(bytes, r->end.hash_at - r->at));
	r->at += bytes;
	return rc;
}

static int read_lines(struct reading *r, struct shard_error *err)
{
	struct shown s;
	int rc = SHARD_OK;

	while (!rc && r->at < r->file_bytes && !r->rest) {
		size_t bytes = (size_t)min_u64(PIECE_BYTES, r->file_bytes - r->at);

		if (r->used + bytes >= r->room) { /* about twice what was read, and no more than the file and a NUL */
			uint64_t room = min_u64(r->file_bytes + 1, 2 * (uint64_t)r->used + bytes + 1);
			char *text = mem_resize(r->text, (size_t)room, 1);

			if (!text)
				return error_set(err, SHARD_E_MEMORY, "%s: no memory after %zu bytes",
						 show(&s, r->path), r->used);
			r->text = text;
			r->room = (size_t)room;
		}
		rc = read_piece(r, r->text + r->used, bytes, err);
		r->used += rc ? 0 : bytes;
		if (rc || !has_long_line(r))
			continue;
		r->rest = mem_alloc(PIECE_BYTES);
		if (!r->rest)
			return error_set(err, SHARD_E_MEMORY, "%s: no memory", show(&s, r->path));
	}
	while (!rc && r->at < r->file_bytes)
		rc = read_piece(r, r->rest, (size_t)min_u64(PIECE_BYTES, r->file_bytes - r->at), err);
	return rc;
}

int manifest_file_read(struct manifest_file *out, const char *path, struct shard_error *err)
{
	struct reading r = {.path = path, .fd = -1};
	struct hash128 hash;
	struct shown s;
	int rc = file_open(path, &r.fd, &r.file_bytes, NULL, err);

	if (!rc && r.file_bytes > MANIFEST_FILE_BYTES_MAX)
		rc = error_set(err, SHARD_E_CORRUPT, "%s: has %" PRIu64 " bytes; must be at most %" PRIu64,
			       show(&s, path), r.file_bytes, MANIFEST_FILE_BYTES_MAX);
	if (!rc)
		rc = find_end(&r, err);
	checksum128_init(&r.hash);
	if (!rc)
		rc = read_lines(&r, err);
	if (!rc) {
		hash = checksum128_final(&r.hash);
		rc = manifest_check_hash(&r.end, hash.b, err);
		if (rc)
			error_prefix(err, path);
	}
	if (!rc) {
		r.text[r.used] = 0;
		if (r.rest)
			r.end.end_at = r.used;
		*out = (struct manifest_file){r.text, r.used, r.end};
		r.text = NULL; /* the caller's now */
	}
	mem_free(r.text);
	mem_free(r.rest);
	file_close(r.fd);
	return rc;
}

int manifest_file_check_id(const char *text, const struct manifest_end *end, uint8_t got[32], struct shard_error *err)
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, text, end->end_at);
	sha256_final(&sha, got);
	MUST("M15", !memcmp(got, end->sha256, SHA256_BYTES),
	     "the SHA-256 on the end line is not that of the text: the manifest is damaged");
	return SHARD_OK;
}

int manifest_by_name(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;

	while (*x == *y && *x > ' ')
		x++, y++;
	return (*x > ' ' ? *x : 0) - (*y > ' ' ? *y : 0);
}
