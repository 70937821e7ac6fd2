/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_path_table.c - a table of JSON lines without memory: an error, and never a bad row
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"
#include "tools/common/message.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

static int left; /* allocations of jansson that succeed */

static void *alloc(size_t bytes)
{
	if (left-- > 0)
		return malloc(bytes);
	errno = ENOMEM; /* as malloc() does */
	return NULL;
}

struct seen {
	int rows, bad;
	bool right;
};

static int take(void *context, const struct path_row *row)
{
	struct seen *s = context;

	s->rows++;
	s->bad += row->bad != NULL;
	s->right = s->right && row->path && row->label && row->value[0] && !strcmp(row->path, "a.jpg") &&
		   !strcmp(row->label, "[\"x\",\"y\"]") && !strcmp(row->value[0], "[1,2.5]");
	return EXIT_DONE;
}

TEST(an_allocation_that_fails_is_no_bad_row)
{
	static const char text[] = "{\"path\": \"a.jpg\", \"label\": [\"x\", \"y\"], \"n\": [1, 2.5]}\n";
	static struct recipe r = {.label = LABEL_LIST, .label_room = 8, .field_count = 1};
	char name[600];
	int fd, code = EXIT_IO, tried;

	snprintf(name, sizeof(name), "%s/t_path_table.XXXXXX.jsonl", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	fd = mkstemps(name, 6);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	r.from[0] = (struct field_source){.kind = FIELD_RAGGED, .from = "n"};
	json_set_alloc_funcs(alloc, free);
	for (tried = 0; code == EXIT_IO && tried < 1000; tried++) {
		struct seen seen = {.right = true};

		left = tried;
		code = path_table_read(name, name, NULL, "label", &r, false, NULL, take, &seen);
		CHECK(code == EXIT_IO || (code == EXIT_DONE && seen.rows == 1));
		CHECK(seen.right && !seen.bad);
	}
	json_set_alloc_funcs(malloc, free);
	unlink(name);
	CHECK(code == EXIT_DONE && tried > 10);
}

TEST_MAIN()
