/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - records to units, units to the file
 *
 * The first group streams to the file; the others, and all tables, are spooled until
 * writer_finish.c lays them behind it.  Each byte is hashed (XXH3) before it is handed to the
 * kernel, so what a reader compares with is what the caller gave.
 */
#include "libshard/write/write.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/turns.h"
#include "libshard/base/utf8.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

#define LARGE_SHARD_BYTES (64u << 20) /* from here on sections lie on 64 KiB; format/SHARD.md 2.9 */

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

void writer_begin_wait(const struct shard_writer *w)
{
	if (w->in_turn)
		turns_give(w->turns);
}

void writer_end_wait(const struct shard_writer *w)
{
	if (w->in_turn)
		turns_take(w->turns);
}

/* Hand over what the buffer holds, once the buffer before it is written. */
static int put_buffer(struct shard_writer *w, struct shard_error *err)
{
	int rc;

	writer_begin_wait(w);
	rc = drain_put(w->drain, w->out_used, err);
	writer_end_wait(w);
	w->out_used = 0;
	return rc;
}

int writer_end_output(struct shard_writer *w, struct shard_error *err)
{
	int rc = put_buffer(w, err);

	writer_begin_wait(w);
	if (!rc)
		rc = drain_wait(w->drain, err);
	writer_end_wait(w);
	drain_close(w->drain);
	w->drain = NULL;
	return rc;
}

int writer_put(struct shard_writer *w, const void *data, size_t bytes, struct shard_error *err)
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

int writer_put_zeros(struct shard_writer *w, uint64_t bytes, struct shard_error *err)
{
	static const uint8_t zeros[SHARD_PAGE_BYTES];
	int rc = SHARD_OK;

	for (; !rc && bytes; bytes -= min_u64(bytes, sizeof(zeros)))
		rc = writer_put(w, zeros, (size_t)min_u64(bytes, sizeof(zeros)), err);
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

static int open_output(struct shard_writer *w, struct shard_error *err)
{
	for (uint32_t i = 0; i < 2; i++) {
		w->memory[i] = turns_take_memory(w->turns);
		if (!w->memory[i])
			w->memory[i] = buffer_open(WRITER_OUT_BYTES);
	}
	if (w->memory[0] && w->memory[1])
		w->drain = drain_open(write_now, w, w->memory);
	if (!w->path || !w->drain)
		return error_set(err, SHARD_E_MEMORY, "no memory for a writer");
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
	rc = writer_put(w, &header, sizeof(header), err);
	if (!rc)
		rc = writer_put_zeros(w, start - SHARD_PAGE_BYTES, err);
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
	if (!rc)
		rc = open_output(w, err);
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
	turns_give_memory(w->turns, w->memory[0]);
	turns_give_memory(w->turns, w->memory[1]);
	file_temp_discard(&w->temp);
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		mem_free(w->group[g].unit);
		mem_free(w->group[g].packed);
		mem_free(w->group[g].scratch);
		spool_free(&w->group[g].data);
		spool_free(&w->group[g].leaf);
		spool_free(&w->group[g].index);
	}
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		mem_free(w->moments[f].channel);
		mem_free(w->classes[f].records);
	}
	spool_free(&w->koff);
	spool_free(&w->kblb);
	spool_free(&w->miss);
	mem_free(w->provenance);
	mem_free(w->path);
	mem_free(w);
}

/* ---- records ---- */

bool writer_has_room(const struct shard_writer *w)
{
	return spool_bytes(&w->miss) / sizeof(struct disk_miss) < w->pages.planned_records - w->pages.record_count;
}

/* DATA of the first group goes to the file, that of others waits. */
static int store_data(struct shard_writer *w, uint32_t group, const void *data, size_t bytes, struct shard_error *err)
{
	w->group[group].stored += bytes;
	return group ? spool_add(&w->group[group].data, data, bytes, w->path, err) : writer_put(w, data, bytes, err);
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

int writer_end_unit(struct shard_writer *w, uint32_t group, struct shard_error *err)
{
	struct writer_group *g = &w->group[group];
	size_t bytes = (size_t)(g->filled * w->pages.schema.group[group].stride);

	g->filled = 0;
	return store_unit(w, group, g->place, bytes, err);
}

/* In the output, if it goes there as it is, and this buffer has room for all of it. */
static uint8_t *place_for_unit(const struct shard_writer *w, uint32_t group)
{
	const struct shard_group *s = &w->pages.schema.group[group];
	bool streams = !group && s->codec == SHARD_RAW;

	return streams && s->stride * s->unit_records <= WRITER_OUT_BYTES - w->out_used
		       ? drain_buffer(w->drain) + w->out_used
		       : w->group[group].unit;
}

static int append_to_group(struct shard_writer *w, uint32_t group, const void *record, struct shard_error *err)
{
	const struct shard_group *s = &w->pages.schema.group[group];
	struct writer_group *g = &w->group[group];
	uint8_t *place;

	if (s->codec == SHARD_RAW && s->unit_records == 1 && !g->holes.count)
		return store_unit(w, group, record, (size_t)s->stride, err);
	if (!g->filled)
		g->place = place_for_unit(w, group);
	place = g->place + g->filled * s->stride;
	memcpy(place, record, (size_t)s->record_bytes);
	for (uint32_t h = 0; h < g->holes.count; h++) /* whatever the caller left between the fields */
		memset(place + g->holes.hole[h].offset, 0, g->holes.hole[h].bytes);
	return ++g->filled == s->unit_records ? writer_end_unit(w, group, err) : SHARD_OK;
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
	int rc;

	if (w->finished)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the shard is finished, so no record can be added; open another shard");
	if (!writer_has_room(w))
		return error_set(err, SHARD_E_ARGUMENT,
				 "record %" PRIu64 " exceeds the %" PRIu64 " that were planned (inputs left out count "
				 "too)",
				 p->record_count, p->planned_records);
	rc = add_key(w, key, key_bytes, err);
	for (uint32_t i = 0; !rc && i < p->schema.group_count; i++)
		rc = append_to_group(w, i, group[i], err);
	if (!rc)
		p->record_count++;
	return rc;
}

int shard_writer_append(struct shard_writer *w, const void *const *group, const char *key, size_t key_bytes,
			struct shard_error *err)
{
	struct shown s;
	int rc;

	w->in_turn = true;
	rc = w->failed ? error_set(err, SHARD_E_ARGUMENT, "%s: the writer failed earlier; close it", show(&s, w->path))
		       : append(w, group, key, key_bytes, err);
	w->in_turn = false;
	if (rc)
		w->failed = true;
	return rc;
}
