/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_pages.c - what a shard says of itself, without its records: read, and not mapped
 *
 * A dataset of a million shards is sealed by looking at each of them, and to map a file takes
 * longer than to read two pages of it.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

int reader_read_pages(struct pages *pages, int fd, uint64_t file_bytes, const char *path, struct shard_error *err)
{
	struct disk_header header;
	struct disk_footer footer;
	struct hash128 header_hash, footer_hash;
	int rc = pages_check_size(file_bytes, err);

	if (rc) {
		error_prefix(err, path);
		return rc;
	}
	rc = file_read_at(fd, &header, sizeof(header), 0, path, err);
	if (!rc)
		rc = file_read_at(fd, &footer, sizeof(footer), file_bytes - sizeof(footer), path, err);
	if (rc)
		return rc;
	header_hash = checksum128(&header, sizeof(header) - sizeof(header.hash));
	footer_hash = checksum128(&footer, sizeof(footer) - sizeof(footer.hash));
	rc = pages_decode(pages, &header, header_hash.b, &footer, footer_hash.b, file_bytes, err);
	if (rc)
		error_prefix(err, path);
	return rc;
}

int reader_check_section_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err)
{
	MUST("I43", !memcmp(hash, s->hash, sizeof(s->hash)),
	     "the hash of section %s of group %u (%" PRIu64 " bytes at %" PRIu64 ") is wrong: its bytes are damaged",
	     section_name(s->type), s->group, s->bytes, s->offset);
	return SHARD_OK;
}

/* The most that statistics of such records can take: moments of images, and counts of classes. */
static uint64_t stat_bytes_max(const struct shard_schema *s)
{
	uint64_t bytes = 0;

	for (uint32_t f = 0; f < s->field_count; f++)
		bytes += 2 * sizeof(struct disk_stat_block) + 8 * SHARD_CLASSES_MAX +
			 sizeof(struct disk_moments) * schema_channels(&s->field[f]);
	return bytes;
}

static int check_stat_bytes(const struct shard_reader *r, const struct section *s, struct shard_error *err)
{
	MUST("I53", s->bytes <= stat_bytes_max(r->schema),
	     "STAT has %" PRIu64 " bytes, more than such records can have: %" PRIu64, s->bytes,
	     stat_bytes_max(r->schema));
	return SHARD_OK;
}

static int check_stat(const struct shard_reader *r, const struct section *s, const uint8_t *bytes,
		      struct shard_error *err)
{
	struct hash128 hash = checksum128(bytes, s->bytes);
	int rc = reader_check_section_hash(s, hash.b, err);

	return rc ? rc : stat_check(r->schema, bytes, s->bytes, s->items, r->pages->record_count, err);
}

struct copy_job {
	uint8_t *to;
	const uint8_t *from;
	size_t bytes;
};

static void copy_work(void *context)
{
	const struct copy_job *j = context;

	memcpy(j->to, j->from, j->bytes);
}

/* From the map, if there is one.  The hash is that of the pages, so another file is noticed. */
static int get_stat(const struct shard_reader *r, const struct section *s, int open_fd, uint8_t *to,
		    struct shard_error *err)
{
	struct copy_job copy = {to, r->map ? r->map + s->offset : NULL, s->bytes};
	uint64_t file_bytes;
	int fd = -1, rc;

	if (r->map)
		return reader_guarded(r, copy_work, &copy, err);
	rc = open_fd < 0 ? file_open(r->path, &fd, &file_bytes, NULL, err) : SHARD_OK;
	if (!rc)
		rc = file_read_at(open_fd < 0 ? fd : open_fd, to, s->bytes, s->offset, r->path, err);
	file_close(fd);
	return rc;
}

int reader_need_stat(struct shard_reader *r, int fd, struct shard_error *err)
{
	const struct section *s = pages_find(r->pages, SHARD_SECTION_STAT, 0);
	uint8_t *bytes, *none = NULL;
	int rc;

	if (!s || atomic_load_explicit(&r->stat_bytes, memory_order_acquire))
		return SHARD_OK;
	rc = check_stat_bytes(r, s, err);
	if (rc) {
		error_prefix(err, r->path);
		return rc;
	}
	bytes = mem_array((size_t)s->bytes + 1, 1);
	if (!bytes)
		return error_set(err, SHARD_E_MEMORY, "no memory for statistics of %" PRIu64 " bytes", s->bytes);
	rc = get_stat(r, s, fd, bytes, err);
	if (!rc) {
		rc = check_stat(r, s, bytes, err);
		if (rc)
			error_prefix(err, r->path);
	}
	if (rc || !atomic_compare_exchange_strong(&r->stat_bytes, &none, bytes))
		mem_free(bytes); /* wrong, or another thread was first */
	return rc;
}

const uint8_t *reader_stat(const struct shard_reader *r, uint32_t kind, uint32_t field, uint64_t *items)
{
	const struct section *s = pages_find(r->pages, SHARD_SECTION_STAT, 0);
	const uint8_t *bytes = atomic_load_explicit(&r->stat_bytes, memory_order_acquire);

	*items = 0;
	return bytes ? stat_find(bytes, s->bytes, kind, field, items) : NULL;
}

int reader_need_map(const struct shard_reader *r, struct shard_error *err)
{
	struct shown s;

	return r->map ? SHARD_OK
		      : error_set(err, SHARD_E_ARGUMENT,
				  "%s: was opened with pages_only, which gives its schema, info and statistics only",
				  show(&s, r->path));
}
