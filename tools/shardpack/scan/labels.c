/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - which label an image has, when no class folder says so
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/*
 * What Perl and Python would read otherwise than POSIX does, at `at`: there it is a part of a valid
 * expression with another meaning, and so gives wrong labels.  Returns its length, or 0.
 */
static int perl_only(const char *at)
{
	if (at[0] == '\\' && at[1] && strchr("dDAZ", at[1]))
		return 2;
	if (at[0] == '(' && at[1] == '?')
		return 2;
	return at[0] && strchr("*+?}", at[0]) && at[1] == '?' ? 2 : 0;
}

/* The first such part, outside of brackets such as [^_]; NULL if there is none. */
static const char *find_perl(const char *text)
{
	const char *at = text;

	while (*at && !perl_only(at)) {
		if (*at == '[') {
			at += at[1] == '^' ? 2 : 1;
			at += *at == ']';
			at += strcspn(at, "]");
			at += *at == ']';
		} else {
			at += at[0] == '\\' && at[1] ? 2 : 1;
		}
	}
	return *at ? at : NULL;
}

static int open_regex(struct labels *l, const struct request *r)
{
	const char *perl = find_perl(r->o->label_regex);
	char why[200];
	int rc;

	if (perl)
		return cli_misuse(
			r->args,
			"--label-regex %s: '%.*s' is of Perl's expressions, and these are POSIX extended ones: "
			"write [0-9] for a digit, ( ) for each group, and [^_]*_ for what ends before a _",
			r->o->label_regex, perl_only(perl), perl);
	rc = regcomp(&l->regex, r->o->label_regex, REG_EXTENDED);
	if (rc != 0) {
		regerror(rc, &l->regex, why, sizeof(why));
		return cli_misuse(r->args, "--label-regex %s: %s", r->o->label_regex, why);
	}
	l->has_regex = true;
	if (!l->regex.re_nsub)
		return cli_misuse(r->args,
				  "--label-regex %s: needs a part in brackets, which is the label: '^([^_]*)_'",
				  l->o->label_regex);
	return EXIT_DONE;
}

static int out_of_memory(const struct labels *l)
{
	return shelf_refuse(l->text.shelf, "a list of %" PRIu64 " labels", l->count);
}

static int add_entry(void *context, const struct path_row *row)
{
	struct labels *l = context;
	const char *label, *suffix = l->o->path_suffix ? l->o->path_suffix : "";

	if (row->bad && !row->path)
		return fail(EXIT_BAD, "%s: line %" PRIu64 ": %s", l->o->label_list, row->line, row->bad->message);
	if (!grow_on(l->text.shelf, &l->entry, &l->capacity, l->count + 1, sizeof(*l->entry)))
		return out_of_memory(l);
	l->entry[l->count].path_at = l->text.bytes;
	text_add(&l->text, row->path, strlen(row->path));
	text_add(&l->text, suffix, strlen(suffix) + 1);
	l->entry[l->count].label_at = l->text.bytes;
	label = row->label ? row->label : ""; /* of a row that is bad: then its image is */
	text_add(&l->text, label, strlen(label) + 1);
	l->entry[l->count].line = row->line;
	l->entry[l->count++].used = false;
	return text_failed(&l->text) ? out_of_memory(l) : EXIT_DONE;
}

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct labels *l = context;
	const struct labels_entry *x = a, *y = b;

	int order = strcmp(l->text.data + x->path_at, l->text.data + y->path_at);

	return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static int open_list(struct labels *l, const struct request *r)
{
	const char *key = r->o->label_key ? r->o->label_key : "label";
	int rc;

	if (!file_name_is_table(r->o->label_list))
		return cli_misuse(r->args, "--labels %s: the name must end with .csv, .tsv or .jsonl",
				  r->o->label_list);
	l->text.shelf = r->plan->text.shelf;
	rc = path_table_read(r->o->label_list, r->o->label_list, r->o->path_key, key, NULL, false, l->text.shelf,
			     add_entry, l);
	if (rc != EXIT_DONE)
		return rc;
	if (!shelf_sort(l->text.shelf, l->entry, l->count, sizeof(*l->entry), compare_entries, l))
		return out_of_memory(l);
	for (uint64_t i = 1; i < l->count; i++)
		if (!strcmp(l->text.data + l->entry[i - 1].path_at, l->text.data + l->entry[i].path_at))
			return fail(EXIT_BAD, "%s: lines %" PRIu64 " and %" PRIu64 ": '%s' appears twice",
				    l->o->label_list, l->entry[i - 1].line, l->entry[i].line,
				    l->text.data + l->entry[i].path_at);
	return EXIT_DONE;
}

