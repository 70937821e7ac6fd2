/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_info.c - shardcat info: what a dataset or shard holds
 *
 * The manifest of a dataset says all of this except the provenance, which is in the shards.  The
 * line `pixels` comes from the provenance of the first shard, if that is there.  -v prints all of
 * it.  The counts of NaN and infinite values are sums over the provenance of all shards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/text.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define CLASSES_SHOWN 20   /* in text, without -v */
#define SHARDS_READ   1000 /* for NaN and infinite values, without -v: a second on a slow network */

struct info_options {
	const char *path;
	bool json;
};

static void print_escaped(const char *text, size_t text_bytes)
{
	escape_write(stdout, text, text_bytes, ESCAPE_EXACT);
}

static void print_size(const struct input *in)
{
	char count[HUMAN_CHARS], other[HUMAN_CHARS], bytes[HUMAN_CHARS], hex[HEX_CHARS];
	struct shard_dataset_info dataset;
	struct shard_info shard;

	fputs(in->dataset ? "dataset   " : "shard     ", stdout);
	print_escaped(in->path, strlen(in->path));
	if (in->dataset) {
		shard_dataset_info(in->dataset, &dataset);
		printf("\nid        %s\nrecords   %s in %s shard%s, %s\n", dataset.id,
		       human_count(count, in->record_count), human_count(other, dataset.shard_count),
		       dataset.shard_count == 1 ? "" : "s", human_bytes(bytes, dataset.data_bytes));
		if (dataset.order == SHARD_ORDER_SHUFFLE)
			printf("order     shuffled when packed, seed %" PRIu64 "\n", dataset.seed);
		else if (dataset.order == SHARD_ORDER_SOURCE)
			puts("order     as in the source");
		return;
	}
	shard_reader_info(in->reader, &shard);
	printf("\nroot      %s\nrecords   %s of %s planned, %s\n", root_text(hex, shard.root),
	       human_count(count, shard.record_count), human_count(other, shard.planned_records),
	       human_bytes(bytes, shard.file_bytes));
	printf("format    %" PRIu32 ".%" PRIu32 "\n", shard.version_major, shard.version_minor);
	if (shard.miss_count)
		printf("left out  %s inputs\n", human_count(count, shard.miss_count));
	printf("keys      %s\n", shard.key_count ? "yes" : "no");
}

/*
 * The library whose pixels a resize gives, as a transform takes it from the recipe.  NULL if the
 * dataset has no images, or the first shard is not there.
 */
static const char *pixels_of(struct input *in)
{
	const struct shard_schema *s = in->schema;
	struct shard_reader *reader = in->reader;
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
		shard_dataset_info(in->dataset, &info);
		if (!info.shard_count || shard_dataset_reader(in->dataset, 0, &reader, &err))
			return NULL;
	}
	rc = shard_reader_pixels(reader, &pixels, &err);
	return !rc ? shard_name(SHARD_NAME_PIXELS, pixels) : rc == SHARD_E_UNSUPPORTED ? "of a later release" : NULL;
}

/* One class: name and count, as far as they are known.  SHARD_END past the last. */
static int class_at(struct input *in, uint64_t class_idx, const char **name, uint64_t *records, struct shard_error *err)
{
	const struct shard_field *label = input_label_field(in);
	int rc = SHARD_END;

	*name = input_class_name(in, class_idx);
	if (label)
		rc = input_class_records(in, (uint32_t)(label - in->schema->field), class_idx, records, err);
	return rc == SHARD_END && *name ? SHARD_OK : rc;
}

static int print_classes(struct input *in)
{
	uint64_t shown = message_shows(MESSAGE_VERBOSE) ? UINT64_MAX : CLASSES_SHOWN, records = 0, class_idx = 0;
	struct shard_error err;
	char count[HUMAN_CHARS];
	const char *name;
	int rc;

	for (; (rc = class_at(in, class_idx, &name, &records, &err)) == SHARD_OK; class_idx++) {
		if (!class_idx)
			puts("classes");
		if (class_idx >= shown)
			continue;
		printf("  %-4" PRIu64, class_idx);
		if (input_label_field(in))
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

/* ---- provenance ---- */

/* Its lines keep their ends; all else in it is escaped. */
static int print_provenance(struct input *in)
{
	struct shard_reader *reader;
	struct shard_error err;
	char *text;
	int rc = input_first_reader(in, &reader);

	if (rc || !reader)
		return rc;
	rc = input_provenance(reader, &text, &err);
	if (rc)
		return fail_of_library(&err);
	if (*text)
		puts(in->reader ? "provenance" : "provenance of the first shard");
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, "\n");

		fputs("  ", stdout);
		print_escaped(at, length);
		putchar('\n');
		at += length + (at[length] == '\n');
	}
	free(text);
	return EXIT_DONE;
}

/* ---- values that are NaN or infinite ---- */

