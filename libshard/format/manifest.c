/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - M1 to M14 of format/SHARD.md: the text of a manifest to numbers, and back
 *
 * One pass over the lines with a small state.  A function for each kind of line takes it apart, and
 * only when all words have their form looks at what they say.  Nothing is allocated: a sink gets the
 * contents of the lines as they are read, in order.
 */
#include "libshard/format/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/utf8.h"
#include "libshard/base/words.h"
#include "shard_inspect.h"

#define END_BYTES (4 + 64 + 1 + 32 + 1) /* "end " SHA-256 " " XXH3 LF */

/* The kinds of lines behind the head, in the order that they come in. */
enum line_kind { LINE_GROUP, LINE_FIELD, LINE_CLASS, LINE_STAT, LINE_SHARD, LINE_KINDS };

/* A manifest that is being read. */
struct parse {
	struct manifest *m;
	const struct manifest_sink *sink; /* may be NULL */
	struct shard_error *err;
	uint64_t line; /* number of the current one, from 1 */
	enum line_kind kind;
	uint64_t classes, shards, records; /* so far */
	/* statistics: the block being read */
	uint32_t stat_kind, stat_field;
	uint64_t stat_next, stat_sum;
};

/* M6, M7: did all words of the line have their form? */
static int line_done(struct parse *p, struct tokens *t)
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

static uint32_t take_enum(struct tokens *t, enum shard_name_of what, const char *wanted)
{
	struct word w = tokens_take(t, wanted);
	uint32_t value = UINT32_MAX; /* refused by the schema's own rule */

	name_find(what, w.text, w.bytes, &value);
	return value;
}

static int line_group(struct parse *p, struct tokens *t)
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
	g.codec = take_enum(t, SHARD_NAME_CODEC, "codec");
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

static int line_field(struct parse *p, struct tokens *t)
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
	f.kind = take_enum(t, SHARD_NAME_KIND, "kind");
	tokens_literal(t, "dtype");
	f.dtype = take_enum(t, SHARD_NAME_DTYPE, "dtype");
	tokens_literal(t, "layout");
	f.layout = take_enum(t, SHARD_NAME_LAYOUT, "layout");
	tokens_literal(t, "semantic");
	f.semantic = take_enum(t, SHARD_NAME_SEMANTIC, "semantic");
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

static int line_class(struct parse *p, struct tokens *t)
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

/* M11: is the block of statistics that was being read complete? */
static int line_stats_done(struct parse *p)
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
static int begin_stat(struct parse *p, uint32_t kind, uint64_t field, uint64_t item)
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
	fits = schema_has_stat(f, kind) && item < (kind == SHARD_STAT_MOMENTS ? schema_channels(f) : SHARD_CLASSES_MAX);
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

static int line_stat(struct parse *p, struct tokens *t)
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
		rc = begin_stat(p, moments ? SHARD_STAT_MOMENTS : SHARD_STAT_CLASSES, field, item);
	if (rc)
		return rc;
	if (moments)
		MUST("M11", schema_moments_possible(&p->m->schema.field[field], p->m->record_count, &m),
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

bool manifest_name_good(const char *name, size_t bytes)
{
	size_t components = 1, length = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = name[i];

		if (c == '/') {
			if (!length || ++components > 2)
				return false;
			length = 0;
			continue;
		}
		if (!percent_is_plain(c, false) || c == '~' || ++length > 200 ||
		    (length == 1 && (c == '.' || c == '-')))
			return false;
	}
	return length > 0;
}

static int line_shard(struct parse *p, struct tokens *t)
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

/* ---- the file: its end, its first five lines, and the order of the others ---- */

int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err)
{
	uint8_t high_first[16];
	const char *end;
	bool good;

	MUST("M1", bytes >= 9 && !memcmp(text, "shardset ", 9),
	     "the file does not begin with 'shardset '; it is not a manifest");
	good = bytes > END_BYTES + 9 && text[bytes - 1] == '\n' && text[bytes - END_BYTES - 1] == '\n';
	end = good ? text + bytes - END_BYTES : NULL;
	good = good && !memcmp(end, "end ", 4) && end[68] == ' ' && hex_to_bytes(out->sha256, end + 4, 32) &&
	       hex_to_bytes(high_first, end + 69, 16);
	MUST("M2", good, "the last line is not 'end' with a SHA-256 and an XXH3 (is the file cut short?)");
	if (!good)
		return SHARD_E_CORRUPT; /* nothing behind this can be done without an end line */
	hash_turn(out->hash, high_first);
	out->end_at = bytes - END_BYTES;
	out->hash_at = bytes - 33;
	return SHARD_OK;
}