int labels_open(struct labels *l, const struct request *r)
{
	l->o = r->o;
	if (r->o->label_regex && r->o->label_list)
		return cli_misuse(r->args, "--label-regex and --labels exclude each other");
	if (r->o->label_regex)
		return open_regex(l, r);
	return r->o->label_list ? open_list(l, r) : EXIT_DONE;
}

void labels_close(struct labels *l)
{
	if (l->has_regex)
		regfree(&l->regex);
	shelf_free(l->text.shelf, l->entry);
	text_free(&l->text);
	memset(l, 0, sizeof(*l));
}

bool labels_given(const struct pack_options *o)
{
	return o->label_regex || o->label_list || o->no_label;
}

static int copy_label(const char *label, size_t bytes, char *out, struct bad_input *bad)
{
	if (!text_is_name(label, bytes, CLASS_NAME_BYTES_MAX))
		return bad_input(bad, SHARD_MISS_VALUE, "label '%.*s' must be UTF-8 of 1 to %d bytes; it has %zu",
				 (int)(bytes < 200 ? bytes : 200), label, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

static int find_in_list(struct labels *l, const char *path, char *out, struct bad_input *bad)
{
	uint64_t low = 0, high = l->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = strcmp(path, l->text.data + l->entry[middle].path_at);

		if (order == 0) {
			const char *label = l->text.data + l->entry[middle].label_at;

			l->entry[middle].used = true;
			if (!label[0])
				return bad_input(bad, SHARD_MISS_INCOMPLETE, "%.150s: line %" PRIu64 ": no label",
						 l->o->label_list, l->entry[middle].line);
			return copy_label(label, strlen(label), out, bad);
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return bad_input(bad, SHARD_MISS_INCOMPLETE, "--labels %s has no line for '%.150s'", l->o->label_list, path);
}

int labels_missing(const char *where, const char *more)
{
	return fail(EXIT_BAD,
		    "%s: is in no class folder; give labels with --labels FILE%s or --label-regex RE, or pack without "
		    "labels with --no-label",
		    where, more);
}

int labels_find(struct labels *l, const char *where, const char *path, const char *folder, char *out,
		struct bad_input *bad)
{
	regmatch_t part[2];

	if (l->has_regex && regexec(&l->regex, path, 2, part, 0) != 0)
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "--label-regex %s does not match '%.150s'",
				 l->o->label_regex, path);
	if (l->has_regex)
		return copy_label(path + part[1].rm_so, part[1].rm_so < 0 ? 0 : (size_t)(part[1].rm_eo - part[1].rm_so),
				  out, bad);
	if (l->o->label_list)
		return find_in_list(l, path, out, bad);
	if (folder)
		return copy_label(folder, strlen(folder), out, bad);
	if (!l->o->no_label)
		return labels_missing(where, "");
	out[0] = '\0';
	return EXIT_DONE;
}

int labels_add_unused(struct image_list *images)
{
	const struct labels *l = images->labels;
	char name[PLAN_PATH_BYTES_MAX];
	struct bad_input bad;
	int rc = EXIT_DONE;

	images->by_folder = false;
	for (uint64_t i = 0; rc == EXIT_DONE && i < l->count; i++) {
		const struct labels_entry *e = &l->entry[i];
		const char *path = l->text.data + e->path_at, *label = l->text.data + e->label_at;
		bool is_label = text_is_name(label, strlen(label), CLASS_NAME_BYTES_MAX);

		if (e->used)
			continue;
		bad_input(&bad, SHARD_MISS_MISSING, "%.120s: line %" PRIu64 ": '%.120s' is not an image of the source",
			  l->o->label_list, e->line, path);
		image_list_row("labels", e->line, name);
		if (strlen(path) < PLAN_PATH_BYTES_MAX && text_stays_below(path))
			strcpy(name, path);
		rc = image_list_add_bad(images, name, is_label ? label : NULL, 0, PLAN_NO_FILE, 0, &bad);
	}
	return rc;
}

int labels_refuse_many(const struct request *r, const char *path)
{
	return fail(EXIT_USAGE,
		    "%s/%s: --multi-label takes labels from a table, or from members .cls or .json of an archive (the "
		    "latter with --label-key)",
		    r->root->name, path);
}
