/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - records to units, units to a file, and the file to a published shard
 *
 * The first group streams to the file; the others, and all tables, are spooled until
 * shard_writer_finish() lays them behind it, each at its aligned place, and then the footer.  Each
 * byte is hashed (XXH3) before it is handed to the kernel, so what a reader compares with is what
 * the caller gave.  The complete file is made durable, read back and verified from the disk, and
 * gets its name last.
 */
#include "libshard/write/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/turns.h"
#include "libshard/base/utf8.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "shard_pack.h"

#define LARGE_SHARD_BYTES (64u << 20) /* from here on sections lie on 64 KiB; format/SHARD.md 2.9 */
#define STAT_CHANNELS_MAX 4096u

/* ---- output ---- */

/* A drain_write, in its thread. */
static int write_now(void *context, const void *data, size_t bytes, struct shard_error *err)
{
	struct shard_writer *w = context;

	/* With read-back, SHA-256 is made of what was read back and found right. */
	if (!w->read_back) {
		turns_take(w->turns);
		sha256_update(&w->sha256, data, bytes);
		turns_give(w->turns);
	}
	return file_temp_write(&w->temp, data, bytes, err);
}

/*
 * Hand over what the buffer holds, once the buffer before it is written.  The calling thread has a
 * turn, and needs none while it waits for the disk.
 */
static int put_buffer(struct shard_writer *w, struct shard_error *err)
{
	int rc;

	turns_give(w->turns);
	rc = drain_put(w->drain, w->out_used, err);
	turns_take(w->turns);
	w->out_used = 0;
	return rc;
}

/* Append to the file; every byte of it comes through here, in order. */
static int put_out(struct shard_writer *w, const void *data, size_t bytes, struct shard_error *err)
{
	const uint8_t *at = data;
	int rc = SHARD_OK;

	w->offset += bytes;
	while (!rc && bytes) {
		size_t n = min_u64(bytes, WRITER_OUT_BYTES - w->out_used);
		uint8_t *to = drain_buffer(w->drain) + w->out_used;

		if (at != to) /* a unit was filled there */
			memcpy(to, at, n);
		w->out_used += n;
		at += n;
		bytes -= n;
		if (w->out_used == WRITER_OUT_BYTES)
			rc = put_buffer(w, err);
	}
	return rc;
}

static int put_zeros(struct shard_writer *w, uint64_t bytes, struct shard_error *err)
{
	static const uint8_t zeros[SHARD_PAGE_BYTES];
	int rc = SHARD_OK;

	for (; !rc && bytes; bytes -= min_u64(bytes, sizeof(zeros)))
		rc = put_out(w, zeros, (size_t)min_u64(bytes, sizeof(zeros)), err);
	return rc;
}

/* ---- open ---- */

static int take_options(struct shard_writer *w, const struct shard_writer_options *o, struct shard_error *err)
{
	struct pages *p = &w->pages;
	uint64_t data_bytes = 0;

	if (!o->planned_records || o->planned_records > SHARD_RECORDS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "planned_records is %" PRIu64 "; must be 1 to %" PRIu64,
				 o->planned_records, SHARD_RECORDS_MAX);
	if (o->keys > 1 || o->skip_read_back > 1)
		return error_set(err, SHARD_E_ARGUMENT, "options: keys is %u, skip_read_back %u; must be at most 1",
				 o->keys, o->skip_read_back);
	if (o->class_count > SHARD_CLASSES_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: class_count is %" PRIu64 "; must be at most %" PRIu64,
				 o->class_count, SHARD_CLASSES_MAX);
	for (uint32_t g = 0; g < p->schema.group_count; g++)
		data_bytes += min_u64(o->planned_records, UINT64_C(1) << 32) * p->schema.group[g].stride;
	p->major = SHARD_FORMAT_MAJOR;
	p->minor = SHARD_FORMAT_MINOR;
	p->planned_records = o->planned_records;
	p->plan_shard = o->plan_shard;
	p->section_align_log2 = data_bytes >= LARGE_SHARD_BYTES ? 16 : 12;
	if (o->plan_digest)
		memcpy(p->plan_digest, o->plan_digest, sizeof(p->plan_digest));
	w->keys = o->keys;
	w->read_back = !o->skip_read_back;
	w->turns = o->turns;
	if (o->provenance && *o->provenance) {
		size_t bytes = strlen(o->provenance);

		if (bytes > SHARD_PROVENANCE_BYTES_MAX || utf8_bad_or_nul(o->provenance, bytes) != bytes)
			return error_set(err, SHARD_E_ARGUMENT,
					 "provenance has %zu bytes; must be UTF-8 of at most %" PRIu64, bytes,
					 SHARD_PROVENANCE_BYTES_MAX);
		w->provenance = mem_text(o->provenance);
		if (!w->provenance)
			return error_set(err, SHARD_E_MEMORY, "no memory for the provenance");
	}
	w->label = o->class_count ? shard_schema_label(&p->schema) : NULL;
	w->class_count = o->class_count;
	if (w->label)
		w->class_records = mem_array((size_t)w->class_count, sizeof(*w->class_records));
	if (w->label && !w->class_records)
		return error_set(err, SHARD_E_MEMORY, "no memory for the counts of %" PRIu64 " classes",
				 w->class_count);
	return SHARD_OK;
}

