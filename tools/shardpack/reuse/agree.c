/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.c - may records of these datasets lie in one?
 *
 * * Manifests are canonical, so equal fields are equal lines.
 */
#include "tools/shardpack/reuse/reuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

/* ---- fields ---- */

static const char *first_group(const struct part *p)
{
	struct shard_view text;

	shard_dataset_manifest(p->ds, &text);
	return strstr(text.data, "\ngroup 0 ") + 1; /* NUL-terminated; it was read, so the line is there */
}

static bool is_schema(const char *line)
{
	return !strncmp(line, "group ", 6) || !strncmp(line, "field ", 6);
}

/* "ragged i32 [<=9]" */
static void describe(const struct shard_field *f, char out[160])
{
	int at = snprintf(out, 160, "%s %s [", shard_kind_name(f->kind), shard_dtype_name(f->dtype));

	for (uint32_t i = 0; i < f->ndim; i++)
		at += snprintf(out + at, 160 - (size_t)at, "%s%s%" PRIu32, i ? "," : "",
			       f->ragged_axes >> i & 1 ? "<=" : "", f->shape[i]);
	snprintf(out + at, 160 - (size_t)at, "]");
}

/* Two fields of one name hold other values, or have other room for them.  What is to be typed? */
static int refuse_field(const struct part *a, const struct shard_field *x, const struct part *b,
			const struct shard_field *y)
{
	const struct part *narrow = x->shape[0] < y->shape[0] ? a : b;
	uint32_t room = x->shape[0] > y->shape[0] ? x->shape[0] : y->shape[0];
	bool other_room = x->kind == y->kind && x->dtype == y->dtype && x->ndim == y->ndim && x->ragged_axes &&
			  x->ragged_axes == y->ragged_axes;
	char here[160], there[160];

	for (uint32_t i = 0; i < x->ndim; i++)
		other_room = other_room && (x->shape[i] == y->shape[i] || x->ragged_axes >> i & 1);
	describe(x, here);
	describe(y, there);
	fail(EXIT_MISMATCH, "%s and %s have different fields: '%s' is %s in the first, and %s in the second", a->dir,
	     b->dir, x->name, here, there);
	if (other_room && !strcmp(x->name, "doc_lengths"))
		hint("pack the documents of %s again, with --max-documents %" PRIu32
		     "; or train on both as a mixture, which needs no equal room",
		     narrow->dir, room);
	else if (other_room)
		hint("write the records of one of them again, with the larger shape in the schema; or train on both as "
		     "a mixture, which needs no equal room");
	else
		hint("pack the sources of one of them again, with the options that `shardcat info` prints for the "
		     "other");
	return EXIT_MISMATCH;
}

static int fields_agree(const struct part *a, const struct part *b)
{
	const struct shard_schema *one = shard_dataset_schema(a->ds), *two = shard_dataset_schema(b->ds);
	const char *x = first_group(a), *y = first_group(b);

	for (uint32_t f = 0; f < one->field_count && f < two->field_count; f++) {
		const struct shard_field *p = &one->field[f], *q = &two->field[f];

		if (!strcmp(p->name, q->name) && (p->dtype != q->dtype || p->kind != q->kind || p->ndim != q->ndim ||
						  memcmp(p->shape, q->shape, sizeof(p->shape))))
			return refuse_field(a, p, b, q);
	}
	for (;;) {
		size_t n = strcspn(x, "\n"), m = strcspn(y, "\n");

		if (!is_schema(x) && !is_schema(y))
			return EXIT_DONE;
		if (n != m || memcmp(x, y, n)) {
			fail(EXIT_MISMATCH,
			     "%s and %s have different fields: the first has '%.*s' where the second has '%.*s'",
			     a->dir, b->dir, is_schema(x) ? (int)n : 0, x, is_schema(y) ? (int)m : 0, y);
			break;
		}
		x += n + 1;
		y += m + 1;
	}
	hint("pack the sources of one of them again, with the options that `shardcat info` prints for the other");
	return EXIT_MISMATCH;
}

/* ---- recipes ---- */

