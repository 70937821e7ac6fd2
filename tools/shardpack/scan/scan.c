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

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/classes.h"

void scan_warn(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	warn("%s", line);
	text_add(&scan->warnings, line, strlen(line));
	text_add(&scan->warnings, "\n", 1);
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

void scan_free(struct scan *scan)
{
	text_free(&scan->warnings);
}