static int make_groups(struct shard_writer *w, struct shard_error *err)
{
	for (uint32_t i = 0; i < w->pages.schema.group_count; i++) {
		const struct shard_group *s = &w->pages.schema.group[i];
		struct writer_group *g = &w->group[i];
		uint64_t unit_bytes = s->stride * s->unit_records;

		record_holes(&w->pages.schema, i, &g->holes);
		if (unit_bytes > SIZE_MAX / 2)
			return error_set(err, SHARD_E_ARGUMENT,
					 "group %u: a unit of %" PRIu64 " bytes does not fit memory", i, unit_bytes);
		g->unit = mem_zalloc((size_t)unit_bytes);
		if (s->codec != SHARD_RAW) {
			g->packed = mem_alloc(lz4_bound((size_t)unit_bytes) + SHARD_CHUNK_ALIGN);
			g->scratch = mem_aligned(64, lz4_scratch_bytes() + 64);
		}
		if (!g->unit || (s->codec != SHARD_RAW && (!g->packed || !g->scratch)))
			return error_set(err, SHARD_E_MEMORY, "group %u: no memory for a unit of %" PRIu64 " bytes", i,
					 unit_bytes);
	}
	return SHARD_OK;
}

/* Header page, then the first group's place. */
static int start_file(struct shard_writer *w, const char *temp_id, struct shard_error *err)
{
	struct disk_header header;
	struct hash128 hash;
	uint64_t start = pages_section_start(w->pages.section_align_log2, SHARD_PAGE_BYTES);
	uint64_t bytes, total = start;
	int rc = file_temp_create_as(&w->temp, w->path, temp_id, err);

	if (rc)
		return rc;
	for (uint32_t g = 0; g < w->pages.schema.group_count; g++) {
		const struct shard_group *s = &w->pages.schema.group[g];

		if (!mul_fits(w->pages.planned_records, s->stride, &bytes) || bytes > SHARD_FILE_BYTES_MAX)
			return error_set(err, SHARD_E_ARGUMENT,
					 "%" PRIu64 " records of stride %" PRIu64
					 " do not fit a shard, which has at most %" PRIu64 " bytes; plan more shards",
					 w->pages.planned_records, s->stride, SHARD_FILE_BYTES_MAX);
		if (s->codec == SHARD_RAW)
			total += bytes;
	}
	file_temp_direct(&w->temp);
	rc = file_temp_reserve(&w->temp, total, err);
	if (rc)
		return rc;
	pages_encode_header(&header, &w->pages);
	hash = checksum128(&header, sizeof(header) - sizeof(header.hash));
	memcpy(header.hash, hash.b, sizeof(header.hash));
	memcpy(w->pages.header_hash, hash.b, sizeof(header.hash));
	rc = put_out(w, &header, sizeof(header), err);
	if (!rc)
		rc = put_zeros(w, start - SHARD_PAGE_BYTES, err);
	return rc;
}

