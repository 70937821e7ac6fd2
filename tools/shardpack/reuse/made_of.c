/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_of.c - how the records of a shard were made, by its provenance
 *
 * * shardpack's own provenance is the recipe, line by line; recipe.c.  That of other programs must be
 * equal as a whole, but for what libshard has added: what was counted in the records.
 */
#include "tools/shardpack/reuse/reuse.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

static int copy_provenance(const struct part *p, struct shard_reader *r, struct text *out)
{
	struct shard_view view;
	struct shard_error err;
	char *copy;
	int code;

	if (shard_reader_provenance(r, &view, &err) != SHARD_OK)
		return part_fail(&err);
	copy = malloc(view.bytes + 1);
	if (!copy)
		return fail(EXIT_IO, "%s: out of memory for a shard's provenance", p->dir);
	code = part_copy(r, &view, copy);
	out->bytes = 0;
	if (code == EXIT_DONE)
		text_add(out, copy, view.bytes);
	free(copy);
	if (code != EXIT_DONE)
		return code;
	return text_failed(out) ? fail(EXIT_IO, "%s: out of memory for a shard's provenance", p->dir) : EXIT_DONE;
}

int made_of_read(const struct part *p, uint64_t i, struct text *out)
{
	struct shard_reader *r;
	struct shard_error err;
	int code;

	if (shard_dataset_open_reader(p->ds, p->first + i, &r, &err) != SHARD_OK)
		return part_fail(&err);
	code = copy_provenance(p, r, out);
	shard_reader_close(r);
	return code;
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

static struct made_line line_at(const char *at)
{
	return (struct made_line){at, (int)strcspn(at, "\n")};
}

/* The first line from *at on that begins with none of these words; NULL at the end. */
static struct made_line next(const char **at, const char *const *skipped)
{
	while (**at) {
		struct made_line line = line_at(*at);
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

bool made_of_same(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b)
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

bool made_of_same_decoders(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b)
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
