/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_lines.c - M6 to M14 of format/SHARD.md for the lines behind the head: group, field,
 * class, stat, shard
 *
 * Pure.  A function for each kind: it takes the line apart, and only when all words have their form
 * looks at what they say.  What the lines say together, the schema (M9) and the number of shards
 * (M13), is for manifest_parse.c to judge.
 */
#include "libshard/format/format.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/digits.h"
#include "libshard/base/utf8.h"
#include "libshard/format/invariant.h"
#include "libshard/format/names.h"
#include "libshard/format/schema.h"
#include "shard_pack.h"

int line_done(struct parse *p, struct tokens *t)
{
	struct shard_error *err = p->err;

	tokens_done(t);
	MUST("M6", t->fault != TOKEN_FORM, "line %" PRIu64 ": expected %s", p->line, t->wanted);
	MUST("M7", t->fault != TOKEN_NUMBER,
	     "line %" PRIu64 ": %s is not a number or digest in canonical form within its limit", p->line, t->wanted);
	return SHARD_OK;
}

static int check_number(struct parse *p, const char *what, uint64_t got, uint64_t want)
{
	struct shard_error *err = p->err;

	MUST("M8", got == want, "line %" PRIu64 ": %s is %" PRIu64 "; must be %" PRIu64, p->line, what, got, want);
	return SHARD_OK;
}

static uint32_t take_name(struct tokens *t, const char *(*name_of)(uint32_t), const char *wanted)
{
	struct word w = tokens_take(t, wanted);
	uint32_t value = UINT32_MAX; /* refused by the schema's own rule */

	name_find(name_of, w.text, w.bytes, &value);
	return value;
}

int line_group(struct parse *p, struct tokens *t)
{
	struct shard_schema *s = &p->m->schema;
	struct shard_error *err = p->err;
	struct shard_group g = {0};
	uint64_t idx;
	int rc;

	tokens_literal(t, "group");
	idx = tokens_number(t, "the group's number", UINT32_MAX);
	tokens_literal(t, "stride");
	g.stride = tokens_number(t, "stride", UINT64_MAX);
	tokens_literal(t, "record");
	g.record_bytes = tokens_number(t, "record", UINT64_MAX);
	tokens_literal(t, "align");
	g.align_log2 = (uint32_t)tokens_number(t, "align", UINT32_MAX);
	tokens_literal(t, "codec");
	g.codec = take_name(t, shard_codec_name, "codec");
	tokens_literal(t, "unit");
	g.unit_records = (uint32_t)tokens_number(t, "unit", UINT32_MAX);
	tokens_literal(t, "chunk");
	g.chunk_records = (uint32_t)tokens_number(t, "chunk", UINT32_MAX);
	rc = line_done(p, t);
	if (!rc)
		rc = check_number(p, "group", idx, s->group_count);
	if (rc)
		return rc;
	MUST("M8", s->group_count < SHARD_GROUPS_MAX, "line %" PRIu64 ": more than %d groups", p->line,
	     SHARD_GROUPS_MAX);
	s->group[s->group_count++] = g;
	return SHARD_OK;
}

/*
 * "224,224,3" into shape and ndim; "-" is a scalar.  Nine sizes make ndim 9, which the schema's
 * rule refuses.
 */
static void take_shape(struct tokens *t, struct shard_field *f)
{
	struct word w = tokens_take(t, "shape");
	const char *end = w.text + w.bytes;

	if (w.bytes == 1 && *w.text == '-')
		return;
	for (struct word n = {w.text, 0};; n.text += n.bytes + 1, n.bytes = 0) {
		uint64_t size = 0;

		while (n.text + n.bytes < end && n.text[n.bytes] != ',')
			n.bytes++;
		if (!word_number(n, UINT32_MAX, &size)) {
			t->fault = t->fault ? t->fault : TOKEN_NUMBER;
			t->wanted = "shape";
			return;
		}
		if (f->ndim < SHARD_DIMS_MAX)
			f->shape[f->ndim] = (uint32_t)size;
		f->ndim = f->ndim < SHARD_DIMS_MAX ? f->ndim + 1 : SHARD_DIMS_MAX + 1;
		if (n.text + n.bytes == end)
			return;
	}
}

/*
 * "axes 0,2 length 5", or "-" for both.  For one of them alone no length field is right: I32
 * refuses it.
 */
static void take_ragged(struct tokens *t, struct shard_field *f)
{
	struct word w, n;
	bool no_axes, no_length;
	int last = -1;

	tokens_literal(t, "axes");
	w = tokens_take(t, "axes");
	no_axes = w.bytes == 1 && *w.text == '-';
	for (size_t i = 0; !no_axes && i < w.bytes; i += 2) { /* axes are single digits */
		n = (struct word){w.text + i, 1};
		if (*n.text < '0' || *n.text > '7' || *n.text - '0' <= last || (i + 1 < w.bytes && n.text[1] != ',') ||
		    i + 2 == w.bytes) {
			t->fault = t->fault ? t->fault : TOKEN_NUMBER;
			t->wanted = "axes";
			break;
		}
		last = *n.text - '0';
		f->ragged_axes |= 1u << last;
	}
	tokens_literal(t, "length");
	no_length = tokens_peek(t, "-");
	if (no_length)
		tokens_literal(t, "-");
	else
		f->length_field = (uint32_t)tokens_number(t, "length", UINT8_MAX);
	if (no_axes != no_length)
		f->length_field = UINT32_MAX;
}

