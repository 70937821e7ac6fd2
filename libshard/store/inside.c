/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.c - what a shard holds besides records: keys, statistics, inputs left out, provenance
 *
 * Each table's hash is checked before its first use, and what it says is checked again where it is used.
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/disk/schema.h"
#include "libshard/store/reader.h"

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
	for (uint32_t g = 0; g < p->schema.group_count; g++)
		out->unit_count += reader_unit_count(r, g);
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
	int rc = s && r->check != SHARD_CHECK_NEVER ? reader_check_section(r, s, err) : SHARD_OK;

	*out = s;
	return rc;
}

static int fail_index(const struct shard_reader *r, const char *what, uint64_t idx, uint64_t count, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_ARGUMENT, "%s: %s %" PRIu64 "; there are %" PRIu64, show(&s, r->path), what, idx, count);
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
	int rc;

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
	job.koff = reader_section_bytes(r, koff);
	job.kblb_bytes = kblb->bytes;
	rc = reader_guarded(r, key_work, &job, err);
	if (!rc && job.rc) {
		error_prefix(err, r->path);
		rc = job.rc;
	}
	if (rc)
		return rc;
	*out = (struct shard_view){reader_section_bytes(r, kblb) + job.offset, job.bytes};
	return SHARD_OK;
}

int shard_reader_provenance(struct shard_reader *r, struct shard_view *out, struct shard_error *err)
{
	const struct section *s;
	int rc = open_section(r, SHARD_SECTION_PROV, &s, err);

	if (rc)
		return rc;
	*out = s ? (struct shard_view){reader_section_bytes(r, s), (size_t)s->bytes} : (struct shard_view){NULL, 0};
	return SHARD_OK;
}

int shard_reader_miss(struct shard_reader *r, uint64_t idx, struct shard_miss *out, struct shard_error *err)
{
	const struct section *s;
	const uint8_t *m;
	int rc = open_section(r, SHARD_SECTION_MISS, &s, err);

	if (rc)
		return rc;
	if (!s || idx >= s->items)
		return fail_index(r, "left-out input", idx, s ? s->items : 0, err);
	m = reader_section_bytes(r, s) + 16 * idx;
	*out = (struct shard_miss){load64(m), load32(m + 8), load32(m + 12)};
	return SHARD_OK;
}

/* The items of one block of STAT; NULL and OK if it is not there. */
static int open_stat(struct shard_reader *r, uint32_t kind, uint32_t field, const uint8_t **items, uint64_t *count,
		     struct shard_error *err)
{
	const struct section *s;
	int rc = open_section(r, SHARD_SECTION_STAT, &s, err);

	*items = !rc && s ? stat_find(reader_section_bytes(r, s), s->bytes, kind, field, count) : NULL;
	return rc;
}

int shard_reader_moments(struct shard_reader *r, uint32_t field, uint32_t channel, struct shard_moments *out,
			 struct shard_error *err)
{
	const uint8_t *items;
	uint64_t count = 0;
	int rc = open_stat(r, SHARD_STAT_MOMENTS, field, &items, &count, err);

	if (rc)
		return rc;
	if (!items || channel >= count)
		return SHARD_END;
	items += sizeof(struct disk_moments) * channel;
	*out = (struct shard_moments){load64(items), load64(items + 8), load64(items + 16), 0};
	return SHARD_OK;
}

int shard_reader_class_records(struct shard_reader *r, uint32_t field, uint64_t class_idx, uint64_t *out, struct shard_error *err)
{
	const uint8_t *items;
	uint64_t count = 0;
	int rc = open_stat(r, SHARD_STAT_CLASSES, field, &items, &count, err);

	if (rc)
		return rc;
	if (!items || class_idx >= count)
		return SHARD_END;
	*out = load64(items + 8 * class_idx);
	return SHARD_OK;
}

int shard_reader_section(const struct shard_reader *r, uint32_t idx, struct shard_section *out, struct shard_error *err)
{
	const struct section *s = &r->pages->section[idx < SHARD_SECTIONS_MAX ? idx : 0];

	if (idx >= r->pages->section_count)
		return fail_index(r, "section", idx, r->pages->section_count, err);
	*out = (struct shard_section){s->offset, s->bytes, s->items, s->type, s->group, {0}};
	memcpy(out->hash, s->hash, sizeof(out->hash));
	return SHARD_OK;
}