int shard_writer_open(struct shard_writer **out, const char *path, const struct shard_schema *schema,
		      const struct shard_writer_options *opt, struct shard_error *err)
{
	struct shard_writer_options o;
	struct shard_writer *w;
	int rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	w = mem_zalloc(sizeof(*w));
	if (!w)
		return error_set(err, SHARD_E_MEMORY, "no memory for a writer");
	w->temp = FILE_TEMP_NONE;
	w->koff = w->kblb = w->miss = SPOOL_EMPTY;
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		w->group[g].data = w->group[g].leaf = w->group[g].index = SPOOL_EMPTY;
	sha256_init(&w->sha256);
	w->pages.schema = *schema;
	w->path = mem_text(path);
	if (schema->group_count < 1 || schema->group_count > SHARD_GROUPS_MAX || schema->field_count < 1 ||
	    schema->field_count > SHARD_FIELDS_MAX) {
		rc = error_set(err, SHARD_E_ARGUMENT, "schema: %u groups and %u fields; must be 1 to %d and 1 to %d",
			       schema->group_count, schema->field_count, SHARD_GROUPS_MAX, SHARD_FIELDS_MAX);
		goto out;
	}
	rc = schema_check(schema, err);
	if (rc) {
		rc = SHARD_E_ARGUMENT;
		if (err)
			err->status = rc;
		goto out;
	}
	rc = take_options(w, &o, err);
	if (rc)
		goto out;
	for (uint32_t i = 0; i < 2; i++)
		w->memory[i] = buffer_open(WRITER_OUT_BYTES);
	if (w->memory[0] && w->memory[1])
		w->drain = drain_open(write_now, w, w->memory);
	if (!w->path || !w->drain)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a writer");
	if (!rc)
		rc = make_groups(w, err);
	if (!rc)
		rc = start_file(w, o.temp_id, err);
	if (rc)
		goto out;
	*out = w;
	w = NULL;
out:
	shard_writer_close(w);
	return rc;
}

void shard_writer_close(struct shard_writer *w)
{
	if (!w)
		return;
	drain_close(w->drain); /* it writes to the file */
	buffer_close(w->memory[0], WRITER_OUT_BYTES);
	buffer_close(w->memory[1], WRITER_OUT_BYTES);
	file_temp_discard(&w->temp);
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		mem_free(w->group[g].unit);
		mem_free(w->group[g].packed);
		mem_free(w->group[g].scratch);
		spool_free(&w->group[g].data);
		spool_free(&w->group[g].leaf);
		spool_free(&w->group[g].index);
	}
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++)
		mem_free(w->moments[f].channel);
	mem_free(w->class_records);
	spool_free(&w->koff);
	spool_free(&w->kblb);
	spool_free(&w->miss);
	mem_free(w->provenance);
	mem_free(w->path);
	mem_free(w);
}

/* ---- records ---- */

int writer_refuse(struct shard_writer *w, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_ARGUMENT,
			 w->failed ? "%s: the writer failed earlier; close it" : "%s: the writer is finished; close it",
			 show(&s, w->path));
}

/* May one more record or left-out input come?  I55: both together are at most the planned count. */
static bool has_room(const struct shard_writer *w)
{
	return spool_bytes(&w->miss) / sizeof(struct disk_miss) < w->pages.planned_records - w->pages.record_count;
}

/* DATA of the first group goes to the file, that of others waits. */
static int store_data(struct shard_writer *w, uint32_t group, const void *data, size_t bytes, struct shard_error *err)
{
	w->group[group].stored += bytes;
	return group ? spool_add(&w->group[group].data, data, bytes, w->path, err) : put_out(w, data, bytes, err);
}

static int store_chunk(struct shard_writer *w, uint32_t group, size_t bytes, struct shard_error *err)
{
	struct writer_group *g = &w->group[group];
	struct disk_chunk entry = {{{0}}, {{0}}, {{0}}, {{0}}, {0}};
	size_t stored = 0, padded;
	int rc = lz4_encode(g->unit, bytes, g->packed, lz4_bound(bytes), &stored, g->scratch);

	if (rc == LZ4_STORE_RAW) {
		memcpy(g->packed, g->unit, bytes);
		stored = bytes;
	} else if (rc) {
		return error_set(err, rc, "group %u: a chunk of %zu bytes could not be compressed", group, bytes);
	}
	padded = align_up(stored, SHARD_CHUNK_ALIGN);
	memset(g->packed + stored, 0, padded - stored);
	store64(entry.offset.b, g->stored);
	store32(entry.stored_bytes.b, (uint32_t)stored);
	store32(entry.flags.b, stored < bytes);
	store64(entry.stored_hash.b, checksum64(g->packed, padded));
	rc = spool_add(&g->index, &entry, sizeof(entry), w->path, err);
	return rc ? rc : store_data(w, group, g->packed, padded, err);
}

