/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_get.c - shardcat get: one record, as text or as a file
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

struct get_options {
	const char *path, *field, *out;
	uint64_t idx;
	bool raw, npy, png;
};

/*
 * The field the user named, or for a file the only one that it can mean.  NULL for text: all of
 * them.
 */
static int choose_field(const struct cli_args *args, const struct input *in, const struct shard_field **out)
{
	const struct get_options *o = args->options;
	const struct shard_schema *schema = in->schema;

	*out = NULL;
	if (o->field) {
		*out = shard_schema_find(schema, o->field);
		if (!*out)
			return cli_misuse(args, "--field %s: %s has no such field; 'shardcat info' lists them",
					  o->field, in->path);
		return EXIT_DONE;
	}
	if (!o->raw && !o->npy && !o->png)
		return EXIT_DONE;
	if (schema->field_count == 1)
		*out = &schema->field[0];
	for (uint32_t i = 0; i < schema->field_count && o->png && !*out; i++)
		if (schema->field[i].semantic == SHARD_IMAGE)
			*out = &schema->field[i];
	if (!*out)
		return cli_misuse(args, "%s has %" PRIu32 " fields; choose one with --field", in->path,
				  schema->field_count);
	return EXIT_DONE;
}

static void print_field(const struct input *in, const struct tensor *tensor, int width)
{
	const struct shard_field *f = tensor->field;
	const char *class_name = NULL;
	char shape[SHAPE_CHARS];

	printf("  %-*s  %s%s%s%s: ", width, f->name, shard_name(SHARD_NAME_DTYPE, f->dtype),
	       shape_text(shape, tensor->shape, tensor->ndim), f->layout ? " " : "",
	       f->layout ? shard_name(SHARD_NAME_LAYOUT, f->layout) : "");
	tensor_print(tensor, stdout);
	if (f == input_label_field(in))
		class_name = input_class_name(in, (uint64_t)number_integer(f->dtype, tensor->data));
	if (class_name) {
		fputs(" (", stdout);
		escape_write(stdout, class_name, strlen(class_name), ESCAPE_EXACT);
		putchar(')');
	}
	putchar('\n');
}

static int get_text(struct input *in, const struct record *record, const struct shard_field *only)
{
	struct shard_view key;
	int width = 3, rc; /* "key" */

	for (uint32_t i = 0; i < in->schema->field_count; i++)
		if ((!only || only == &in->schema->field[i]) && (int)strlen(in->schema->field[i].name) > width)
			width = (int)strlen(in->schema->field[i].name);
	printf("record %" PRIu64 " of ", record->idx);
	escape_write(stdout, in->path, strlen(in->path), ESCAPE_EXACT);
	putchar('\n');
	rc = input_key(in, record->idx, &key);
	if (!rc && key.bytes) {
		printf("  %-*s  ", width, "key");
		escape_write(stdout, key.data, key.bytes, ESCAPE_EXACT);
		putchar('\n');
	}
	for (uint32_t i = 0; i < in->schema->field_count && !rc; i++) {
		struct tensor tensor = {0};

		if (only && only != &in->schema->field[i])
			continue;
		rc = tensor_take(in, record, &in->schema->field[i], &tensor);
		if (!rc)
			print_field(in, &tensor, width);
		tensor_free(&tensor);
	}
	return rc;
}

static int write_png(struct input *in, struct tensor *tensor, FILE *file)
{
	struct picture_scale scale;
	struct png_image image;
	char error[256];
	int rc = picture_scale(in, tensor->field, &scale);

	if (!rc)
		rc = picture_image(&scale, true, tensor, &image);
	if (!rc && png_write(file, &image, error, sizeof(error)))
		rc = fail(EXIT_IO, "%s", error);
	return rc;
}

static int get_file(const struct get_options *o, struct input *in, struct tensor *tensor)
{
	char header[NPY_HEADER_BYTES];
	struct memory_file file;
	int rc = EXIT_DONE;

	memory_file_open(&file);
	if (o->npy) {
		if (tensor->field->dtype == SHARD_BF16)
			note("field %s: NumPy has no bf16; its bits are written as dtype u2", tensor->field->name);
		for (uint64_t i = 0; tensor->field->dtype == SHARD_BOOL && i < tensor->element_count; i++)
			tensor->data[i] = tensor->data[i] != 0; /* NumPy holds other values to be undefined */
		fwrite(header, 1, npy_header(tensor, header), file.stream);
	}
	if (o->png)
		rc = write_png(in, tensor, file.stream);
	else
		fwrite(tensor->data, tensor->element_bytes, tensor->element_count, file.stream);
	return out_file_close(&file, o->out, rc);
}

static int run(const struct cli_args *args)
{
	const struct get_options *o = args->options;
	const struct shard_field *field = NULL;
	struct record record = {.idx = 0};
	struct tensor tensor = {0};
	struct input in = {0};
	bool is_file = o->raw || o->npy || o->png;
	int rc;

	if (o->raw + o->npy + o->png > 1)
		return cli_misuse(args, "--raw, --npy and --png exclude each other");
	if (o->out && !is_file)
		return cli_misuse(args, "--out needs --raw, --npy or --png");
	rc = input_open(&in, o->path);
	if (!rc)
		rc = choose_field(args, &in, &field);
	if (!rc)
		rc = record_read(&in, o->idx, field, &record);
	if (!rc && !is_file)
		rc = get_text(&in, &record, field);
	if (!rc && is_file)
		rc = tensor_take(&in, &record, field, &tensor);
	if (!rc && is_file)
		rc = get_file(o, &in, &tensor);
	tensor_free(&tensor);
	record_free(&record);
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {
	DIR_OR_SHARD(struct get_options),
	{.name = "INDEX",
	 .kind = CLI_U64,
	 .required = true,
	 .offset = offsetof(struct get_options, idx),
	 .help = "index of the record; the first one is 0"},
	{0},
};

static const struct cli_option options[] = {
	{.name = "field",
	 .kind = CLI_STRING,
	 .arg_name = "F",
	 .offset = offsetof(struct get_options, field),
	 .help = "write only this field; with --png it may be left out"},
	{.name = "raw",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct get_options, raw),
	 .help = "write the bytes of the field, little-endian"},
	{.name = "npy",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct get_options, npy),
	 .help = "write the field as a file for numpy.load()"},
	{.name = "png", .kind = CLI_FLAG, .offset = offsetof(struct get_options, png), .help = "write the field, which must be an image, as PNG"},
	{.name = "out",
	 .short_name = 'o',
	 .kind = CLI_FILE,
	 .arg_name = "FILE",
	 .offset = offsetof(struct get_options, out),
	 .default_note = "stdout",
	 .help = "file to write with --raw, --npy or --png; it is overwritten"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_get = {
	.name = "get",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct get_options),
	.run = run,
};