int manifest_check_hash(const struct manifest_end *end, const uint8_t hash[16], struct shard_error *err)
{
	MUST("M3", !memcmp(end->hash, hash, 16),
	     "the XXH3 on the end line is not that of the text: the manifest is damaged");
	return SHARD_OK;
}

/* M4: another number in canonical form, of any size, is another version. */
static bool is_other_version(struct tokens t)
{
	struct word w = tokens_take(&t, "version");
	size_t digits = 0;

	tokens_done(&t);
	while (digits < w.bytes && w.text[digits] >= '0' && w.text[digits] <= '9')
		digits++;
	return t.fault == TOKEN_OK && digits == w.bytes && (w.bytes == 1 || *w.text != '0') &&
	       !(w.bytes == 1 && *w.text == '1');
}

/* The five lines that there are once, in this order. */
static int parse_head(struct parse *p, struct tokens *t)
{
	struct manifest *m = p->m;
	struct shard_error *err = p->err;

	switch (p->line) {
	case 1:
		tokens_take(t, "shardset"); /* M1 saw it */
		MUST_OR(SHARD_E_UNSUPPORTED, "M4", !is_other_version(*t),
			"the manifest is of another version; this library reads version 1");
		tokens_number(t, "version", UINT64_MAX);
		break;
	case 2:
		tokens_literal(t, "records");
		m->record_count = tokens_number(t, "records", SHARD_DATASET_RECORDS_MAX);
		break;
	case 3:
		tokens_literal(t, "shards");
		m->shard_count = tokens_number(t, "shards", SHARD_DATASET_SHARDS_MAX);
		break;
	case 4:
		tokens_literal(t, "plan");
		m->has_plan_digest = !tokens_peek(t, "-");
		if (m->has_plan_digest)
			tokens_hex(t, "plan digest", m->plan_digest, 32);
		else
			tokens_literal(t, "-");
		break;
	default:
		tokens_literal(t, "order");
		if (tokens_peek(t, "shuffle")) {
			tokens_literal(t, "shuffle");
			m->order = SHARD_ORDER_SHUFFLE;
			m->seed = tokens_number(t, "seed", UINT64_MAX);
		} else if (tokens_peek(t, "source")) {
			tokens_literal(t, "source");
			m->order = SHARD_ORDER_SOURCE;
		} else {
			tokens_literal(t, "-");
		}
	}
	return line_done(p, t);
}

/* The lines go on with `kind`: is everything complete that ends before it? */
static int begin_kind(struct parse *p, enum line_kind kind)
{
	struct shard_error *err = p->err, broken;
	int rc = SHARD_OK;

	if (p->kind <= LINE_FIELD && kind > LINE_FIELD) {
		MUST("M6", p->line >= 5, "%" PRIu64 " lines stand before the end line; must be 5 or more", p->line);
		MUST("M8", p->m->schema.group_count && p->m->schema.field_count,
		     "there must be at least one group and one field");
		if (schema_check(&p->m->schema, &broken))
			MUST_OR(broken.status, "M9", false, "%s", broken.message);
	}
	if (p->kind <= LINE_STAT && kind > LINE_STAT)
		rc = line_stats_done(p);
	p->kind = kind;
	return rc;
}

/* A line behind the head: of the kind of the one before it, or of a later kind. */
static int parse_body(struct parse *p, struct tokens *t)
{
	static const struct {
		const char *word;
		int (*take)(struct parse *p, struct tokens *t);
	} kinds[LINE_KINDS] = {
		{"group", line_group}, {"field", line_field}, {"class", line_class},
		{"stat", line_stat},   {"shard", line_shard},
	};
	struct shard_error *err = p->err;
	enum line_kind kind = p->kind;
	int rc;

	while (kind < LINE_KINDS && !tokens_peek(t, kinds[kind].word))
		kind++;
	MUST("M6", kind < LINE_KINDS, "line %" PRIu64 " is of unknown form, or out of order", p->line);
	if (kind == LINE_KINDS)
		return SHARD_OK; /* only if the check above was taken out: it cannot be read */
	rc = begin_kind(p, kind);
	return rc ? rc : kinds[kind].take(p, t);
}

int manifest_parse(const char *text, size_t end_at, struct manifest *out, const struct manifest_sink *sink,
		   struct shard_error *err)
{
	struct parse p = {.m = out, .sink = sink, .err = err};
	const char *at = text, *end = text + end_at;
	int rc = SHARD_OK;