/* `unit` is g->place, or the caller's record if it is a whole raw unit as it lies. */
static int store_unit(struct shard_writer *w, uint32_t group, const uint8_t *unit, size_t bytes,
		      struct shard_error *err)
{
	uint8_t leaf[8];
	int rc;

	store64(leaf, checksum64(unit, bytes));
	rc = spool_add(&w->group[group].leaf, leaf, sizeof(leaf), w->path, err);
	if (rc)
		return rc;
	return w->pages.schema.group[group].codec == SHARD_RAW ? store_data(w, group, unit, bytes, err)
							       : store_chunk(w, group, bytes, err);
}

/* The unit or chunk of a group is as full as it gets. */
static int end_unit(struct shard_writer *w, uint32_t group, struct shard_error *err)
{
	struct writer_group *g = &w->group[group];
	size_t bytes = (size_t)(g->filled * w->pages.schema.group[group].stride);

	g->filled = 0;
	return store_unit(w, group, g->place, bytes, err);
}

static int append_to_group(struct shard_writer *w, uint32_t group, const void *record, struct shard_error *err)
{
	const struct shard_group *s = &w->pages.schema.group[group];
	struct writer_group *g = &w->group[group];
	uint8_t *place;

	if (s->codec == SHARD_RAW && s->unit_records == 1 && !g->holes.count)
		return store_unit(w, group, record, (size_t)s->stride, err);
	if (!g->filled) {
		uint64_t unit_bytes = s->stride * s->unit_records;

		/* in the output, if it goes there as it is, and this buffer has room for all of it */
		if (!group && s->codec == SHARD_RAW && unit_bytes <= WRITER_OUT_BYTES - w->out_used)
			g->place = drain_buffer(w->drain) + w->out_used;
		else
			g->place = g->unit;
	}
	place = g->place + g->filled * s->stride;
	memcpy(place, record, (size_t)s->record_bytes);
	for (uint32_t h = 0; h < g->holes.count; h++) /* whatever the caller left between the fields */
		memset(place + g->holes.hole[h].offset, 0, g->holes.hole[h].bytes);
	return ++g->filled == s->unit_records ? end_unit(w, group, err) : SHARD_OK;
}

static int add_key(struct shard_writer *w, const char *key, size_t bytes, struct shard_error *err)
{
	uint8_t offset[8];
	struct shown s;
	int rc;

	if (!w->keys)
		return key ? error_set(err, SHARD_E_ARGUMENT,
				       "a key was given, but the shard was opened without keys; set keys to 1 in "
				       "the options")
			   : SHARD_OK;
	if (!key || bytes > SHARD_KEY_BYTES_MAX || utf8_bad_or_nul(key, bytes) != bytes)
		return error_set(err, SHARD_E_ARGUMENT,
				 "key '%s' (%zu bytes) must be UTF-8 without NUL of at most %d bytes",
				 key ? show_bytes(&s, key, bytes) : "", bytes, SHARD_KEY_BYTES_MAX);
	store64(offset, spool_bytes(&w->kblb));
	rc = spool_add(&w->koff, offset, sizeof(offset), w->path, err);
	return rc ? rc : spool_add(&w->kblb, key, bytes, w->path, err);
}

static int append(struct shard_writer *w, const void *const *group, const char *key, size_t key_bytes,
		  struct shard_error *err)
{
	struct pages *p = &w->pages;
	int64_t class_idx = 0;
	int rc;

	if (w->failed || w->finished)
		return writer_refuse(w, err);
	if (!has_room(w))
		return error_set(err, SHARD_E_ARGUMENT,
				 "record %" PRIu64 " exceeds the %" PRIu64 " that were planned (inputs left out count "
				 "too)",
				 p->record_count, p->planned_records);
	if (w->label && !shard_label_read(w->label, group, w->class_count, &class_idx))
		return error_set(err, SHARD_E_ARGUMENT,
				 "record %" PRIu64 ": field '%s' is %" PRId64
				 ", which is not a class; must be 0 or more, and below the class_count of the "
				 "options, %" PRIu64,
				 p->record_count, w->label->name, class_idx, w->class_count);
	rc = add_key(w, key, key_bytes, err);
	for (uint32_t i = 0; !rc && i < p->schema.group_count; i++)
		rc = append_to_group(w, i, group[i], err);
	if (!rc) {
		p->record_count++;
		if (w->label)
			w->class_records[class_idx]++;
	}
	return rc;
}

