/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_list.c - shardcat list: index, label and key of each record
 *
 * Reads the labels only, many at a time, and never the payload.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/json_out.h"
#include "tools/common/memory.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define BLOCK_BYTES   (1 << 20) /* of labels read at a time */
#define BLOCK_RECORDS 4096

struct list_options {
	const char *path;
	uint64_t first, count;
	bool json;
};

struct list {
	struct input input;
	const struct shard_field *label; /* NULL: records have none */
	bool is_json;
	struct json_out json;
};

static void print_text(const struct list *l, uint64_t idx, const struct shard_view *key, const uint8_t *label)
{
	char number[NUMBER_CHARS] = "-";
	const char *name = NULL;

	if (label) {
		number_text(number, l->label->dtype, label);
		name = input_class_name(&l->input, (uint64_t)number_integer(l->label->dtype, label));
	}
	printf("%" PRIu64 "\t%s\t", idx, number);
	if (name)
		escape_write(stdout, name, strlen(name), ESCAPE_EXACT);
	else
		fputc('-', stdout);
	fputc('\t', stdout);
	escape_write(stdout, key->data, key->bytes, ESCAPE_EXACT);
	fputc('\n', stdout);
}

static void print_json(struct list *l, uint64_t idx, const struct shard_view *key, const uint8_t *label)
{
	struct json_out *j = &l->json;

	json_out_object_line(j, NULL);
	json_out_u64(j, "index", idx);
	if (key->bytes)
		json_out_string_bytes(j, "key", key->data, key->bytes);
	else
		json_out_null(j, "key");
	if (!label)
		json_out_null(j, "label");
	else if (l->label->dtype == SHARD_U64)
		json_out_u64(j, "label", (uint64_t)number_integer(l->label->dtype, label));
	else
		json_out_i64(j, "label", number_integer(l->label->dtype, label));
	json_out_end(j);
}

static int print_records(struct list *l, uint64_t first, uint64_t count)
{
	const struct shard_field *f = l->label;
	uint64_t block_records = BLOCK_RECORDS;
	uint8_t *block = NULL; /* the label's group of each record */
	struct shard_view key;
	int rc = EXIT_DONE;

	if (f) {
		if (f->stride > BLOCK_BYTES / BLOCK_RECORDS)
			block_records = f->stride < BLOCK_BYTES ? BLOCK_BYTES / f->stride : 1;
		block = xmalloc(block_records, f->stride);
	}
	for (uint64_t now; count && !rc && !ferror(stdout); first += now, count -= now) {
		now = count < block_records ? count : block_records;
		if (f)
			rc = input_read(&l->input, f->group, first, now, block);
		for (uint64_t i = 0; i < now && !rc; i++) {
			const uint8_t *label = f ? block + i * f->stride + f->offset : NULL;

			rc = input_key(&l->input, first + i, &key);
			if (rc)
				break;
			if (l->is_json)
				print_json(l, first + i, &key, label);
			else
				print_text(l, first + i, &key, label);
		}
		if (interrupted())
			rc = EXIT_INTERRUPTED;
	}
	free(block);
	return rc;
}

static int run(const struct cli_args *args)
{
	const struct list_options *o = args->options;
	struct list l = {.is_json = o->json};
	uint64_t count = 0;
	int rc = input_open(&l.input, o->path);

	if (!rc && o->first)
		rc = input_check_index(&l.input, o->first);
	if (!rc) {
		l.label = input_label_field(&l.input);
		count = l.input.record_count - o->first;
		if (cli_given(args, "count") && o->count < count)
			count = o->count;
		if (l.is_json) {
			json_out_start(&l.json, stdout);
			json_out_object(&l.json, NULL);
			json_out_array(&l.json, "records");
		}
		rc = print_records(&l, o->first, count);
		if (l.is_json) {
			json_out_end(&l.json);
			json_out_end(&l.json);
			json_out_finish(&l.json);
		}
	}
	input_close(&l.input);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_OR_SHARD(struct list_options), {0}};

static const struct cli_option options[] = {
	{.name = "first",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .offset = offsetof(struct list_options, first),
	 .default_value = "0",
	 .help = "index of the first record to list"},
	{.name = "count",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .offset = offsetof(struct list_options, count),
	 .default_note = "all",
	 .help = "list at most N records"},
	AS_JSON(struct list_options, "print one JSON document, whose `records` have index, key and label"),
	{0},
};
/* clang-format on */

const struct cli_verb verb_list = {
	.name = "list",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct list_options),
	.run = run,
};
