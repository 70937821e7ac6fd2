/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - which label an image has, when no class folder says so
 */
#include "tools/shardpack/scan/labels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/grow.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/path_table.h"
#include "tools/shardpack/scan/request.h"

static int open_regex(struct labels *l, const struct request *r)
{
	char why[200];
	int rc = regcomp(&l->regex, r->o->label_regex, REG_EXTENDED);

	if (rc != 0) {
		regerror(rc, &l->regex, why, sizeof(why));
		return cli_misuse(r->args, "--label-regex %s: %s", r->o->label_regex, why);
	}
	l->has_regex = true;
	l->regex_text = r->o->label_regex;
	if (!l->regex.re_nsub)
		return cli_misuse(r->args,
				  "--label-regex %s: needs a part in brackets, which is the label: '^([^_]*)_'",
				  l->regex_text);
	return EXIT_DONE;
}

static int add_entry(void *context, const struct path_row *row)
{
	struct labels *l = context;

	if (!grow(&l->entry, &l->capacity, l->count + 1, sizeof(*l->entry)))
		return fail(EXIT_IO, "out of memory for a list of labels");
	l->entry[l->count].path_at = l->text.bytes;
	text_add(&l->text, row->path, strlen(row->path) + 1);
	l->entry[l->count].label_at = l->text.bytes;
	text_add(&l->text, row->label, strlen(row->label) + 1);
	l->entry[l->count].line = row->line;
	l->entry[l->count++].used = false;
	return text_failed(&l->text) ? fail(EXIT_IO, "out of memory for a list of labels") : EXIT_DONE;
}

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct labels *l = context;
	const struct labels_entry *x = a, *y = b;

	return strcmp(l->text.data + x->path_at, l->text.data + y->path_at);
}

static int open_list(struct labels *l, const struct request *r)
{
	const char *key = r->o->label_key ? r->o->label_key : "label";
	int code;

	if (!path_table_is_one(r->o->label_list))
		return cli_misuse(r->args, "--labels %s: the name must end with .csv, .tsv or .jsonl",
				  r->o->label_list);
	l->has_list = true;
	l->list_name = r->o->label_list;
	code = path_table_read(r->o->label_list, r->o->label_list, key, NULL, add_entry, l);
	if (code != EXIT_DONE)
		return code;
	qsort_r(l->entry, l->count, sizeof(*l->entry), compare_entries, l);
	for (uint64_t i = 1; i < l->count; i++)
		if (!strcmp(l->text.data + l->entry[i - 1].path_at, l->text.data + l->entry[i].path_at))
			return fail(EXIT_BAD, "%s: lines %" PRIu64 " and %" PRIu64 ": '%s' appears twice", l->list_name,
				    l->entry[i - 1].line, l->entry[i].line, l->text.data + l->entry[i].path_at);
	return EXIT_DONE;
}

int labels_open(struct labels *l, const struct request *r)
{
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
	text_free(&l->text);
	free(l->entry);
	memset(l, 0, sizeof(*l));
}

bool labels_given(const struct labels *l)
{
	return l->has_regex || l->has_list;
}

static int copy_label(const char *where, const char *label, size_t bytes, char *out)
{
	if (!text_is_name(label, bytes, CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD, "%s: label '%.*s' must be UTF-8 of 1 to %d bytes; it has %zu", where,
			    (int)(bytes < 200 ? bytes : 200), label, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

static int match(const struct labels *l, const char *where, const char *path, char *out)
{
	regmatch_t part[2];

	if (regexec(&l->regex, path, 2, part, 0) != 0)
		return fail(EXIT_BAD, "%s: --label-regex %s does not match '%s'", where, l->regex_text, path);
	return copy_label(where, path + part[1].rm_so, part[1].rm_so < 0 ? 0 : (size_t)(part[1].rm_eo - part[1].rm_so),
			  out);
}

static int look_up(struct labels *l, const char *where, const char *path, char *out)
{
	uint64_t low = 0, high = l->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = strcmp(path, l->text.data + l->entry[middle].path_at);

		if (order == 0) {
			const char *label = l->text.data + l->entry[middle].label_at;

			l->entry[middle].used = true;
			return copy_label(where, label, strlen(label), out);
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return fail(EXIT_BAD, "%s: --labels %s has no line for '%s'", where, l->list_name, path);
}

int labels_find(struct labels *l, const char *where, const char *path, const char *folder, char *out)
{
	if (l->has_regex)
		return match(l, where, path, out);
	if (l->has_list)
		return look_up(l, where, path, out);
	if (folder)
		return copy_label(where, folder, strlen(folder), out);
	return fail(EXIT_BAD, "%s: is in no class folder; give labels with --labels FILE or --label-regex RE", where);
}

int labels_check_used(const struct labels *l)
{
	uint64_t unused = 0, first = 0;

	for (uint64_t i = 0; i < l->count; i++)
		if (!l->entry[i].used && (!unused++ || l->entry[i].line < l->entry[first].line))
			first = i;
	if (!unused)
		return EXIT_DONE;
	return fail(EXIT_BAD, "%s: line %" PRIu64 ": '%s' is not an image of the source (%" PRIu64 " such lines)",
		    l->list_name, l->entry[first].line, l->text.data + l->entry[first].path_at, unused);
}
