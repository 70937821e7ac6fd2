/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_tables.c - what a shard holds besides records: keys, statistics, inputs left out, provenance
 *
 * Each table's hash is checked before its first use, and what it says is checked again where it is
 * used.
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"
#include "shard_transform.h"

const struct shard_schema *shard_reader_schema(const struct shard_reader *r)
{
	return r->schema;
}

void shard_reader_info(const struct shard_reader *r, struct shard_info *out)
{
	const struct pages *p = r->pages;
	const struct section *miss = pages_find(p, SHARD_SECTION_MISS, 0), *keys = pages_find(p, SHARD_SECTION_KBLB, 0);

	memset(out, 0, sizeof(*out));
	out->file_bytes = p->file_bytes;
	out->record_count = p->record_count;
	out->planned_records = p->planned_records;
	out->plan_shard = p->plan_shard;
	for (uint32_t g = 0; g < r->schema->group_count; g++)
		out->unit_count += ceil_div(p->record_count, r->schema->group[g].unit_records);
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

/* The section, its hash checked unless that was waived; NULL and OK if there is none. */
static int open_section(struct shard_reader *r, uint32_t type, const struct section **out, struct shard_error *err)
{
	const struct section *s = pages_find(r->pages, type, 0);
	int rc = reader_need_map(r, err);

	if (rc)
		return rc;
	rc = s && r->check != SHARD_CHECK_NEVER ? reader_check_section(r, s, err) : SHARD_OK;

	*out = s;
	return rc;
}

static int fail_index(const struct shard_reader *r, const char *what, uint64_t idx, uint64_t count,
		      struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_ARGUMENT, "%s: there is no %s %" PRIu64 "; the shard has %" PRIu64,
			 show(&s, r->path), what, idx, count);
}

struct key_job {
	const uint8_t *koff;
	uint64_t idx, kblb_bytes, offset;
	uint32_t bytes;
	int rc;
	struct shard_error *err;
};

static void key_work(void *context)
{
	struct key_job *j = context;

	j->rc = key_find(j->koff, j->idx, j->kblb_bytes, &j->offset, &j->bytes, j->err);
}

int shard_reader_key(struct shard_reader *r, uint64_t idx, struct shard_view *out, struct shard_error *err)
{
	const struct section *koff, *kblb;
	struct key_job job = {.idx = idx, .err = err};
	int rc = reader_need_map(r, err);

	if (rc)
		return rc;
	if (idx >= r->pages->record_count)
		return fail_index(r, "record", idx, r->pages->record_count, err);
	rc = open_section(r, SHARD_SECTION_KOFF, &koff, err);
	if (!rc)
		rc = open_section(r, SHARD_SECTION_KBLB, &kblb, err);
	if (rc)
		return rc;
	if (!koff || !kblb) {
		*out = (struct shard_view){NULL, 0};
		return SHARD_OK;
	}
	job.koff = r->map + koff->offset;
	job.kblb_bytes = kblb->bytes;
	rc = reader_guarded_brief(r, key_work, &job, err);
	if (!rc && job.rc) {
		error_prefix(err, r->path);
		rc = job.rc;
	}
	if (rc)
		return rc;
	*out = (struct shard_view){r->map + kblb->offset + job.offset, job.bytes};
	return SHARD_OK;
}

int shard_reader_provenance(struct shard_reader *r, struct shard_view *out, struct shard_error *err)
{
	const struct section *s;
	int rc = open_section(r, SHARD_SECTION_PROV, &s, err);

	if (rc)
		return rc;
	*out = s ? (struct shard_view){r->map + s->offset, (size_t)s->bytes} : (struct shard_view){NULL, 0};
	return SHARD_OK;
}

struct pixels_job {
	struct shard_view text;
	size_t name_bytes; /* of all of the name, which may be cut here */
	char name[64];
	bool found;
};

static void pixels_work(void *context)
{
	static const char key[] = "pixels ";
	const size_t key_bytes = sizeof(key) - 1;
	struct pixels_job *j = context;
	const char *at = j->text.data, *end = at + j->text.bytes, *next;

	for (; at < end && !j->found; at = next) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((lf ? lf : end) - at);

		next = lf ? lf + 1 : end;
		j->found = bytes >= key_bytes && !memcmp(at, key, key_bytes);
		if (!j->found)
			continue;
		j->name_bytes = bytes - key_bytes;
		memcpy(j->name, at + key_bytes, min_u64(j->name_bytes, sizeof(j->name) - 1));
	}
}

int shard_reader_pixels(struct shard_reader *r, uint32_t *pixels, struct shard_error *err)
{
	struct pixels_job job = {.found = false};
	struct shown shown;
	int rc = shard_reader_provenance(r, &job.text, err);

	if (!rc && job.text.bytes)
		rc = reader_guarded_brief(r, pixels_work, &job, err);
	if (rc)
		return rc;
	if (!job.found)
		*pixels = SHARD_PIXELS_ROWS_FIRST;
	else if (job.name_bytes >= sizeof(job.name) || !name_find(SHARD_NAME_PIXELS, job.name, job.name_bytes, pixels))
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "the dataset's recipe says pixels %s, which this release does not know; name one in "
				 "the options",
				 show(&shown, job.name));
	return SHARD_OK;
}

