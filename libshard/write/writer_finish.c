/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_finish.c - from the last record to a complete file
 *
 * Lays the spooled groups and tables behind the first group, each at its aligned place, then the
 * footer.  writer_publish.c does what follows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/write/write.h"
#include "shard_pack.h"

#define STAT_CHANNELS_MAX 4096u

/* ---- statistics and inputs left out ---- */

int writer_refuse(struct shard_writer *w, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_ARGUMENT,
			 w->failed ? "%s: the writer failed earlier; close it" : "%s: the writer is finished; close it",
			 show(&s, w->path));
}

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
	if (!writer_has_room(w))
		return error_set(err, SHARD_E_ARGUMENT,
				 "left-out input %" PRIu64 " exceeds the %" PRIu64 " inputs that were planned",
				 miss->ordinal, w->pages.planned_records);
	store64(entry, miss->ordinal);
	store32(entry + 8, miss->reason);
	store32(entry + 12, miss->how);
	w->last_ordinal = miss->ordinal;
	return spool_add(&w->miss, entry, sizeof(entry), w->path, err);
}

int shard_writer_add_moments(struct shard_writer *w, uint32_t field, uint32_t channel, const struct shard_moments *add,
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

int shard_writer_add_class(struct shard_writer *w, uint32_t field, uint32_t class_idx, uint32_t class_count,
			   uint64_t records, struct shard_error *err)
{
	struct writer_classes *c = &w->classes[field < SHARD_FIELDS_MAX ? field : 0];

	if (w->failed || w->finished)
		return writer_refuse(w, err);
	if (field >= w->pages.schema.field_count || !schema_is_integer_scalar(&w->pages.schema.field[field]) ||
	    class_idx >= class_count || class_count > SHARD_CLASSES_MAX ||
	    (c->records && c->class_count != class_count))
		return error_set(err, SHARD_E_ARGUMENT,
				 "class %u of %u for field %u: the field must be an integer scalar; the number of "
				 "classes must be at most %" PRIu64 " and the same each time",
				 class_idx, class_count, field, SHARD_CLASSES_MAX);
	if (!c->records) {
		c->records = mem_array(class_count, sizeof(*c->records));
		if (!c->records)
			return error_set(err, SHARD_E_MEMORY, "no memory for %u class counts", class_count);
		c->class_count = class_count;
	}
	if (!add_fits(c->records[class_idx], records, &c->records[class_idx])) {
		w->failed = true; /* the sum is lost */
		return error_set(err, SHARD_E_ARGUMENT, "class %u of field %u: its count does not fit 64 bits",
				 class_idx, field);
	}
	return SHARD_OK;
}

/* ---- sections ---- */

struct put {
	struct shard_writer *w;
	struct checksum_stream hash;
	uint64_t base; /* added to CIDX offsets */
	bool is_index;
};

static int put_bytes(void *context, const uint8_t *data, size_t bytes, struct shard_error *err)
{
	struct put *p = context;
	uint8_t entry[sizeof(struct disk_chunk)];
	int rc = SHARD_OK;

	if (!p->is_index) {
		checksum128_update(&p->hash, data, bytes);
		return writer_put(p->w, data, bytes, err);
	}
	/* pieces are multiples of 4096, so entries are whole */
	for (size_t at = 0; !rc && at < bytes; at += sizeof(entry)) {
		memcpy(entry, data + at, sizeof(entry));
		store64(entry, load64(entry) + p->base);
		checksum128_update(&p->hash, entry, sizeof(entry));
		rc = writer_put(p->w, entry, sizeof(entry), err);
	}
	return rc;
}

/* Begin a section at its place and enter it in the table. */
static int begin_section(struct shard_writer *w, uint32_t type, uint32_t group, uint64_t items, struct shard_error *err)
{
	struct section *s = &w->pages.section[w->pages.section_count];
	uint64_t start = pages_section_start(w->pages.section_align_log2, w->offset);
	int rc = writer_put_zeros(w, start - w->offset, err);

	if (rc)
		return rc;
	*s = (struct section){
		.type = type,
		.flags = type <= SHARD_SECTION_KBLB ? SHARD_SECTION_CRITICAL : 0,
		.group = group,
		.offset = start,
		.items = items,
	};
	w->pages.section_count++;
	return SHARD_OK;
}

static int put_section(struct shard_writer *w, uint32_t type, uint32_t group, uint64_t items, struct spool *from,
		       uint64_t base, struct shard_error *err)
{
	struct section *s = &w->pages.section[w->pages.section_count];
	struct put put = {.w = w, .base = base, .is_index = type == SHARD_SECTION_CIDX};
	int rc = begin_section(w, type, group, items, err);

	if (rc)
		return rc;
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

/* The first group's DATA lies in the file already, from its aligned place to here. */
static void enter_first_group(struct shard_writer *w)
{
	struct section *s = &w->pages.section[w->pages.section_count++];

	*s = (struct section){
		.type = SHARD_SECTION_DATA,
		.flags = SHARD_SECTION_CRITICAL,
		.offset = pages_section_start(w->pages.section_align_log2, SHARD_PAGE_BYTES),
		.items = w->pages.record_count,
		.bytes = w->group[0].stored,
	};
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
	unsigned __int128 want =
		(unsigned __int128)(schema_elements(&w->pages.schema.field[field]) / m->channel_count) *
		w->pages.record_count;

	for (uint64_t c = 0; c < m->channel_count; c++) {
		const struct shard_moments *t = &m->channel[c];

		if (t->count != want || t->sum > (unsigned __int128)255 * t->count || t->sum_squares_high ||
		    t->sum_squares_low > (unsigned __int128)255 * t->sum)
			return error_set(err, SHARD_E_ARGUMENT,
					 "moments of field %u, channel %" PRIu64 ": count %" PRIu64 ", sum %" PRIu64
					 "; they must be those of all %" PRIu64 " records",
					 field, c, t->count, t->sum, w->pages.record_count);
	}
	return SHARD_OK;
}

static int check_classes(const struct shard_writer *w, uint32_t field, struct shard_error *err)
{
	const struct writer_classes *c = &w->classes[field];
	uint64_t sum = 0;
	bool fits = true;

	for (uint64_t i = 0; i < c->class_count; i++)
		fits = fits && add_fits(sum, c->records[i], &sum);
	if (!fits || sum != w->pages.record_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "class counts of field %u add up to %" PRIu64 "; there are %" PRIu64 " records", field,
				 sum, w->pages.record_count);
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
	for (uint32_t f = 0; !rc && f < SHARD_FIELDS_MAX; f++) {
		const struct writer_classes *c = &w->classes[f];

		if (!c->records)
			continue;
		rc = check_classes(w, f, err);
		if (!rc)
			rc = stat_block(w, s, SHARD_STAT_CLASSES, f, c->class_count, err);
		for (uint64_t i = 0; !rc && i < c->class_count; i++)
			rc = add64(s, c->records[i], w->path, err);
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

static int put_shared_sections(struct shard_writer *w, struct shard_error *err)
{
	uint64_t records = w->pages.record_count, blocks = 0, misses = spool_bytes(&w->miss) / sizeof(struct disk_miss);
	struct spool stat = SPOOL_EMPTY, provenance = SPOOL_EMPTY;
	int rc = SHARD_OK;

	if (w->keys) {
		rc = add64(&w->koff, spool_bytes(&w->kblb), w->path, err);
		if (!rc)
			rc = put_section(w, SHARD_SECTION_KOFF, 0, records + 1, &w->koff, 0, err);
		if (!rc)
			rc = put_section(w, SHARD_SECTION_KBLB, 0, records, &w->kblb, 0, err);
	}
	if (!rc)
		rc = build_stat(w, &stat, &blocks, err);
	if (!rc && blocks)
		rc = put_section(w, SHARD_SECTION_STAT, 0, blocks, &stat, 0, err);
	if (!rc && misses)
		rc = put_section(w, SHARD_SECTION_MISS, 0, misses, &w->miss, 0, err);
	if (!rc)
		rc = build_provenance(w, &provenance, err);
	if (!rc && spool_bytes(&provenance))
		rc = put_section(w, SHARD_SECTION_PROV, 0, 1, &provenance, 0, err);
	spool_free(&stat);
	spool_free(&provenance);
	return rc;
}

static int put_sections(struct shard_writer *w, struct shard_error *err)
{
	const struct shard_schema *schema = &w->pages.schema;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		if (w->group[g].filled)
			rc = writer_end_unit(w, g, err);
	if (rc)
		return rc;
	enter_first_group(w);
	for (uint32_t g = 1; !rc && g < schema->group_count; g++)
		rc = put_section(w, SHARD_SECTION_DATA, g, w->pages.record_count, &w->group[g].data, 0, err);
	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		rc = put_section(w, SHARD_SECTION_HASH, g, spool_bytes(&w->group[g].leaf) / 8, &w->group[g].leaf, 0,
				 err);
	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		if (schema->group[g].codec != SHARD_RAW)
			rc = put_section(w, SHARD_SECTION_CIDX, g,
					 spool_bytes(&w->group[g].index) / sizeof(struct disk_chunk),
					 &w->group[g].index, w->pages.section[g].offset, err);
	return rc ? rc : put_shared_sections(w, err);
}

static int put_footer(struct shard_writer *w, struct shard_error *err)
{
	struct disk_footer footer;
	struct hash128 hash;
	struct shown s;
	int rc = writer_put_zeros(w, align_up(w->offset, SHARD_PAGE_BYTES) - w->offset, err);

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
	rc = writer_put(w, &footer, sizeof(footer), err);
	return rc ? rc : writer_end_output(w, err);
}

int writer_lay_out(struct shard_writer *w, struct shard_error *err)
{
	int rc = put_sections(w, err);

	return rc ? rc : put_footer(w, err);
}
