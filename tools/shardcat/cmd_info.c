/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_info.c - shardcat info: what a dataset or shard holds
 *
 * The manifest of a dataset says all of this except the provenance, which is in the shards.  The
 * line `pixels` comes from the provenance of the first shard, if that is there.  -v prints all of
 * it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/escape.h"
#include "tools/common/human.h"
#include "tools/shardcat/dataset/describe.h"
#include "tools/shardcat/shardcat.h"

#define CLASSES_SHOWN 20 /* in text, without -v */

struct info_options {
	const char *path;
	bool json;
};

static const char *order_name(uint32_t order)
{
	static const char *const names[] = {"unknown", "source", "shuffle"};

	return order < 3 ? names[order] : names[0];
}

static void print_escaped(const char *text, size_t text_bytes)
{
	escape_write(stdout, text, text_bytes, ESCAPE_EXACT);
}

static void print_size(const struct target *t)
{
	char count[HUMAN_CHARS], other[HUMAN_CHARS], bytes[HUMAN_CHARS], hex[HEX_CHARS];
	struct shard_dataset_info dataset;
	struct shard_info shard;

	fputs(t->dataset ? "dataset   " : "shard     ", stdout);
	print_escaped(t->path, strlen(t->path));
	if (t->dataset) {
		shard_dataset_info(t->dataset, &dataset);
		printf("\nid        %s\nrecords   %s in %s shard%s, %s\n", dataset.id,
		       human_count(count, t->record_count), human_count(other, dataset.shard_count),
		       dataset.shard_count == 1 ? "" : "s", human_bytes(bytes, dataset.data_bytes));
		if (dataset.order == SHARD_ORDER_SHUFFLE)
			printf("order     shuffled when packed, seed %" PRIu64 "\n", dataset.seed);
		else if (dataset.order == SHARD_ORDER_SOURCE)
			puts("order     as in the source");
		return;
	}
	shard_reader_info(t->reader, &shard);
	printf("\nroot      %s\nrecords   %s of %s planned, %s\n", root_text(hex, shard.root),
	       human_count(count, shard.record_count), human_count(other, shard.planned_records),
	       human_bytes(bytes, shard.file_bytes));
	printf("format    %" PRIu32 ".%" PRIu32 "\n", shard.version_major, shard.version_minor);
	if (shard.miss_count)
		printf("left out  %s inputs\n", human_count(count, shard.miss_count));
	printf("keys      %s\n", shard.key_count ? "yes" : "no");
}

/*
 * Whose pixels a resize gives: what a transform takes from the recipe, whoever packed the dataset.
 * NULL if there are no images, or the first shard is not there.
 */
static const char *pixels_of(struct target *t)
{
	const struct shard_schema *s = t->schema;
	struct shard_reader *reader = t->reader;
	struct shard_dataset_info info;
	struct shard_error err;
	uint32_t pixels, f = 0;
	int rc;

	while (f < s->field_count && s->field[f].semantic != SHARD_IMAGE && s->field[f].layout != SHARD_HWC &&
	       s->field[f].layout != SHARD_CHW)
		f++;
	if (f == s->field_count)
		return NULL;
	if (!reader) {
		shard_dataset_info(t->dataset, &info);
		if (!info.shard_count || shard_dataset_reader(t->dataset, 0, &reader, &err))
			return NULL;
	}
	rc = shard_reader_pixels(reader, &pixels, &err);
	return !rc ? shard_pixels_name(pixels) : rc == SHARD_E_UNSUPPORTED ? "of a later release" : NULL;
}

/* One class: name and count, as far as they are known.  SHARD_END past the last. */
static int class_at(struct target *t, uint64_t class_idx, const char **name, uint64_t *records, struct shard_error *err)
{
	const struct shard_field *label = target_label_field(t);
	int rc = SHARD_END;

	*name = target_class_name(t, class_idx);
	if (label)
		rc = target_class_records(t, (uint32_t)(label - t->schema->field), class_idx, records, err);
	return rc == SHARD_END && *name ? SHARD_OK : rc;
}

static int print_classes(struct target *t)
{
	uint64_t shown = message_shows(MESSAGE_VERBOSE) ? UINT64_MAX : CLASSES_SHOWN, records = 0, class_idx = 0;
	struct shard_error err;
	char count[HUMAN_CHARS];
	const char *name;
	int rc;

	for (; (rc = class_at(t, class_idx, &name, &records, &err)) == SHARD_OK; class_idx++) {
		if (!class_idx)
			puts("classes");
		if (class_idx >= shown)
			continue;
		printf("  %-4" PRIu64, class_idx);
		if (target_label_field(t))
			printf(" %8s", human_count(count, records));
		if (name)
			fputs("  ", stdout);
		if (name)
			print_escaped(name, strlen(name));
		putchar('\n');
	}
	if (class_idx > shown)
		printf("  and %s more: -v shows all\n", human_count(count, class_idx - shown));
	return rc < 0 ? fail_of_library(&err) : EXIT_DONE;
}