int line_field(struct parse *p, struct tokens *t)
{
	struct shard_schema *s = &p->m->schema;
	struct shard_error *err = p->err;
	struct shard_field f = {.name = ""};
	struct word name;
	uint64_t idx;
	int rc;

	tokens_literal(t, "field");
	idx = tokens_number(t, "the field's number", UINT32_MAX);
	name = tokens_take(t, "the field's name");
	memcpy(f.name, name.text, min_u64(name.bytes, sizeof(f.name)));
	tokens_literal(t, "group");
	f.group = (uint32_t)tokens_number(t, "group", UINT16_MAX);
	tokens_literal(t, "kind");
	f.kind = take_name(t, shard_kind_name, "kind");
	tokens_literal(t, "dtype");
	f.dtype = take_name(t, shard_dtype_name, "dtype");
	tokens_literal(t, "layout");
	f.layout = take_name(t, shard_layout_name, "layout");
	tokens_literal(t, "semantic");
	f.semantic = take_name(t, shard_semantic_name, "semantic");
	tokens_literal(t, "offset");
	f.offset = tokens_number(t, "offset", UINT64_MAX);
	tokens_literal(t, "bytes");
	f.bytes = tokens_number(t, "bytes", UINT64_MAX);
	tokens_literal(t, "shape");
	take_shape(t, &f);
	take_ragged(t, &f);
	rc = line_done(p, t);
	if (!rc)
		rc = check_number(p, "field", idx, s->field_count);
	if (rc)
		return rc;
	MUST("M8", s->field_count < SHARD_FIELDS_MAX, "line %" PRIu64 ": more than %d fields", p->line,
	     SHARD_FIELDS_MAX);
	f.stride = f.group < s->group_count ? s->group[f.group].stride : 0;
	s->field[s->field_count++] = f;
	return SHARD_OK;
}

int line_class(struct parse *p, struct tokens *t)
{
	char name[SHARD_MANIFEST_LINE_BYTES_MAX + 1];
	struct shard_error *err = p->err;
	struct word w;
	long bytes;
	uint64_t idx;
	int rc;

	tokens_literal(t, "class");
	idx = tokens_number(t, "the class's number", SHARD_CLASSES_MAX);
	w = tokens_take(t, "the class's name");
	rc = line_done(p, t);
	if (!rc)
		rc = check_number(p, "class", idx, p->classes);
	if (rc)
		return rc;
	MUST("M8", p->classes < SHARD_CLASSES_MAX, "line %" PRIu64 ": more than %" PRIu64 " classes", p->line,
	     SHARD_CLASSES_MAX);
	bytes = text_decode(w.text, w.bytes, false, name);
	MUST("M10",
	     bytes >= 1 && bytes <= (long)SHARD_CLASS_NAME_BYTES_MAX && utf8_bad(name, (size_t)bytes) == (size_t)bytes,
	     "line %" PRIu64 ": the class's name is not UTF-8 of 1 to %u bytes in canonical percent-encoding", p->line,
	     SHARD_CLASS_NAME_BYTES_MAX);
	if (p->sink && p->sink->on_class)
		p->sink->on_class(p->sink->context, p->classes, w.text, w.bytes);
	p->classes++;
	return SHARD_OK;
}

int line_stats_done(struct parse *p)
{
	const struct shard_field *f = &p->m->schema.field[p->stat_field];
	struct shard_error *err = p->err;

	if (p->stat_kind == SHARD_STAT_MOMENTS)
		MUST("M11", p->stat_next == schema_channels(f),
		     "field %u has moments for %" PRIu64 " of %" PRIu64 " channels", p->stat_field, p->stat_next,
		     schema_channels(f));
	if (p->stat_kind == SHARD_STAT_CLASSES)
		MUST("M11", p->stat_sum == p->m->record_count,
		     "class counts of field %u add up to %" PRIu64 "; there are %" PRIu64 " records", p->stat_field,
		     p->stat_sum, p->m->record_count);
	return SHARD_OK;
}

/*
 * Enter the line (kind, field, item), which must continue the block or start a later one at item 0.
 */
