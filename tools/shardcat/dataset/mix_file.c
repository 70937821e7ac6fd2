/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_file.c - a mixture from a file: a line `WEIGHT DIR [SELECTION]` for each source
 *
 * Words are separated by spaces or tabs.  Empty lines and those that begin with # are left out.
 * Paths are those of the folder that the command runs in.
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"

#define BYTES_MAX (SHARD_MIX_WEIGHTS_MAX * UINT64_C(1024)) /* of a file; a line has two paths at most */
#define BLANK	  " \t\r"

static int read_text(struct mix_file *f)
{
	FILE *in = fopen(f->path, "re");
	size_t bytes;

	if (!in)
		return fail(EXIT_IO, "%s: %s", f->path, strerror(errno));
	f->text = malloc(BYTES_MAX + 1);
	bytes = f->text ? fread(f->text, 1, BYTES_MAX + 1, in) : 0;
	if (!f->text || ferror(in)) {
		int os_code = f->text ? errno : ENOMEM;

		fclose(in);
		errno = os_code;
		return fail(EXIT_IO, "%s: %s", f->path, f->text ? strerror(os_code) : "out of memory");
	}
	fclose(in);
	if (utf8_is_utf16(f->text, bytes))
		return fail(EXIT_USAGE, "%s: " UTF8_UTF16, f->path);
	if (bytes > BYTES_MAX || memchr(f->text, 0, bytes))
		return fail(
			EXIT_USAGE,
			"%s: is no list of sources, which has a line `WEIGHT DIR [SELECTION]` for each, and at most "
			"%" PRIu64 " bytes",
			f->path, BYTES_MAX);
	f->text[bytes] = 0;
	return EXIT_DONE;
}

/* The dataset at this path, opened once. */
static int open_target(struct mix_file *f, const char *path, struct target **out)
{
	int rc;

	for (uint32_t i = 0; i < f->target_count; i++)
		if (!strcmp(f->target[i].path, path)) {
			*out = &f->target[i];
			return EXIT_DONE;
		}
	*out = &f->target[f->target_count];
	rc = target_open_dataset(*out, path);
	f->target_count += !rc;
	return rc;
}

static int take_line(struct mix_file *f, char *line, unsigned number)
{
	char *rest = NULL, *end, *weight = strtok_r(line, BLANK, &rest), *dir, *selection;
	struct shard_mix_source *s = &f->source[f->count];
	struct shard_selection *chosen;
	unsigned long value;
	int rc;

	if (!weight || *weight == '#')
		return EXIT_DONE;
	dir = strtok_r(NULL, BLANK, &rest);
	selection = strtok_r(NULL, BLANK, &rest);
	value = strtoul(weight, &end, 10);
	if (*weight < '1' || *weight > '9' || *end || value > SHARD_MIX_WEIGHTS_MAX || !dir ||
	    strtok_r(NULL, BLANK, &rest))
		return fail(EXIT_USAGE,
			    "%s, line %u: must be `WEIGHT DIR [SELECTION]`, with a weight of 1 to %d, such as: 3 train",
			    f->path, number, SHARD_MIX_WEIGHTS_MAX);
	if (f->count == SHARD_MIX_WEIGHTS_MAX)
		return fail(EXIT_USAGE, "%s, line %u: a mixture has at most %d sources", f->path, number,
			    SHARD_MIX_WEIGHTS_MAX);
	rc = open_target(f, dir, &f->of[f->count]);
	if (rc)
		return rc;
	rc = target_selection(f->of[f->count], selection, &chosen);
	if (rc)
		return rc;
	*s = (struct shard_mix_source){.ds = f->of[f->count]->dataset, .selection = chosen, .weight = (uint32_t)value};
	f->count++;
	return EXIT_DONE;
}

int mix_file_open(struct mix_file *f, const char *path)
{
	struct shard_error err;
	char *line, *next;
	unsigned number = 1;
	int rc;

	*f = (struct mix_file){.path = path};
	f->source = calloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->source));
	f->of = calloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->of));
	f->target = calloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->target));
	if (!f->source || !f->of || !f->target)
		return fail(EXIT_IO, "out of memory for the sources of a mixture");
	rc = read_text(f);
	for (line = rc ? NULL : f->text + utf8_mark(f->text, strlen(f->text)); !rc && line && *line;
	     line = next, number++) {
		next = line + strcspn(line, "\n");
		next += *next != 0;
		line[strcspn(line, "\n")] = 0;
		rc = take_line(f, line, number);
	}
	if (!rc && !f->count)
		return fail(EXIT_USAGE, "%s: has no sources; it needs a line `WEIGHT DIR [SELECTION]` for each", path);
	if (rc)
		return rc;
	rc = shard_mix_open(&f->mix, f->source, f->count, NULL, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

void mix_file_close(struct mix_file *f)
{
	shard_mix_close(f->mix);
	for (uint32_t i = 0; f->source && i < f->count; i++)
		shard_selection_close((struct shard_selection *)f->source[i].selection);
	for (uint32_t i = 0; f->target && i < f->target_count; i++)
		target_close(&f->target[i]);
	free(f->source);
	free((void *)f->of);
	free(f->target);
	free(f->text);
}