int shard_writer_append(struct shard_writer *w, const void *const *group, const char *key, size_t key_bytes,
			struct shard_error *err)
{
	int rc = append(w, group, key, key_bytes, err);

	if (rc)
		w->failed = true;
	return rc;
}

/* ---- statistics and inputs left out ---- */

int shard_writer_miss(struct shard_writer *w, const struct shard_miss *miss, struct shard_error *err)
{
	uint8_t entry[sizeof(struct disk_miss)];

	if (w->failed || w->finished)
		return writer_refuse(w, err);
	if (miss->reason < 1 || miss->reason > 65535 || miss->how < SHARD_SKIPPED || miss->how > SHARD_QUARANTINED ||
	    (spool_bytes(&w->miss) && miss->ordinal <= w->last_ordinal))
		return error_set(err, SHARD_E_ARGUMENT,
				 "left-out input %" PRIu64 ": reason %u, how %u; ordinals must ascend, reason must be "
				 "1 to 65535, how must be 1 or 2",
				 miss->ordinal, miss->reason, miss->how);
	if (!has_room(w))
		return error_set(err, SHARD_E_ARGUMENT,
				 "left-out input %" PRIu64 " exceeds the %" PRIu64 " inputs that were planned",
				 miss->ordinal, w->pages.planned_records);
	store64(entry, miss->ordinal);
	store32(entry + 8, miss->reason);
	store32(entry + 12, miss->how);
	w->last_ordinal = miss->ordinal;
	return spool_add(&w->miss, entry, sizeof(entry), w->path, err);
}

int writer_add_moments(struct shard_writer *w, uint32_t field, uint32_t channel, const struct shard_moments *add,
		       struct shard_error *err)
{
	const struct shard_field *f = &w->pages.schema.field[field < SHARD_FIELDS_MAX ? field : 0];
	struct writer_moments *m = &w->moments[field < SHARD_FIELDS_MAX ? field : 0];
	uint64_t channels;

	if (w->failed || w->finished)
		return writer_refuse(w, err);
	channels = field < w->pages.schema.field_count && f->kind == SHARD_TENSOR && f->dtype == SHARD_U8
			   ? schema_channels(f)
			   : 0;
	if (channel >= channels || channels > STAT_CHANNELS_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "moments of field %u, channel %u: the field must be a u8 tensor that has this "
				 "channel, and at most %u channels; it has %" PRIu64,
				 field, channel, STAT_CHANNELS_MAX, channels);
	if (!m->channel) {
		m->channel = mem_array((size_t)channels, sizeof(*m->channel));
		if (!m->channel)
			return error_set(err, SHARD_E_MEMORY, "no memory for statistics");
		m->channel_count = channels;
	}
	m->channel[channel].count += add->count; /* bounded by 255^2 x 2^44 bytes of file: fits */
	m->channel[channel].sum += add->sum;
	m->channel[channel].sum_squares_low += add->sum_squares_low;
	/* refused at the end: a shard has room for 64 bits */
	m->channel[channel].sum_squares_high += add->sum_squares_high;
	return SHARD_OK;
}

/* ---- sections ---- */

struct put {
	struct shard_writer *w;
	struct checksum_stream hash;
	uint64_t base; /* of CIDX, added to its offsets; 0: another section */
};

static int put_bytes(void *context, const uint8_t *data, size_t bytes, struct shard_error *err)
{
	struct put *p = context;
	uint8_t entry[sizeof(struct disk_chunk)];
	int rc = SHARD_OK;

	if (!p->base) {
		checksum128_update(&p->hash, data, bytes);
		return put_out(p->w, data, bytes, err);
	}
	/* pieces are multiples of 4096, so entries are whole */
	for (size_t at = 0; !rc && at < bytes; at += sizeof(entry)) {
		memcpy(entry, data + at, sizeof(entry));
		store64(entry, load64(entry) + p->base);
		checksum128_update(&p->hash, entry, sizeof(entry));
		rc = put_out(p->w, entry, sizeof(entry), err);
	}
	return rc;
}