static int stat_place(struct parse *p, uint32_t kind, uint64_t field, uint64_t item)
{
	const struct shard_schema *s = &p->m->schema;
	struct shard_error *err = p->err;
	bool same = kind == p->stat_kind && field == p->stat_field && p->stat_kind;
	bool later = kind > p->stat_kind || (kind == p->stat_kind && field > p->stat_field);
	const struct shard_field *f;
	bool fits;
	int rc;

	MUST("M11", field < s->field_count && (same ? item == p->stat_next : later && item == 0),
	     "line %" PRIu64 ": statistics of field %" PRIu64 ", item %" PRIu64 " are out of order", p->line, field,
	     item);
	f = &s->field[field < s->field_count ? field : 0];
	fits = kind == SHARD_STAT_MOMENTS ? f->kind == SHARD_TENSOR && f->dtype == SHARD_U8 && item < schema_channels(f)
					  : schema_is_integer_scalar(f) && item < SHARD_CLASSES_MAX;
	MUST("M11", fits,
	     "line %" PRIu64 ": field '%.47s' cannot have these statistics: moments need a u8 tensor with that "
	     "channel, class counts an integer scalar",
	     p->line, f->name);
	if (!same) {
		rc = line_stats_done(p);
		if (rc)
			return rc;
		p->stat_kind = kind;
		p->stat_field = (uint32_t)field;
		p->stat_sum = 0;
	}
	p->stat_next = item + 1;
	return SHARD_OK;
}

static bool moments_possible(const struct shard_field *f, uint64_t records, const struct shard_moments *m)
{
	unsigned __int128 squares = (unsigned __int128)m->sum_squares_high << 64 | m->sum_squares_low;
	unsigned __int128 want = (unsigned __int128)(schema_elements(f) / schema_channels(f)) * records;

	return m->count == want && m->sum <= (unsigned __int128)255 * m->count &&
	       squares <= (unsigned __int128)255 * m->sum;
}

int line_stat(struct parse *p, struct tokens *t)
{
	struct shard_error *err = p->err;
	bool moments;
	struct shard_moments m = {0};
	uint64_t field, item, records = 0;
	int rc;

	tokens_literal(t, "stat");
	moments = tokens_peek(t, "moments");
	tokens_literal(t, moments ? "moments" : "classes");
	field = tokens_number(t, "the field's number", UINT64_MAX);
	item = tokens_number(t, "channel or class", UINT64_MAX);
	if (moments) {
		m.count = tokens_number(t, "count", UINT64_MAX);
		m.sum = tokens_number(t, "sum", UINT64_MAX);
		tokens_number128(t, "sum of squares", &m.sum_squares_low, &m.sum_squares_high);
	} else {
		records = tokens_number(t, "count", UINT64_MAX);
	}
	rc = line_done(p, t);
	if (!rc)
		rc = stat_place(p, moments ? SHARD_STAT_MOMENTS : SHARD_STAT_CLASSES, field, item);
	if (rc)
		return rc;
	if (moments)
		MUST("M11", moments_possible(&p->m->schema.field[field], p->m->record_count, &m),
		     "line %" PRIu64 ": count %" PRIu64 " and sum %" PRIu64 " are not possible for %" PRIu64
		     " records of u8",
		     p->line, m.count, m.sum, p->m->record_count);
	else
		MUST("M11", add_fits(p->stat_sum, records, &p->stat_sum),
		     "line %" PRIu64 ": the sum of the class counts does not fit 64 bits", p->line);
	if (p->sink && moments && p->sink->on_moments)
		p->sink->on_moments(p->sink->context, (uint32_t)field, (uint32_t)item, &m);
	if (p->sink && !moments && p->sink->on_class_records)
		p->sink->on_class_records(p->sink->context, (uint32_t)field, item, records);
	return SHARD_OK;
}

int line_shard(struct parse *p, struct tokens *t)
{
	struct shard_error *err = p->err;
	struct manifest_shard s = {0};
	struct word file;
	uint64_t idx;
	int rc;

	tokens_literal(t, "shard");
	idx = tokens_number(t, "the shard's number", SHARD_DATASET_SHARDS_MAX);
	file = tokens_take(t, "file name");
	s.file = file.text;
	s.file_name_bytes = file.bytes;
	tokens_literal(t, "bytes");
	s.file_bytes = tokens_number(t, "bytes", SHARD_FILE_BYTES_MAX);
	tokens_literal(t, "records");
	s.record_count = tokens_number(t, "records", SHARD_RECORDS_MAX);
	tokens_literal(t, "root");
	tokens_hash(t, "root", s.root);
	tokens_literal(t, "sha256");
	tokens_hex(t, "sha256", s.sha256, 32);
	if (s.file_bytes < 2 * SHARD_PAGE_BYTES || s.file_bytes % SHARD_PAGE_BYTES)
		t->fault = t->fault ? t->fault : (t->wanted = "bytes", TOKEN_NUMBER);
	rc = line_done(p, t);
	if (!rc)
		rc = check_number(p, "shard", idx, p->shards);
	if (rc)
		return rc;
	MUST("M12", manifest_name_good(s.file, s.file_name_bytes),
	     "line %" PRIu64 ": the name of a shard file must be one or two parts of A-Z a-z 0-9 . _ - of at most 200 "
	     "bytes, each beginning with none of . and -",
	     p->line);
	if (p->sink && p->sink->on_shard)
		p->sink->on_shard(p->sink->context, p->shards, &s);
	p->shards++;
	MUST("M14", s.record_count <= SHARD_DATASET_RECORDS_MAX - p->records, "more than %" PRIu64 " records",
	     SHARD_DATASET_RECORDS_MAX);
	p->records += s.record_count;
	return SHARD_OK;
}
