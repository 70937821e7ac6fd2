/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dry_run.c - the plan, shown instead of done
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/scan/scan.h"

#define FIRST_RECORDS 10

static void print_recipe(const struct recipe *r)
{
	struct text lines = {0};
	const char *at;
	size_t before;

	recipe_write(r, &lines);
	recipe_write_versions(r, &lines);
	/* In a plan no resize is 0. */
	at = r->transform.resize || !recipe_is_images(r) ? NULL : strstr(lines.data, "resize 0\n");
	before = at ? (size_t)(at - lines.data) : lines.bytes;
	fwrite(lines.data, 1, before, stdout);
	if (at)
		printf("resize none\n%.*s", (int)(lines.bytes - before - strlen("resize 0\n")),
		       at + strlen("resize 0\n"));
	text_free(&lines);
}

/* Names are the user's, so they are escaped. */
static void print_classes(const struct plan *plan, const uint64_t *inputs)
{
	char name[SHARD_KEY_BYTES_MAX + 1];
	for (uint64_t i = 0; i < plan->class_count; i++) {
		plan_class_name(plan, i, name);
		printf("class %" PRIu64 " ", i);
		escape_write(stdout, name, strlen(name), ESCAPE_EXACT);
		if (plan_has_labels(plan))
			printf(" %" PRIu64 " image%s", inputs[i], inputs[i] == 1 ? "" : "s");
		putchar('\n');
	}
}

static void print_first(const struct plan *plan)
{
	char path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;
	for (uint64_t ordinal = 0; ordinal < plan->input_count && ordinal < FIRST_RECORDS; ordinal++) {
		plan_input(plan, plan_input_at(plan, ordinal), &input);
		printf("record %" PRIu64 " ", ordinal);
		if (input.class_idx != PLAN_NO_CLASS)
			printf("class %" PRIu32 " ", input.class_idx);
		else if (input.classes)
			printf("classes %.*s ", (int)strcspn(input.classes, " "), input.classes);
		escape_write(stdout, path, plan_input_path(plan, &input, path), ESCAPE_EXACT);
		putchar('\n');
	}
}

/* "record 3072 bytes image, 16 bytes label": the stride of each group, and its fields. */
static void print_record(const struct shard_schema *s)
{
	printf("record");
	for (uint32_t g = 0; g < s->group_count; g++) {
		const char *before = " bytes ";

		printf("%s%" PRIu64, g ? ", " : " ", s->group[g].stride);
		for (uint32_t f = 0; f < s->field_count; f++)
			if (s->field[f].group == g) {
				printf("%s%s", before, s->field[f].name);
				before = " and ";
			}
	}
	putchar('\n');
}

int dry_run(const struct job *job, const struct scan *scan)
{
	const struct plan *plan = job->plan;
	uint64_t *inputs = xcalloc(plan->class_count + 1, sizeof(*inputs));
	char source[HUMAN_CHARS], need[HUMAN_CHARS], have[HUMAN_CHARS];
	struct text provenance = {0};
	uint64_t free_bytes = 0, needed = space_needed(job, NULL), shard_bytes = 0;
	int rc = free_space(job->out_dir, &free_bytes);

	if (!rc) {
		if (plan_has_labels(plan))
			plan_count_classes(plan, inputs);
		recipe_provenance(&plan->recipe, plan->digest, &provenance);
		for (uint64_t i = 0; i < plan->shard_count; i++)
			shard_bytes += space_of_shard(job, i, provenance.bytes);
		print_recipe(&plan->recipe);
		print_classes(plan, inputs);
		printf("inputs %" PRIu64 ", %s (%" PRIu64 " bytes); %" PRIu64 " other files are ignored\n",
		       plan->input_count, human_bytes(source, plan->source_bytes), plan->source_bytes,
		       scan->ignored.count);
		print_record(&job->schema);
		printf("shards %" PRIu64 " of up to %" PRIu64 " records, %s%" PRIu64 " bytes in all\n",
		       plan->shard_count, plan->recipe.shard_records, plan->recipe.codec == SHARD_RAW ? "" : "at most ",
		       shard_bytes);
		printf("disk %s needed, %s free at %s%s\n", human_bytes(need, needed), human_bytes(have, free_bytes),
		       job->out_dir, needed > free_bytes ? ": NOT ENOUGH" : "");
		print_first(plan);
	}
	text_free(&provenance);
	free(inputs);
	return rc;
}