/* Put a section at its place and enter it in the table. */
static int put_section(struct shard_writer *w, uint32_t type, uint32_t group, uint64_t items, struct spool *from,
		       struct shard_error *err)
{
	struct section *s = &w->pages.section[w->pages.section_count];
	struct put put = {.w = w, .base = type == SHARD_SECTION_CIDX ? w->pages.section[group].offset : 0};
	int rc;

	*s = (struct section){
		.type = type,
		.flags = type <= SHARD_SECTION_KBLB ? SHARD_SECTION_CRITICAL : 0,
		.group = group,
		.offset = pages_section_start(w->pages.section_align_log2, w->offset),
		.items = items,
	};
	rc = put_zeros(w, s->offset - w->offset, err);
	if (rc)
		return rc;
	w->pages.section_count++;
	checksum128_init(&put.hash);
	rc = spool_play(from, put_bytes, &put, w->path, err);
	if (rc)
		return rc;
	s->bytes = w->offset - s->offset;
	if (type != SHARD_SECTION_DATA) { /* its hashes are the leaves */
		struct hash128 hash = checksum128_final(&put.hash);

		memcpy(s->hash, hash.b, sizeof(s->hash));
	}
	return SHARD_OK;
}

static int add64(struct spool *s, uint64_t v, const char *beside, struct shard_error *err)
{
	uint8_t b[8];

	store64(b, v);
	return spool_add(s, b, sizeof(b), beside, err);
}

/* I54: totals that the caller added up must be those of all records. */
static int check_moments(const struct shard_writer *w, uint32_t field, struct shard_error *err)
{
	const struct writer_moments *m = &w->moments[field];

	for (uint64_t c = 0; c < m->channel_count; c++) {
		const struct shard_moments *t = &m->channel[c];

		if (t->sum_squares_high ||
		    !schema_moments_possible(&w->pages.schema.field[field], w->pages.record_count, t))
			return error_set(err, SHARD_E_ARGUMENT,
					 "moments of field %u, channel %" PRIu64 ": count %" PRIu64 ", sum %" PRIu64
					 "; they must be those of all %" PRIu64 " records",
					 field, c, t->count, t->sum, w->pages.record_count);
	}
	return SHARD_OK;
}

static int stat_block(struct shard_writer *w, struct spool *s, uint32_t kind, uint32_t field, uint64_t items,
		      struct shard_error *err)
{
	int rc = add64(s, (uint64_t)field << 32 | kind, w->path, err);

	return rc ? rc : add64(s, items, w->path, err);
}

static int build_stat(struct shard_writer *w, struct spool *s, uint64_t *blocks, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t f = 0; !rc && f < SHARD_FIELDS_MAX; f++) {
		const struct writer_moments *m = &w->moments[f];

		if (!m->channel)
			continue;
		rc = check_moments(w, f, err);
		if (!rc)
			rc = stat_block(w, s, SHARD_STAT_MOMENTS, f, m->channel_count, err);
		for (uint64_t c = 0; !rc && c < m->channel_count; c++) {
			rc = add64(s, m->channel[c].count, w->path, err);
			if (!rc)
				rc = add64(s, m->channel[c].sum, w->path, err);
			if (!rc)
				rc = add64(s, m->channel[c].sum_squares_low, w->path, err);
		}
		(*blocks)++;
	}
	if (!rc && w->label) {
		rc = stat_block(w, s, SHARD_STAT_CLASSES, (uint32_t)(w->label - w->pages.schema.field), w->class_count,
				err);
		for (uint64_t i = 0; !rc && i < w->class_count; i++)
			rc = add64(s, w->class_records[i], w->path, err);
		(*blocks)++;
	}
	return rc;
}

