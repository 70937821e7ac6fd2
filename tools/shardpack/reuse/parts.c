/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - the datasets that one is made of: do they go together, and is anything in two of them?
 */
#include "tools/shardpack/reuse/reuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"

/* ---- shards that lie in a row in a finished dataset ---- */

int part_fail(const struct shard_error *err)
{
	int rc = err->status == SHARD_E_EXISTS ? EXIT_USAGE : exit_code_of_status(err->status);

	return fail(rc, "%s", err->message);
}

int part_open(struct part *p, const char *dir)
{
	struct shard_error err;

	*p = (struct part){.dir = dir};
	if (shard_dataset_open(&p->ds, dir, NULL, &err) != SHARD_OK)
		return part_fail(&err);
	shard_dataset_info(p->ds, &p->info);
	p->count = p->info.shard_count;
	return EXIT_DONE;
}

void part_close(struct part *p)
{
	shard_dataset_close(p->ds);
	p->ds = NULL;
}

int part_entry(const struct part *p, uint64_t i, struct shard_entry *out)
{
	struct shard_error err;

	return shard_dataset_entry(p->ds, p->first + i, out, &err) == SHARD_OK ? EXIT_DONE : part_fail(&err);
}

struct copying {
	char *to;
	struct shard_view from;
};

static void copy(void *context)
{
	const struct copying *c = context;

	memcpy(c->to, c->from.data, c->from.bytes);
}

/* The key of a record of the dataset, with a NUL behind it, and its length; 0 if it has none. */
static int part_key(const struct part *p, uint64_t record, char out[SHARD_KEY_BYTES_MAX + 1], size_t *bytes)
{
	struct shard_error err;

	if (shard_dataset_key(p->ds, record, out, bytes, &err) != SHARD_OK)
		return part_fail(&err);
	out[*bytes] = '\0';
	return EXIT_DONE;
}

int made_of_read(const struct part *p, uint64_t i, struct text *out)
{
	struct copying c = {.to = NULL};
	struct shard_reader *r;
	struct shard_error err;
	int rc = EXIT_DONE;

	out->bytes = 0;
	if (shard_dataset_open_reader(p->ds, p->first + i, &r, &err) != SHARD_OK)
		return part_fail(&err);
	if (shard_reader_provenance(r, &c.from, &err) != SHARD_OK)
		rc = part_fail(&err);
	if (!rc) {
		c.to = xmalloc(c.from.bytes + 1, 1);
		/* A copy, since a disk may fail under a map. */
		if (c.from.bytes && shard_reader_guarded(r, copy, &c, &err) != SHARD_OK)
			rc = part_fail(&err);
		else
			text_add(out, c.to, c.from.bytes);
	}
	free(c.to);
	shard_reader_close(r);
	return rc;
}