/* Its lines keep their ends; all else in it is escaped. */
static int print_provenance(struct target *t)
{
	struct shard_reader *reader;
	struct shard_error err;
	struct shard_view text;
	const char *at;
	int rc = target_first_reader(t, &reader);

	if (rc || !reader)
		return rc;
	rc = shard_reader_provenance(reader, &text, &err);
	if (rc)
		return fail_of_library(&err);
	at = text.data;
	if (text.bytes)
		puts(t->reader ? "provenance" : "provenance of the first shard");
	for (size_t left = text.bytes; left;) {
		const char *end = memchr(at, '\n', left);
		size_t length = end ? (size_t)(end - at) : left;

		fputs("  ", stdout);
		print_escaped(at, length);
		putchar('\n');
		length += end != NULL;
		at += length;
		left -= length;
	}
	return EXIT_DONE;
}

static int print_sections(const struct target *t)
{
	struct shard_section section;
	struct shard_error err;
	struct shard_info info;

	if (!t->reader)
		return EXIT_DONE;
	shard_reader_info(t->reader, &info);
	puts("sections       offset          bytes          items");
	for (uint32_t i = 0; i < info.section_count; i++) {
		int rc = shard_reader_section(t->reader, i, &section, &err);

		if (rc)
			return fail_of_library(&err);
		printf("  %-4s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", shard_section_name(section.type),
		       section.offset, section.bytes, section.item_count);
	}
	return EXIT_DONE;
}

/* Nothing but the records has the number of these. */
static void print_not_finite(const struct target *t)
{
	uint32_t f = 0;

	while (f < t->schema->field_count &&
	       (t->schema->field[f].dtype < SHARD_F16 || t->schema->field[f].dtype > SHARD_F64))
		f++;
	if (f == t->schema->field_count)
		return;
	fputs("NaN, inf  not recorded; they are counted by: shardcat stats ", stdout);
	print_escaped(t->path, strlen(t->path));
	putchar('\n');
}

static int info_text(struct target *t)
{
	bool verbose = message_shows(MESSAGE_VERBOSE);
	const char *pixels = pixels_of(t);
	int rc;

	print_size(t);
	if (pixels)
		printf("pixels    %s\n", pixels);
	print_not_finite(t);
	describe_schema(stdout, t->schema);
	rc = describe_moments(stdout, t);
	if (!rc)
		rc = print_classes(t);
	if (!rc && verbose)
		rc = print_sections(t);
	if (!rc && verbose)
		rc = print_provenance(t);
	return rc;
}

static void size_json(struct json_out *j, const struct target *t)
{
	struct shard_dataset_info dataset;
	struct shard_info shard;
	char hex[HEX_CHARS];

	json_out_string(j, "path", t->path);
	json_out_string(j, "type", t->dataset ? "dataset" : "shard");
	json_out_u64(j, "record_count", t->record_count);
	if (t->dataset) {
		shard_dataset_info(t->dataset, &dataset);
		json_out_string(j, "id", dataset.id);
		json_out_u64(j, "shard_count", dataset.shard_count);
		json_out_u64(j, "data_bytes", dataset.data_bytes);
		json_out_string(j, "order", order_name(dataset.order));
		if (dataset.order == SHARD_ORDER_SHUFFLE)
			json_out_u64(j, "seed", dataset.seed);
		json_out_u64(j, "class_count", dataset.class_count);
	} else {
		shard_reader_info(t->reader, &shard);
		json_out_string(j, "root", root_text(hex, shard.root));
		json_out_u64(j, "data_bytes", shard.file_bytes);
		json_out_u64(j, "planned_records", shard.planned_records);
		json_out_u64(j, "plan_shard", shard.plan_shard);
		json_out_u64(j, "key_count", shard.key_count);
		json_out_u64(j, "miss_count", shard.miss_count);
	}
}

static int info_json(struct target *t)
{
	struct shard_error err;
	struct json_out j;
	const char *name, *pixels = pixels_of(t);
	int rc, shard_rc;

	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	size_json(&j, t);
	if (pixels)
		json_out_string(&j, "pixels", pixels);
	describe_schema_json(&j, t->schema);
	rc = describe_moments_json(&j, t);
	json_out_array(&j, "classes");
	for (uint64_t i = 0, records = UINT64_MAX; (shard_rc = class_at(t, i, &name, &records, &err)) == SHARD_OK;
	     i++) {
		json_out_object_line(&j, NULL);
		json_out_u64(&j, "class", i);
		if (name)
			json_out_string(&j, "name", name);
		if (records != UINT64_MAX)
			json_out_u64(&j, "record_count", records);
		json_out_end(&j);
	}
	json_out_end(&j);
	json_out_end(&j);
	json_out_finish(&j);
	return shard_rc < 0 ? fail_of_library(&err) : rc;
}

static int run(const struct cli_args *args)
{
	const struct info_options *o = args->options;
	struct target t;
	int rc = target_open(&t, o->path);

	if (!rc)
		rc = o->json ? info_json(&t) : info_text(&t);
	target_close(&t);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_OR_SHARD(struct info_options), {0}};

static const struct cli_option options[] = {AS_JSON(struct info_options, "print one JSON document"), {0}};
/* clang-format on */

const struct cli_verb verb_info = {
	.name = "info",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct info_options),
	.run = run,
};