/* The text that was given, and behind it a line for each field with values that are not finite. */
static int build_provenance(struct shard_writer *w, struct spool *s, struct shard_error *err)
{
	size_t given = w->provenance ? strlen(w->provenance) : 0;
	const char *between = given && w->provenance[given - 1] != '\n' ? "\n" : "";
	char line[SHARD_NAME_BYTES + 80];
	struct shown shown;
	int rc = given ? spool_add(s, w->provenance, given, w->path, err) : SHARD_OK;

	for (uint32_t f = 0; !rc && f < w->pages.schema.field_count; f++) {
		const struct writer_not_finite *n = &w->not_finite[f];

		if (!n->nan && !n->infinite)
			continue;
		snprintf(line, sizeof(line), "%snot-finite %s nan %" PRIu64 " infinite %" PRIu64 "\n", between,
			 w->pages.schema.field[f].name, n->nan, n->infinite);
		rc = spool_add(s, line, strlen(line), w->path, err);
		between = "";
	}
	if (!rc && spool_bytes(s) > SHARD_PROVENANCE_BYTES_MAX)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "%s: the provenance and its lines of NaN and infinite values have %" PRIu64
			       " bytes; must be at most %" PRIu64 "; give a shorter provenance",
			       show(&shown, w->path), spool_bytes(s), SHARD_PROVENANCE_BYTES_MAX);
	return rc;
}

static int put_sections(struct shard_writer *w, struct shard_error *err)
{
	const struct shard_schema *schema = &w->pages.schema;
	uint64_t records = w->pages.record_count, blocks = 0, misses = spool_bytes(&w->miss) / sizeof(struct disk_miss);
	struct spool stat = SPOOL_EMPTY, provenance = SPOOL_EMPTY;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		if (w->group[g].filled)
			rc = end_unit(w, g, err);
	if (rc)
		return rc;
	/* The first group's DATA lies in the file already, from its aligned place to here. */
	w->pages.section[w->pages.section_count++] = (struct section){
		.type = SHARD_SECTION_DATA,
		.flags = SHARD_SECTION_CRITICAL,
		.offset = pages_section_start(w->pages.section_align_log2, SHARD_PAGE_BYTES),
		.items = records,
		.bytes = w->group[0].stored,
	};
	for (uint32_t g = 1; !rc && g < schema->group_count; g++)
		rc = put_section(w, SHARD_SECTION_DATA, g, records, &w->group[g].data, err);
	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		rc = put_section(w, SHARD_SECTION_HASH, g, spool_bytes(&w->group[g].leaf) / 8, &w->group[g].leaf, err);
	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		if (schema->group[g].codec != SHARD_RAW)
			rc = put_section(w, SHARD_SECTION_CIDX, g,
					 spool_bytes(&w->group[g].index) / sizeof(struct disk_chunk),
					 &w->group[g].index, err);
	if (!rc && w->keys) {
		rc = add64(&w->koff, spool_bytes(&w->kblb), w->path, err);
		if (!rc)
			rc = put_section(w, SHARD_SECTION_KOFF, 0, records + 1, &w->koff, err);
		if (!rc)
			rc = put_section(w, SHARD_SECTION_KBLB, 0, records, &w->kblb, err);
	}
	if (!rc)
		rc = build_stat(w, &stat, &blocks, err);
	if (!rc && blocks)
		rc = put_section(w, SHARD_SECTION_STAT, 0, blocks, &stat, err);
	if (!rc && misses)
		rc = put_section(w, SHARD_SECTION_MISS, 0, misses, &w->miss, err);
	if (!rc)
		rc = build_provenance(w, &provenance, err);
	if (!rc && spool_bytes(&provenance))
		rc = put_section(w, SHARD_SECTION_PROV, 0, 1, &provenance, err);
	spool_free(&stat);
	spool_free(&provenance);
	return rc;
}

static int put_footer(struct shard_writer *w, struct shard_error *err)
{
	struct disk_footer footer;
	struct hash128 hash;
	struct shown s;
	int rc = put_zeros(w, align_up(w->offset, SHARD_PAGE_BYTES) - w->offset, err);

	if (rc)
		return rc;
	w->pages.file_bytes = w->offset + sizeof(footer);
	if (w->pages.file_bytes > SHARD_FILE_BYTES_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "%s: has %" PRIu64 " bytes; must be at most %" PRIu64,
				 show(&s, w->path), w->pages.file_bytes, SHARD_FILE_BYTES_MAX);
	pages_encode_footer(&footer, &w->pages);
	hash = checksum128(&footer, sizeof(footer) - sizeof(footer.hash));
	memcpy(footer.hash, hash.b, sizeof(footer.hash));
	memcpy(w->pages.root, hash.b, sizeof(w->pages.root));
	return put_out(w, &footer, sizeof(footer), err);
}