int shard_reader_miss(struct shard_reader *r, uint64_t idx, struct shard_miss *out, struct shard_error *err)
{
	const struct section *s;
	uint8_t bytes[sizeof(struct disk_miss)];
	int rc = open_section(r, SHARD_SECTION_MISS, &s, err);

	if (rc)
		return rc;
	if (!s || idx >= s->items)
		return fail_index(r, "left-out input", idx, s ? s->items : 0, err);
	rc = reader_copy(r, bytes, r->map + s->offset + sizeof(bytes) * idx, sizeof(bytes), err);
	if (!rc)
		*out = (struct shard_miss){load64(bytes), load32(bytes + 8), load32(bytes + 12)};
	return rc;
}

/* ---- statistics, of which the reader keeps a copy ---- */

/* The most that statistics of such records can take: moments of images, and counts of classes. */
static uint64_t stat_bytes_max(const struct shard_schema *s)
{
	uint64_t bytes = 0;

	for (uint32_t f = 0; f < s->field_count; f++)
		bytes += 2 * sizeof(struct disk_stat_block) + 8 * SHARD_CLASSES_MAX +
			 sizeof(struct disk_moments) * schema_channels(&s->field[f]);
	return bytes;
}

int reader_need_stat(struct shard_reader *r, int open_fd, struct shard_error *err)
{
	const struct section *s = pages_find(r->pages, SHARD_SECTION_STAT, 0);
	uint64_t most, file_bytes;
	uint8_t *bytes, *none = NULL;
	int fd = -1, rc = SHARD_OK;

	if (!s || atomic_load_explicit(&r->stat_bytes, memory_order_acquire))
		return SHARD_OK;
	most = stat_bytes_max(r->schema);
	if (s->bytes > most) {
		rc = invariant_broken(err, SHARD_E_CORRUPT, "I53",
				      "STAT has %" PRIu64 " bytes, more than such records can have: %" PRIu64, s->bytes,
				      most);
		if (rc) {
			error_prefix(err, r->path);
			return rc;
		}
	}
	bytes = mem_array((size_t)s->bytes + 1, 1);
	if (!bytes)
		return error_set(err, SHARD_E_MEMORY, "no memory for statistics of %" PRIu64 " bytes", s->bytes);
	if (r->map) {
		rc = reader_copy(r, bytes, r->map + s->offset, s->bytes, err);
	} else { /* the hash is that of the pages, so another file is noticed */
		rc = open_fd < 0 ? file_open(r->path, &fd, &file_bytes, NULL, err) : SHARD_OK;
		if (!rc)
			rc = file_read_at(open_fd < 0 ? fd : open_fd, bytes, s->bytes, s->offset, r->path, err);
		file_close(fd);
	}
	if (!rc) {
		struct hash128 hash = checksum128(bytes, s->bytes);

		rc = reader_check_section_hash(s, hash.b, err);
		if (!rc)
			rc = stat_check(r->schema, bytes, s->bytes, s->items, r->pages->record_count, err);
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

/* END if there is none. */
static int stat_item(struct shard_reader *r, uint32_t kind, uint32_t field, uint64_t idx, const uint8_t **out,
		     struct shard_error *err)
{
	int rc = reader_need_stat(r, -1, err);
	const uint8_t *items;
	uint64_t count;

	if (rc)
		return rc;
	items = reader_stat(r, kind, field, &count);
	if (idx >= count)
		return SHARD_END;
	*out = items + idx * (kind == SHARD_STAT_MOMENTS ? sizeof(struct disk_moments) : 8);
	return SHARD_OK;
}

int shard_reader_moments(struct shard_reader *r, uint32_t field, uint32_t channel, struct shard_moments *out,
			 struct shard_error *err)
{
	const uint8_t *item;
	int rc = stat_item(r, SHARD_STAT_MOMENTS, field, channel, &item, err);

	if (!rc)
		*out = (struct shard_moments){load64(item), load64(item + 8), load64(item + 16), 0};
	return rc;
}

int shard_reader_class_records(struct shard_reader *r, uint32_t field, uint64_t class_idx, uint64_t *out,
			       struct shard_error *err)
{
	const uint8_t *item;
	int rc = stat_item(r, SHARD_STAT_CLASSES, field, class_idx, &item, err);

	if (!rc)
		*out = load64(item);
	return rc;
}

int shard_reader_section(const struct shard_reader *r, uint32_t idx, struct shard_section *out, struct shard_error *err)
{
	const struct section *s = &r->pages->section[idx < SHARD_SECTIONS_MAX ? idx : 0];
	int rc = reader_need_map(r, err);

	if (rc)
		return rc;
	if (idx >= r->pages->section_count)
		return fail_index(r, "section", idx, r->pages->section_count, err);
	*out = (struct shard_section){s->offset, s->bytes, s->items, s->type, s->group, {0}};
	memcpy(out->hash, s->hash, sizeof(out->hash));
	return SHARD_OK;
}