static bool begins(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/* Lines that may differ although the records were made alike. */
static const char *const may_differ[] = {"not-finite ", NULL};
static const char *const may_differ_in_recipes[] = {"limit ",	      "formats ", "order ", "seed ",	   "on-error ",
						    "shard-records ", "version ", "plan ",  "not-finite ", NULL};
static const char *const none[] = {NULL};

/* The first line from *at on that begins with none of these words; NULL at the end. */
static struct made_line next(const char **at, const char *const *skipped)
{
	while (**at) {
		struct made_line line = {*at, (int)strcspn(*at, "\n")};
		const char *const *word = skipped;

		*at += line.bytes + ((*at)[line.bytes] == '\n');
		while (*word && !begins(line.at, *word))
			word++;
		if (!*word)
			return line;
	}
	return (struct made_line){NULL, 0};
}

static bool same_line(const struct made_line *a, const struct made_line *b)
{
	return a->bytes == b->bytes && !memcmp(a->at, b->at, (size_t)a->bytes);
}

/*
 * Are records alike that were made so?  Lines that decide only which inputs there are, in which
 * order and in which shards, do not count; nor do versions of decoders, and counts of NaN and infinite
 * values.  If not, *a and *b are the first lines that differ; one of them may be NULL, for a line that
 * is missing.
 */
static bool made_of_same(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b)
{
	const char *x = one->data, *y = two->data;
	bool ours = begins(x, "made by shardpack\n") && begins(y, "made by shardpack\n");
	const char *const *skipped = ours ? may_differ_in_recipes : may_differ;

	do {
		*a = next(&x, skipped);
		*b = next(&y, skipped);
	} while (a->at && b->at && same_line(a, b));
	return !a->at && !b->at;
}

/* Were both made with the same decoders, as far as they name the same?  If not, the two lines. */
static bool made_of_same_decoders(const struct text *one, const struct text *two, struct made_line *a,
				  struct made_line *b)
{
	for (const char *x = one->data; *x;) {
		*a = next(&x, none);
		if (!begins(a->at, "version "))
			continue;
		for (const char *y = two->data; *y;) {
			size_t name = strlen("version ") + strcspn(a->at + strlen("version "), " \n") + 1;

			*b = next(&y, none);
			if (!strncmp(a->at, b->at, name) && !same_line(a, b))
				return false;
		}
	}
	return true;
}

/* ---- may their records lie in one dataset?  Manifests are canonical, so equal fields are equal lines ---- */

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
	int at = snprintf(out, 160, "%s %s [", shard_name(SHARD_NAME_KIND, f->kind),
			  shard_name(SHARD_NAME_DTYPE, f->dtype));

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
	int rc = EXIT_DONE;

	for (uint32_t p = 0; !rc && p < count; p++)
		for (uint64_t i = 0; !rc && i < part[p].count; i++) {
			rc = made_of_read(&part[p], i, first ? &two : &one);
			if (!first) {
				first = &part[p];
				continue;
			}
			if (!rc)
				rc = recipe_agrees(first, &one, &part[p], &two);
			if (rc || warned || made_of_same_decoders(&one, &two, &x, &y))
				continue;
			warned = true;
			warn("%s was packed with %.*s and %s with %.*s; where the decoders differ, so do pixels",
			     first->dir, x.bytes - 8, x.at + 8, part[p].dir, y.bytes - 8, y.at + 8);
		}
	text_free(&one);
	text_free(&two);
	return rc;
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
	int rc = EXIT_DONE;

	*names = 0;
	for (uint32_t p = 1; p < count; p++)
		if (part[p].info.class_count > part[*names].info.class_count)
			*names = p;
	for (uint32_t p = 1; !rc && p < count; p++)
		rc = fields_agree(&part[0], &part[p]);
	if (!rc)
		rc = recipes_agree(part, count);
	for (uint32_t p = 0; !rc && p < count; p++)
		if (p != *names)
			rc = classes_agree(&part[*names], &part[p]);
	return rc;
}

/* ---- is something in two of them?  Of a key the XXH3-128 is kept: no two keys are expected to share it ---- */

/* ---- shards ---- */

struct shard_place {
	uint8_t sha256[32];
	uint32_t part;
	uint64_t shard;
};

static int by_place(const struct shard_place *x, const struct shard_place *y)
{
	return x->part != y->part ? (x->part < y->part ? -1 : 1) : x->shard < y->shard ? -1 : x->shard > y->shard;
}

static int by_sha256(const void *a, const void *b)
{
	const struct shard_place *x = a, *y = b;
	int order = memcmp(x->sha256, y->sha256, sizeof(x->sha256));

	return order ? order : by_place(x, y);
}

/* A shard that is in two parts. */
static int check_shards(const struct part *part, uint32_t count)
{
	struct shard_place *place;
	const struct shard_place *least = NULL;
	struct shard_entry e;
	uint64_t shards = 0, n = 0;
	int rc = EXIT_DONE;

	for (uint32_t p = 0; p < count; p++)
		shards += part[p].count;
	place = xcalloc(shards + 1, sizeof(*place));
	for (uint32_t p = 0; !rc && p < count; p++)
		for (uint64_t i = 0; !rc && i < part[p].count; i++) {
			rc = part_entry(&part[p], i, &e);
			if (rc || !e.record_count)
				continue;
			place[n] = (struct shard_place){.part = p, .shard = part[p].first + i};
			memcpy(place[n++].sha256, e.sha256, sizeof(e.sha256));
		}
	qsort(place, n, sizeof(*place), by_sha256);
	for (uint64_t i = 1; i < n; i++)
		if (place[i - 1].part != place[i].part &&
		    !memcmp(place[i - 1].sha256, place[i].sha256, sizeof(place[i].sha256)) &&
		    (!least || by_place(&place[i], least) < 0))
			least = &place[i];
	if (!rc && least)
		rc = fail(EXIT_BAD,
			  "shard %" PRIu64 " of %s and shard %" PRIu64
			  " of %s have the same bytes, so each record of them would be there twice; leave one of "
			  "them out, or add --duplicates keep",
			  least[-1].shard, part[least[-1].part].dir, least->shard, part[least->part].dir);
	free(place);
	return rc;
}

