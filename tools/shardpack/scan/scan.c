/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - what a scan found beside the inputs
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shard.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"

static void keep(struct text *lines, const char *line)
{
	text_add(lines, line, strlen(line));
	text_add(lines, "\n", 1);
}

void scan_warn(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	warn("%s", line);
	keep(&scan->warnings, line);
}

void scan_note(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	note("%s", line);
	keep(&scan->notes, line);
}

void scan_absent(struct scan *scan, uint32_t field, const char *fmt, ...)
{
	struct scan_field *f = &scan->field[field];
	va_list ap;

	if (f->absent[0])
		return;
	va_start(ap, fmt);
	vsnprintf(f->absent, sizeof(f->absent), fmt, ap);
	va_end(ap);
}

void scan_barren(struct scan *scan, const char *where)
{
	if (!scan->barren_count++)
		snprintf(scan->barren, sizeof(scan->barren), "%s", where);
}

void scan_warn_of_barren(struct scan *scan, const char *what)
{
	if (scan->barren_count)
		scan_warn(scan, "%" PRIu64 " file%s no %s (the first is '%s')", scan->barren_count,
			  scan->barren_count == 1 ? " has" : "s have", what, scan->barren);
}

int scan_refuse_barren(const struct scan *s, const char *root, const char *what, const char *remedy)
{
	if (s->barren_count > 1)
		return fail(EXIT_BAD, "%s: no %s in it, nor in %" PRIu64 " other file%s%s", s->barren, what,
			    s->barren_count - 1, s->barren_count > 2 ? "s" : "", remedy);
	return fail(EXIT_BAD, "%s: no %s in it%s", s->barren_count ? s->barren : root, what, remedy);
}

static bool is_part(const char *name)
{
	static const char *const parts[] = {"train", "training", "val", "valid", "validation",
					    "test",  "testing",	 "dev", NULL};

	for (const char *const *p = parts; *p; p++)
		if (!strcasecmp(name, *p))
			return true;
	return false;
}

/* What file managers, notebooks and storage systems make. */
static bool is_left_behind(const char *name)
{
	return name[0] == '.' || name[0] == '@' || !strcmp(name, "__MACOSX") || !strcmp(name, "lost+found");
}

/* The folders of a path, and hidden files; its class was looked at already. */
static bool is_path_left_behind(const char *path, const char *class_name)
{
	char name[256];

	for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (is_left_behind(name) && strcmp(name, class_name))
			return true;
	}
	return path[0] == '.';
}

void scan_warn_of_hidden(struct scan *scan, const struct plan *plan)
{
	char class_name[SHARD_KEY_BYTES_MAX + 1] = "", path[PLAN_PATH_BYTES_MAX], first[256];
	struct plan_input input;
	uint64_t count = 0;

	for (uint64_t i = 0; i < plan->input_count; i++) {
		plan_input(plan, i, &input);
		if (plan_has_labels(plan) && input.class_idx < plan->class_count)
			plan_class_name(plan, input.class_idx, class_name);
		plan_input_path(plan, &input, path);
		if (is_path_left_behind(path, class_name) && !count++)
			snprintf(first, sizeof(first), "%.255s", path);
	}
	if (count)
		scan_warn(scan,
			  "%" PRIu64 " image%s hidden, or in a folder that programs leave behind, and %s packed as "
			  "others are; remove what is a copy (the first is '%s')",
			  count, count == 1 ? " is" : "s are", count == 1 ? "is" : "are", first);
}

void scan_warn_of_folders(struct scan *scan, const struct classes *folders)
{
	const char *part = NULL, *left = NULL;
	uint64_t part_count = 0, left_count = 0;

	for (uint64_t i = 0; i < folders->count; i++) {
		if (is_part(folders->name[i]) && !part_count++)
			part = folders->name[i];
		if (is_left_behind(folders->name[i]) && !left_count++)
			left = folders->name[i];
	}
	if (part && (part_count > 1 || folders->count == 1))
		scan_warn(
			scan,
			"class folder '%s' is called like a part of a dataset, and is packed as a class; to pack that "
			"part, name the folder itself as the source",
			part);
	if (left)
		scan_warn(scan,
			  "class folder '%s' is called like what programs leave behind, and is packed as a class%s; "
			  "remove it if it is none",
			  left, left_count > 1 ? ", as others are" : "");
}

static bool is_digits(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

/*
 * "10" stands before "2", and "1" is class 0 if there is no "0": right, as torchvision has it, and
 * yet not what most expect.
 */
void scan_warn_of_numbers(struct scan *scan, const struct classes *folders)
{
	for (uint64_t i = 1; i < folders->count; i++) {
		const char *a = folders->name[i - 1], *b = folders->name[i];

		if (!is_digits(a) || !is_digits(b) || strlen(a) <= strlen(b))
			continue;
		scan_warn(scan,
			  "class folders are numbers and sort as text, as in torchvision: class %" PRIu64 " is '%s', "
			  "before '%s'; set the numbers with --classes FILE",
			  i - 1, a, b);
		return;
	}
	for (uint64_t i = 0; i < folders->count; i++) {
		if (!is_digits(folders->name[i]) || strtoull(folders->name[i], NULL, 10) == i)
			continue;
		scan_warn(scan,
			  "class folders are numbers but are counted from 0, as in torchvision: class %" PRIu64
			  " is '%s'; set the numbers with --classes FILE",
			  i, folders->name[i]);
		return;
	}
}

int scan_end(struct scan *scan)
{
	struct text kinds = {0};
	uint64_t count = 0;

	ignored_sort(&scan->ignored);
	for (uint32_t i = 0; i < scan->ignored.ending_count; i++) {
		const struct ignored_ending *e = &scan->ignored.ending[i];

		if (!ignored_is_foreign_image(e->text))
			continue;
		text_format(&kinds, "%s%s %" PRIu64, count ? ", " : "", e->text, e->count);
		count += e->count;
	}
	if (count)
		scan_warn(scan, "%" PRIu64 " ignored file%s of a kind that is not read: %s", count,
			  count == 1 ? " is an image" : "s are images", text_failed(&kinds) ? "" : kinds.data);
	text_free(&kinds);
	return text_failed(&scan->ignored.names)
		       ? fail(EXIT_IO, "out of memory for the names of %" PRIu64 " ignored files", scan->ignored.count)
		       : EXIT_DONE;
}

void scan_free(struct scan *scan)
{
	ignored_free(&scan->ignored);
	text_free(&scan->warnings);
	text_free(&scan->notes);
}
