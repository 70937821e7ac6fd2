/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_parse.c - M1 to M14 of format/SHARD.md: text to numbers
 *
 * Pure.  One pass over the lines with a small state.  Here are the form of the file, its first five
 * lines and the order of the others; manifest_lines.c takes those apart.
 */
#include "libshard/format/format.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/digits.h"
#include "libshard/format/invariant.h"
#include "libshard/format/schema.h"

#define END_BYTES (4 + 64 + 1 + 32 + 1) /* "end " SHA-256 " " XXH3 LF */

int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err)
{
	uint8_t high_first[16];
	const char *end;
	bool good;

	MUST("M1", bytes >= 9 && !memcmp(text, "shardset ", 9),
	     "the file does not begin with 'shardset '; it is no manifest");
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

/* M4: nothing but another number in canonical form, of any size, is another version. */
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

static int check_text(struct parse *p, const char *line, size_t bytes)
{
	struct shard_error *err = p->err;

	MUST("M5", bytes < SHARD_MANIFEST_LINE_BYTES_MAX && tokens_line_good(line, bytes),
	     "line %" PRIu64 " (%zu bytes) is empty, longer than %u, not plain ASCII, or has spaces where none belong",
	     p->line, bytes + 1, SHARD_MANIFEST_LINE_BYTES_MAX);
	return SHARD_OK;
}

/* Behind the last field line. */
static int schema_complete(struct parse *p)
{
	struct shard_error *err = p->err, broken;
	int rc;

	MUST("M6", p->line >= 5, "%" PRIu64 " lines stand before the end line; must be 5 or more", p->line);
	MUST("M8", p->m->schema.group_count && p->m->schema.field_count,
	     "there must be at least one group and one field");
	rc = schema_check(&p->m->schema, &broken);
	if (rc)
		MUST_OR(rc, "M9", false, "%s", broken.message);
	return SHARD_OK;
}

/* The lines go on with `kind`: is everything complete that ends before it? */
static int go_on(struct parse *p, enum line_kind kind)
{
	int rc = SHARD_OK;

	if (p->kind <= LINE_FIELD && kind > LINE_FIELD)
		rc = schema_complete(p);
	if (!rc && p->kind <= LINE_STAT && kind > LINE_STAT)
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
		return SHARD_OK; /* only if the check above was taken out: nobody can read it */
	rc = go_on(p, kind);
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

		p.line++;
		at = line.end + 1;
		rc = check_text(&p, line.at, (size_t)(line.end - line.at));
		if (!rc)
			rc = p.line <= 5 ? parse_head(&p, &line) : parse_body(&p, &line);
	}
	if (!rc)
		rc = go_on(&p, LINE_KINDS);
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