/* ---- keys ---- */

struct key_of_record {
	uint64_t hash[2];
	uint64_t number;
	uint32_t part;
};

/* Keys of the records of all parts. */
struct keys {
	struct shelf *shelf;
	struct key_of_record *key;
	uint64_t count, capacity;
};

static int add_part(struct keys *t, const struct part *part, uint32_t p)
{
	char key[SHARD_KEY_BYTES_MAX + 1];
	struct key_of_record k = {.part = p};
	struct shard_reader *r;
	struct shard_entry e;
	struct shard_info info;
	struct shard_error err;
	size_t bytes = 0;
	int rc = EXIT_DONE;

	for (uint64_t i = 0; !rc && i < part[p].count; i++) {
		rc = part_entry(&part[p], i, &e);
		if (!rc && shard_dataset_open_reader(part[p].ds, part[p].first + i, &r, &err) != SHARD_OK)
			rc = part_fail(&err);
		if (rc)
			return rc;
		shard_reader_info(r, &info);
		shard_reader_close(r);
		for (uint64_t j = 0; !rc && info.key_count && j < e.record_count; j++) {
			if (j % 4096 == 0 && interrupted())
				return EXIT_INTERRUPTED;
			k.number = e.first_record + j;
			rc = part_key(&part[p], k.number, key, &bytes);
			if (rc || !bytes) /* it has no name that could be another's */
				continue;
			shard_xxh128(key, bytes, (uint8_t *)k.hash);
			if (!grow_on(t->shelf, &t->key, &t->capacity, t->count + 1, sizeof(*t->key)))
				return shelf_refuse(t->shelf, "%" PRIu64 " keys", t->count + 1);
			t->key[t->count++] = k;
		}
	}
	return rc;
}

/* Equal ones of one part lie together. */
static int by_hash(const void *a, const void *b, void *context)
{
	const struct key_of_record *x = a, *y = b;
	int order = memcmp(x->hash, y->hash, sizeof(x->hash));

	(void)context;
	if (order)
		return order;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* A key that two of the datasets have may be one record that is there twice, or two of one name. */
static int refuse_key(const struct part *part, const struct key_of_record *at, uint64_t found)
{
	char key[SHARD_KEY_BYTES_MAX + 1];
	size_t bytes;
	int rc = part_key(&part[at[0].part], at[0].number, key, &bytes);

	if (rc)
		return rc;
	fail(EXIT_BAD, "record %" PRIu64 " of %s and record %" PRIu64 " of %s have one key, '%s'%s", at[0].number,
	     part[at[0].part].dir, at[1].number, part[at[1].part].dir, key, found > 1 ? ", and others do, too" : "");
	hint("%" PRIu64 " record%s of this kind; if they are other images of the same names, add --duplicates keep",
	     found, found == 1 ? "" : "s");
	return EXIT_BAD;
}

/* A key that is in two parts. */
static int check_keys(const struct part *part, uint32_t count, const char *out)
{
	struct keys t = {0};
	const struct key_of_record *k, *least = NULL;
	char *near = xstrdup(out);
	uint64_t found = 0;
	int rc = EXIT_DONE;

	if (files_nearest(near))
		t.shelf = shelf_open(near);
	free(near);
	for (uint32_t p = 0; !rc && p < count; p++)
		rc = add_part(&t, part, p);
	if (!rc && !shelf_sort(t.shelf, t.key, t.count, sizeof(*t.key), by_hash, NULL))
		rc = shelf_refuse(t.shelf, "%" PRIu64 " keys", t.count);
	k = t.key;
	for (uint64_t i = 1; !rc && i < t.count; i++) {
		if (memcmp(k[i - 1].hash, k[i].hash, sizeof(k->hash)) || k[i - 1].part == k[i].part)
			continue;
		if (!least || k[i].part < least->part || (k[i].part == least->part && k[i].number < least->number))
			least = &k[i];
		found++;
	}
	if (!rc && found)
		rc = refuse_key(part, least - 1, found);
	shelf_free(t.shelf, t.key);
	shelf_close(t.shelf);
	return rc;
}

int parts_unique(const struct part *part, uint32_t count, const char *near)
{
	int rc = check_shards(part, count);

	return rc ? rc : check_keys(part, count, near);
}