/* What the shards have recorded: format/SHARD.md 2.8. */
struct not_finite {
	uint64_t nan[SHARD_FIELDS_MAX], infinite[SHARD_FIELDS_MAX];
	uint64_t shard_count, read_count, unread_count;
	uint64_t with_count;	       /* shards that were read and have such values */
	struct shard_error why_unread; /* the first one */
};

/* "not-finite FIELD nan COUNT infinite COUNT" of a shard with this many records.  Spoils the line. */
static bool add_line(struct not_finite *n, const struct shard_schema *s, uint64_t records, char *line)
{
	char *word[6], *rest = line;
	uint64_t nan, infinite;
	uint32_t f = 0;

	for (size_t i = 0; i < 6; i++)
		word[i] = strsep(&rest, " ");
	if (rest || !word[5] || strcmp(word[2], "nan") || strcmp(word[4], "infinite") ||
	    !text_u64(word[3], strlen(word[3]), &nan) || !text_u64(word[5], strlen(word[5]), &infinite))
		return false;
	while (f < s->field_count && strcmp(word[1], s->field[f].name))
		f++;
	if (f == s->field_count || !dtype_is_float(s->field[f].dtype) ||
	    (unsigned __int128)nan + infinite >
		    (unsigned __int128)records * (s->field[f].bytes / shard_dtype_bytes(s->field[f].dtype)))
		return false;
	return !__builtin_add_overflow(n->nan[f], nan, &n->nan[f]) &&
	       !__builtin_add_overflow(n->infinite[f], infinite, &n->infinite[f]);
}

/* Add up the lines of one shard, which are the last of its provenance. */
static int add_shard(struct not_finite *n, const struct shard_schema *s, struct shard_reader *reader,
		     struct shard_error *err)
{
	static const char word[] = "not-finite ";
	struct not_finite sum = *n;
	struct shard_info info;
	char *text, *line;
	int rc = input_provenance(reader, &text, err);

	if (rc)
		return rc;
	shard_reader_info(reader, &info);
	for (size_t end = strlen(text); !rc && end && text[end - 1] == '\n'; end = (size_t)(line - text)) {
		text[end - 1] = '\0';
		line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
		if (strncmp(line, word, sizeof(word) - 1))
			break;
		sum.with_count = n->with_count + 1;
		if (!add_line(&sum, s, info.record_count, line)) {
			snprintf(err->message, sizeof(err->message),
				 "shard %" PRIu64 ": a line of its provenance begins with 'not-finite', and does not "
				 "count a field",
				 n->read_count + n->unread_count);
			rc = SHARD_E_CORRUPT;
		}
	}
	free(text);
	if (!rc)
		*n = sum;
	return rc;
}

/*
 * False if no field could have such values.  The manifest has no place for them, so each shard is
 * opened: not those of a large dataset, unless -v asks for it.
 */
static bool read_not_finite(struct input *in, struct not_finite *n)
{
	struct shard_dataset_info info = {.shard_count = 1};
	struct shard_reader *reader = in->reader;
	struct shard_error err;
	uint32_t f = 0;

	while (f < in->schema->field_count && !dtype_is_float(in->schema->field[f].dtype))
		f++;
	if (f == in->schema->field_count)
		return false;
	*n = (struct not_finite){0};
	if (in->dataset)
		shard_dataset_info(in->dataset, &info);
	n->shard_count = info.shard_count;
	if (n->shard_count > SHARDS_READ && !message_shows(MESSAGE_VERBOSE))
		return true;
	for (uint64_t i = 0; i < n->shard_count; i++) {
		int rc = in->dataset ? shard_dataset_open_reader(in->dataset, i, &reader, &err) : SHARD_OK;

		if (!rc) {
			rc = add_shard(n, in->schema, reader, &err);
			if (in->dataset)
				shard_reader_close(reader);
		}
		if (rc && !n->unread_count++)
			n->why_unread = err;
		n->read_count += !rc;
	}
	return true;
}

static void print_not_finite(struct input *in)
{
	const char *before = "NaN, inf  ";
	char nan[HUMAN_CHARS], infinite[HUMAN_CHARS], some[HUMAN_CHARS], all[HUMAN_CHARS];
	struct not_finite n;

	if (!read_not_finite(in, &n))
		return;
	human_count(all, n.shard_count);
	for (uint32_t f = 0; f < in->schema->field_count; f++) {
		if (!n.nan[f] && !n.infinite[f])
			continue;
		printf("%s%s NaN and %s infinite values in %s\n", before, human_count(nan, n.nan[f]),
		       human_count(infinite, n.infinite[f]), in->schema->field[f].name);
		before = "          ";
	}
	if (n.unread_count) {
		printf("%snot known of %s shard%s: ", before, human_count(some, n.unread_count),
		       n.unread_count == 1 ? "" : "s");
		print_escaped(n.why_unread.message, strlen(n.why_unread.message));
		putchar('\n');
		before = "          ";
	}
	if (n.shard_count > n.read_count + n.unread_count)
		printf("%snot added up, because %s shards would be opened; -v does so\n", before, all);
	else if (n.read_count > n.with_count) {
		printf("%snone is recorded in %s of %s shard%s: there is none, unless a version before 0.3.0 "
		       "packed it; to count: shardcat stats ",
		       before, human_count(some, n.read_count - n.with_count), all, n.shard_count == 1 ? "" : "s");
		print_escaped(in->path, strlen(in->path));
		putchar('\n');
	}
}

