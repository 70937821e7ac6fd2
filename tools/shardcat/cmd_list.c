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
	uint8_t *block;			 /* the label's group of up to block_records records */
	uint64_t block_records;
	struct json_out *json; /* NULL: text */
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

static void print_json(const struct list *l, uint64_t idx, const struct shard_view *key, const uint8_t *label)
{
	struct json_out *j = l->json;

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

static int print_block(struct list *l, uint64_t first, uint64_t count)
{
	const struct shard_field *f = l->label;
	int rc = EXIT_DONE;

	if (f)
		rc = input_read(&l->input, f->group, first, count, l->block);
	for (uint64_t i = 0; i < count && !rc; i++) {
		const uint8_t *label = f ? l->block + i * f->stride + f->offset : NULL;
		struct shard_view key;

		rc = input_key(&l->input, first + i, &key);
		if (rc)
			break;
		if (l->json)
			print_json(l, first + i, &key, label);
		else
			print_text(l, first + i, &key, label);
	}
	return rc;
}

static int print_records(struct list *l, uint64_t first, uint64_t count)
{
	int rc = EXIT_DONE;

	l->label = input_label_field(&l->input);
	l->block_records = BLOCK_RECORDS;
	if (l->label) {
		if (l->label->stride > BLOCK_BYTES / BLOCK_RECORDS)
			l->block_records = l->label->stride < BLOCK_BYTES ? BLOCK_BYTES / l->label->stride : 1;
		l->block = xmalloc(l->block_records, l->label->stride);
	}
	while (count && !rc && !ferror(stdout)) {
		uint64_t now = count < l->block_records ? count : l->block_records;

		rc = print_block(l, first, now);
		first += now;
		count -= now;
		if (interrupted())
			rc = EXIT_INTERRUPTED;
	}
	free(l->block);
	return rc;
}

static int print_document(struct list *l, uint64_t first, uint64_t count)
{
	struct json_out j;
	int rc;

	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	json_out_array(&j, "records");
	l->json = &j;
	rc = print_records(l, first, count);
	json_out_end(&j);
	json_out_end(&j);
	json_out_finish(&j);
	return rc;
}

static int run(const struct cli_args *args)
{
	const struct list_options *o = args->options;
	struct list l = {0};
	uint64_t count = 0;
	int rc = input_open(&l.input, o->path);

	if (!rc && o->first)
		rc = input_check_index(&l.input, o->first);
	if (!rc) {
		count = l.input.record_count - o->first;
		if (cli_given(args, "count") && o->count < count)
			count = o->count;
		rc = o->json ? print_document(&l, o->first, count) : print_records(&l, o->first, count);
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