static int recipe_agrees(const struct part *a, const struct text *one, const struct part *b, const struct text *two)
{
	struct made_line x, y;

	if (made_of_same(one, two, &x, &y))
		return EXIT_DONE;
	fail(EXIT_MISMATCH, "%s and %s were not packed alike: the first has '%.*s' where the second has '%.*s'", a->dir,
	     b->dir, x.at ? x.bytes : 0, x.at ? x.at : "", y.at ? y.bytes : 0, y.at ? y.at : "");
	if ((x.at && !strncmp(x.at, "bytes-version ", 14)) || (y.at && !strncmp(y.at, "bytes-version ", 14)))
		hint("they are of releases that make other bytes of the same input; pack the sources of the older one "
		     "again");
	else
		hint("pack the sources of one of them again, with the options that `shardcat info` prints for the "
		     "other");
	return EXIT_MISMATCH;
}

/* Each shard says how it was made; a dataset that was merged has shards of several plans. */
static int recipes_agree(const struct part *part, uint32_t count)
{
	struct text one = {0}, two = {0};
	const struct part *first = NULL;
	struct made_line x, y;
	bool warned = false;
	int code = EXIT_DONE;

	for (uint32_t p = 0; code == EXIT_DONE && p < count; p++)
		for (uint64_t i = 0; code == EXIT_DONE && i < part[p].count; i++) {
			code = made_of_read(&part[p], i, first ? &two : &one);
			if (!first) {
				first = &part[p];
				continue;
			}
			if (code == EXIT_DONE)
				code = recipe_agrees(first, &one, &part[p], &two);
			if (code != EXIT_DONE || warned || made_of_same_decoders(&one, &two, &x, &y))
				continue;
			warned = true;
			warn("%s was packed with %.*s and %s with %.*s; where the decoders differ, so do pixels",
			     first->dir, x.bytes - 8, x.at + 8, part[p].dir, y.bytes - 8, y.at + 8);
		}
	text_free(&one);
	text_free(&two);
	return code;
}

/* ---- classes ---- */

static bool has_labels(const struct part *p)
{
	const struct shard_schema *s = shard_dataset_schema(p->ds);

	for (uint32_t i = 0; i < s->field_count; i++)
		if (s->field[i].semantic == SHARD_LABEL)
			return true;
	return false;
}

static int refuse_classes(const struct part *a, const struct part *b)
{
	hint("class numbers are bytes of records: pack the sources of %s again with --classes %s, and with names that "
	     "are only in %s behind those",
	     b->dir, a->dir, b->dir);
	return EXIT_MISMATCH;
}

/* `b` has at most as many classes as `a`. */
static int classes_agree(const struct part *a, const struct part *b)
{
	if (!b->info.class_count && a->info.class_count && b->info.record_count && has_labels(b)) {
		fail(EXIT_MISMATCH,
		     "%s has labels and no names of classes, and %s has %" PRIu64
		     ": nothing says that they number them alike",
		     b->dir, a->dir, a->info.class_count);
		return refuse_classes(a, b);
	}
	for (uint64_t c = 0; c < b->info.class_count; c++) {
		const char *x = shard_dataset_class_name(a->ds, c), *y = shard_dataset_class_name(b->ds, c);

		if (strcmp(x, y)) {
			fail(EXIT_MISMATCH, "class %" PRIu64 " is '%s' in %s and '%s' in %s", c, x, a->dir, y, b->dir);
			return refuse_classes(a, b);
		}
	}
	return EXIT_DONE;
}

int parts_agree(const struct part *part, uint32_t count, uint32_t *names)
{
	int code = EXIT_DONE;

	*names = 0;
	for (uint32_t p = 1; p < count; p++)
		if (part[p].info.class_count > part[*names].info.class_count)
			*names = p;
	for (uint32_t p = 1; code == EXIT_DONE && p < count; p++)
		code = fields_agree(&part[0], &part[p]);
	if (code == EXIT_DONE)
		code = recipes_agree(part, count);
	for (uint32_t p = 0; code == EXIT_DONE && p < count; p++)
		if (p != *names)
			code = classes_agree(&part[*names], &part[p]);
	return code;
}