	memset(out, 0, sizeof(*out));
	while (!rc && at < end) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		struct tokens line = {at, lf ? lf : end, TOKEN_OK, NULL};
		size_t bytes = (size_t)(line.end - line.at);

		p.line++;
		at = line.end + 1;
		MUST("M5", bytes < SHARD_MANIFEST_LINE_BYTES_MAX && tokens_line_good(line.at, bytes),
		     "line %" PRIu64 " (%zu bytes) is empty, longer than %u, not plain ASCII, or has spaces where "
		     "none belong",
		     p.line, bytes + 1, SHARD_MANIFEST_LINE_BYTES_MAX);
		rc = p.line <= 5 ? parse_head(&p, &line) : parse_body(&p, &line);
	}
	if (!rc)
		rc = begin_kind(&p, LINE_KINDS);
	if (rc)
		return rc;
	MUST("M13", p.shards == out->shard_count, "%" PRIu64 " shard lines, but 'shards' says %" PRIu64, p.shards,
	     out->shard_count);
	MUST("M14", p.records == out->record_count, "the shards have %" PRIu64 " records, but 'records' says %" PRIu64,
	     p.records, out->record_count);
	out->shard_count = p.shards; /* what is there, if a check above was taken out */
	out->record_count = p.records;
	out->class_count = p.classes;
	return SHARD_OK;
}

/* ---- numbers to lines ---- */

void manifest_hash_text(char out[33], const uint8_t hash[16])
{
	uint8_t high_first[16];

	hash_turn(high_first, hash);
	hex_from_bytes(out, high_first, 16);
}

size_t manifest_write_group(char *out, const struct shard_schema *s, uint32_t group)
{
	const struct shard_group *g = &s->group[group];

	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"group %u stride %" PRIu64 " record %" PRIu64 " align %u codec %s unit %u chunk %u\n",
				group, g->stride, g->record_bytes, g->align_log2,
				shard_name(SHARD_NAME_CODEC, g->codec), g->unit_records, g->chunk_records);
}

/* "3,4,5" of the values whose bit is set, "-" for none. */
static void write_numbers(char out[128], const uint32_t *value, uint32_t count)
{
	int used = snprintf(out, 128, count ? "" : "-");

	for (uint32_t i = 0; i < count; i++)
		used += snprintf(out + used, 128 - (size_t)used, i ? ",%u" : "%u", value[i]);
}

size_t manifest_write_field(char *out, const struct shard_schema *s, uint32_t field)
{
	const struct shard_field *f = &s->field[field];
	uint32_t axis[SHARD_DIMS_MAX], axes = 0;
	char shape[128], ragged[128], length[16] = "-";

	for (uint32_t d = 0; d < SHARD_DIMS_MAX; d++)
		if (f->ragged_axes >> d & 1)
			axis[axes++] = d;
	write_numbers(shape, f->shape, f->ndim);
	write_numbers(ragged, axis, axes);
	if (axes)
		snprintf(length, sizeof(length), "%u", f->length_field);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"field %u %s group %u kind %s dtype %s layout %s semantic %s offset %" PRIu64
				" bytes %" PRIu64 " shape %s axes %s length %s\n",
				field, f->name, f->group, shard_name(SHARD_NAME_KIND, f->kind),
				shard_name(SHARD_NAME_DTYPE, f->dtype), shard_name(SHARD_NAME_LAYOUT, f->layout),
				shard_name(SHARD_NAME_SEMANTIC, f->semantic), f->offset, f->bytes, shape, ragged,
				length);
}

size_t manifest_write_moments(char *out, uint32_t field, uint32_t channel, const struct shard_moments *m)
{
	unsigned __int128 v = (unsigned __int128)m->sum_squares_high << 64 | m->sum_squares_low;
	char digits[40];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX, "stat moments %u %u %" PRIu64 " %" PRIu64 " %s\n",
				field, channel, m->count, m->sum, digits + at);
}

size_t manifest_write_shard(char *out, uint64_t idx, const struct manifest_shard *s)
{
	char root[33], sha256[65];

	manifest_hash_text(root, s->root);
	hex_from_bytes(sha256, s->sha256, 32);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"shard %" PRIu64 " %.*s bytes %" PRIu64 " records %" PRIu64 " root %s sha256 %s\n", idx,
				(int)s->file_name_bytes, s->file, s->file_bytes, s->record_count, root, sha256);
}