/* ---- finish ---- */

int writer_read_back(const struct file_temp *t, const uint8_t root[16], struct verify_whole *whole,
		     struct shard_error *err)
{
	char *path = mem_join(t->dir, t->temp);
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = path ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a path");

	if (!rc && whole)
		file_drop_cache(t->fd);
	if (!rc)
		rc = reader_open_as(&r, path, t->path, NULL, err);
	if (!rc && memcmp(r->pages->root, root, sizeof(r->pages->root)))
		rc = error_set(err, SHARD_E_IO, "%s: the disk returned another shard than was written",
			       show(&s, t->path));
	if (!rc && whole) {
		whole->path = path;
		rc = verify_whole(r, whole, err);
	}
	shard_reader_close(r);
	mem_free(path);
	return rc;
}

int writer_compare_existing(const char *path, const uint8_t root[16], struct verify_whole *whole,
			    struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	struct shard_reader *r = NULL;
	struct shown s;
	int rc = shard_reader_open(&r, path, NULL, why);
	bool same = !rc && !memcmp(r->pages->root, root, sizeof(r->pages->root));
	const char *what = rc ? "not a valid shard" : "another shard";

	if (same && whole) { /* its pages are ours; its records may have suffered since */
		whole->path = path;
		rc = verify_whole(r, whole, why);
		same = rc != SHARD_E_CORRUPT;
		what = "damaged";
	}
	shard_reader_close(r);
	if (same || rc == SHARD_E_MEMORY || (rc == SHARD_E_IO && why->os_code))
		return rc;
	return error_set(err, SHARD_E_EXISTS, "%s: already exists and is %s; it was left as it is", show(&s, path),
			 what);
}

/* All bytes, and all of them durable. */
static int complete(struct shard_writer *w, struct shard_error *err)
{
	int rc = put_sections(w, err);

	if (!rc)
		rc = put_footer(w, err);
	if (rc)
		return rc;
	rc = put_buffer(w, err);
	turns_give(w->turns);
	if (!rc)
		rc = drain_wait(w->drain, err);
	drain_close(w->drain);
	w->drain = NULL;
	if (!rc)
		rc = file_temp_sync(&w->temp, err);
	turns_take(w->turns);
	return rc;
}

/* With `overtaken` its file is gone before it was read back, which is when it is hashed. */
static int publish(struct shard_writer *w, bool overtaken, struct shard_written *result, struct shard_error *err)
{
	struct verify_whole whole = {.turns = w->turns, .sha = overtaken ? &w->sha256 : NULL};
	int rc;

	memset(result, 0, sizeof(*result));
	if (overtaken)
		sha256_init(&w->sha256);
	rc = overtaken ? SHARD_E_EXISTS : file_temp_publish(&w->temp, false, err);
	if (rc == SHARD_E_EXISTS) {
		rc = writer_compare_existing(w->path, w->pages.root, w->read_back ? &whole : NULL, err);
		result->already = !rc;
	}
	result->file_bytes = w->pages.file_bytes;
	result->record_count = w->pages.record_count;
	result->miss_count = spool_bytes(&w->miss) / sizeof(struct disk_miss);
	memcpy(result->root, w->pages.root, sizeof(result->root));
	sha256_final(&w->sha256, result->sha256);
	return rc;
}

int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	struct verify_whole whole = {.turns = w->turns, .sha = &w->sha256};
	struct shard_written mine;
	bool overtaken;
	int rc = w->failed || w->finished ? writer_refuse(w, why) : complete(w, why);

	/* The kernel said that it has the bytes; only reading them from the disk tells. */
	if (!rc && w->read_back)
		rc = writer_read_back(&w->temp, w->pages.root, &whole, why);
	/*
	 * Is the temporary file gone, and the name taken?  On network file systems others remove what
	 * a shard no longer needs.  Then the shard that is there is compared with ours.
	 */
	overtaken = rc == SHARD_E_IO && w->read_back && why->os_code == ENOENT && file_exists(w->path);
	if (!rc || overtaken)
		rc = publish(w, overtaken, &mine, why);
	if (!rc && result)
		*result = mine;
	w->failed = w->failed || rc;
	w->finished = true;
	return rc;
}
