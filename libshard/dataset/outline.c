/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline.c - what a shard says of itself, without its records: read, and not mapped
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

int outline_read_pages(struct pages *pages, int fd, uint64_t file_bytes, const char *path, struct shard_error *err)
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

void outline_info(const struct pages *p, const struct shard_schema *schema, struct shard_info *out)
{
	const struct section *miss = pages_find(p, SHARD_SECTION_MISS, 0), *keys = pages_find(p, SHARD_SECTION_KBLB, 0);

	memset(out, 0, sizeof(*out));
	out->file_bytes = p->file_bytes;
	out->record_count = p->record_count;
	out->planned_records = p->planned_records;
	out->plan_shard = p->plan_shard;
	for (uint32_t g = 0; g < schema->group_count; g++)
		out->unit_count += ceil_div(p->record_count, schema->group[g].unit_records);
	out->miss_count = miss ? miss->items : 0;
	out->key_count = keys ? keys->items : 0;
	out->version_major = p->major;
	out->version_minor = p->minor;
	out->section_count = p->section_count;
	out->section_align_log2 = p->section_align_log2;
	memcpy(out->plan_digest, p->plan_digest, sizeof(out->plan_digest));
	memcpy(out->root, p->root, sizeof(out->root));
	memcpy(out->header_hash, p->header_hash, sizeof(out->header_hash));
}

int outline_check_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err)
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

static int check_stat_bytes(const struct shard_outline *o, struct shard_error *err)
{
	MUST("I53", o->stat->bytes <= stat_bytes_max(&o->pages.schema),
	     "STAT has %" PRIu64 " bytes, more than such records can have: %" PRIu64, o->stat->bytes,
	     stat_bytes_max(&o->pages.schema));
	return SHARD_OK;
}

static int check_stat(const struct shard_outline *o, struct shard_error *err)
{
	const struct section *s = o->stat;
	struct hash128 hash = checksum128(o->stat_bytes, s->bytes);
	int rc = outline_check_hash(s, hash.b, err);

	return rc ? rc : stat_check(&o->pages.schema, o->stat_bytes, s->bytes, s->items, o->pages.record_count, err);
}

/* stat_bytes is NULL if this fails. */
static int read_stat(struct shard_outline *o, int fd, struct shard_error *err)
{
	int rc = check_stat_bytes(o, err);

	if (rc) {
		error_prefix(err, o->path);
		return rc;
	}
	o->stat_bytes = mem_array((size_t)o->stat->bytes + 1, 1);
	if (!o->stat_bytes)
		return error_set(err, SHARD_E_MEMORY, "no memory for statistics of %" PRIu64 " bytes", o->stat->bytes);
	rc = file_read_at(fd, o->stat_bytes, o->stat->bytes, o->stat->offset, o->path, err);
	if (!rc) {
		rc = check_stat(o, err);
		if (rc)
			error_prefix(err, o->path);
	}
	if (rc) {
		mem_free(o->stat_bytes);
		o->stat_bytes = NULL;
	}
	return rc;
}

int outline_need_stat(struct shard_outline *o, struct shard_error *err)
{
	uint64_t file_bytes;
	int fd = -1, rc;

	if (!o->stat || o->stat_bytes)
		return SHARD_OK;
	rc = file_open(o->path, &fd, &file_bytes, NULL, err);
	if (rc)
		return rc;
	rc = read_stat(o, fd, err); /* the hash is that of the pages, so another file is noticed */
	file_close(fd);
	return rc;
}

int shard_outline_open(struct shard_outline **out, const char *path, struct shard_error *err)
{
	struct shard_outline *o = mem_zalloc(sizeof(*o));
	int fd = -1, rc;

	if (o)
		o->path = mem_text(path);
	if (!o || !o->path)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the outline of a shard");
	else
		rc = file_open(path, &fd, &o->file_bytes, NULL, err);
	if (!rc)
		rc = outline_read_pages(&o->pages, fd, o->file_bytes, path, err);
	if (!rc)
		o->stat = pages_find(&o->pages, SHARD_SECTION_STAT, 0);
	if (!rc && o->stat && o->stat->bytes <= OUTLINE_STAT_BYTES)
		rc = read_stat(o, fd, err);
	file_close(fd);
	if (rc)
		shard_outline_close(o);
	else
		*out = o;
	return rc;
}

void shard_outline_close(struct shard_outline *o)
{
	if (!o)
		return;
	mem_free(o->stat_bytes);
	mem_free(o->path);
	mem_free(o);
}

void shard_outline_info(const struct shard_outline *o, struct shard_info *out)
{
	outline_info(&o->pages, &o->pages.schema, out);
}

const uint8_t *outline_stat(const struct shard_outline *o, uint32_t kind, uint32_t field, uint64_t *items)
{
	*items = 0;
	return o->stat_bytes ? stat_find(o->stat_bytes, o->stat->bytes, kind, field, items) : NULL;
}