static void not_finite_json(struct json_out *j, struct input *in)
{
	struct not_finite n;

	if (!read_not_finite(in, &n))
		return;
	json_out_object_line(j, "not_finite");
	json_out_array(j, "fields");
	for (uint32_t f = 0; f < in->schema->field_count; f++) {
		if (!n.nan[f] && !n.infinite[f])
			continue;
		json_out_object(j, NULL);
		json_out_string(j, "field", in->schema->field[f].name);
		json_out_u64(j, "nan", n.nan[f]);
		json_out_u64(j, "infinite", n.infinite[f]);
		json_out_end(j);
	}
	json_out_end(j);
	json_out_u64(j, "shards_with", n.with_count);
	json_out_u64(j, "shards_without", n.read_count - n.with_count);
	json_out_u64(j, "shards_not_read", n.shard_count - n.read_count);
	json_out_end(j);
}

static int print_sections(const struct input *in)
{
	struct shard_section section;
	struct shard_error err;
	struct shard_info info;
	const char *name;

	if (!in->reader)
		return EXIT_DONE;
	shard_reader_info(in->reader, &info);
	puts("sections       offset          bytes          items");
	for (uint32_t i = 0; i < info.section_count; i++) {
		int rc = shard_reader_section(in->reader, i, &section, &err);

		if (rc)
			return fail_of_library(&err);
		name = shard_name(SHARD_NAME_SECTION, section.type);
		printf("  %-4s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", name ? name : "?", section.offset,
		       section.bytes, section.item_count);
	}
	return EXIT_DONE;
}

static int info_text(struct input *in)
{
	bool verbose = message_shows(MESSAGE_VERBOSE);
	const char *pixels = pixels_of(in);
	int rc;

	print_size(in);
	if (pixels)
		printf("pixels    %s\n", pixels);
	print_not_finite(in);
	describe_schema(stdout, in->schema);
	rc = describe_moments(stdout, in);
	if (!rc)
		rc = print_classes(in);
	if (!rc && verbose)
		rc = print_sections(in);
	if (!rc && verbose)
		rc = print_provenance(in);
	return rc;
}

static void size_json(struct json_out *j, const struct input *in)
{
	struct shard_dataset_info dataset;
	struct shard_info shard;
	char hex[HEX_CHARS];

	json_out_string(j, "path", in->path);
	json_out_string(j, "type", in->dataset ? "dataset" : "shard");
	json_out_u64(j, "record_count", in->record_count);
	if (in->dataset) {
		shard_dataset_info(in->dataset, &dataset);
		json_out_string(j, "id", dataset.id);
		json_out_u64(j, "shard_count", dataset.shard_count);
		json_out_u64(j, "data_bytes", dataset.data_bytes);
		json_out_string(j, "order", describe_order(dataset.order));
		if (dataset.order == SHARD_ORDER_SHUFFLE)
			json_out_u64(j, "seed", dataset.seed);
		json_out_u64(j, "class_count", dataset.class_count);
	} else {
		shard_reader_info(in->reader, &shard);
		json_out_string(j, "root", root_text(hex, shard.root));
		json_out_u64(j, "data_bytes", shard.file_bytes);
		json_out_u64(j, "planned_records", shard.planned_records);
		json_out_u64(j, "plan_shard", shard.plan_shard);
		json_out_u64(j, "key_count", shard.key_count);
		json_out_u64(j, "miss_count", shard.miss_count);
	}
}

static int info_json(struct input *in)
{
	struct shard_error err;
	struct json_out j;
	const char *name, *pixels = pixels_of(in);
	int rc, shard_rc;

	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	size_json(&j, in);
	if (pixels)
		json_out_string(&j, "pixels", pixels);
	not_finite_json(&j, in);
	describe_schema_json(&j, in->schema);
	rc = describe_moments_json(&j, in);
	json_out_array(&j, "classes");
	for (uint64_t i = 0, records = UINT64_MAX; (shard_rc = class_at(in, i, &name, &records, &err)) == SHARD_OK;
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
	struct input in;
	int rc = input_open(&in, o->path);

	if (!rc)
		rc = o->json ? info_json(&in) : info_text(&in);
	input_close(&in);
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
