/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_array.c - `shardpack array`: arrays of NumPy, whose first axis counts the records
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/columns.h"
#include "tools/shardpack/npy.h"
#include "tools/shardpack/stored.h"

static int settle(const struct request *r)
{
	(void)r;
	return EXIT_DONE;
}

/* "fortran,128,4,1000,3,32,32": what unpack.c makes of it is in C's order. */
static int transpose(const struct request *r, const struct npy *a, uint32_t *file)
{
	char how[256];
	size_t at = (size_t)snprintf(how, sizeof(how), "fortran,%" PRIu64 ",%zu", a->data_offset, shard_dtype_bytes(a->dtype));
	uint32_t i;

	for (i = 0; i < a->ndim && at < sizeof(how); i++)
		at += (size_t)snprintf(how + at, sizeof(how) - at, ",%" PRIu64, a->shape[i]);
	return stored_unpack(r->stored, r->plan, *file, how, file);
}

static int check_size(const struct npy *a, uint64_t bytes, const char *where)
{
	if (!a->ndim)
		return fail(EXIT_BAD, "%s: a single value; the first axis of an array counts the records", where);
	if (a->ndim > SHARD_DIMS_MAX + 1)
		return fail(EXIT_UNSUPPORTED, "%s: %" PRIu32 " axes; the limit is %d", where, a->ndim, SHARD_DIMS_MAX + 1);
	if (bytes != a->data_offset + a->data_bytes)
		return fail(EXIT_BAD, "%s: has %" PRIu64 " bytes, but its head asks for %" PRIu64 " and %" PRIu64 " of data; it is %s",
			    where, bytes, a->data_offset, a->data_bytes,
			    bytes < a->data_offset + a->data_bytes ? "cut short" : "longer than it should be");
	return EXIT_DONE;
}

/* An array file that can be read by offset. */
static int add_array(const struct request *r, uint32_t file, const char *name, const char *where)
{
	uint64_t bytes = stored_bytes(r->stored, file), have = bytes < NPY_HEAD_BYTES_MAX ? bytes : NPY_HEAD_BYTES_MAX;
	uint8_t *head = malloc(NPY_HEAD_BYTES_MAX);
	struct npy a;
	struct column c = {0};
	char why[256];
	uint32_t field;
	int code = head ? stored_get(r->stored, file, 0, head, (size_t)have) : fail(EXIT_IO, "out of memory");

	if (code == EXIT_DONE && !npy_parse(head, (size_t)have, &a, why, sizeof(why)))
		code = fail(EXIT_BAD, "%s: %s", where, why);
	free(head);
	if (code == EXIT_DONE)
		code = check_size(&a, bytes, where);
	if (code != EXIT_DONE || !a.data_bytes)
		return code == EXIT_DONE ? fail(EXIT_BAD, "%s: an array without elements", where) : code;
	c = (struct column){.dtype = a.dtype, .swap = a.swap, .offset = a.data_offset, .stride = a.data_bytes / a.shape[0],
			    .count = a.shape[0]};
	if (a.fortran && a.ndim > 1) {
		code = transpose(r, &a, &file);
		c.offset = 0;
	}
	c.file = file;
	if (code == EXIT_DONE)
		code = columns_field(r->recipe, where, name, a.dtype, a.shape + 1, a.ndim - 1, &field);
	return code == EXIT_DONE ? columns_add(r->plan, r->recipe, field, &c) : code;
}

/* "train/x.npy" to "x". */
static int add_file(const struct request *r, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char name[SHARD_NAME_BYTES], *where;
	size_t bytes = strcspn(base, ".");
	uint32_t file;
	int code;

	snprintf(name, sizeof(name), "%.*s", (int)(bytes < sizeof(name) - 1 ? bytes : sizeof(name) - 1), base);
	code = columns_open(r, path, &file);
	if (code != EXIT_DONE)
		return code;
	where = stored_name(r->stored, file);
	code = where ? add_array(r, file, name, where) : fail(EXIT_IO, "out of memory");
	free(where);
	return code;
}

static int scan(const struct request *r)
{
	struct classes classes = {0};
	bool is_folder = false;
	uint64_t i;
	int code = columns_paths(r, &is_folder);

	if (code == EXIT_DONE && is_folder)
		code = fail(EXIT_USAGE, "%s: a folder; name its files", r->place->root);
	if (code == EXIT_DONE)
		code = columns_classes(r, &classes);
	for (i = 0; code == EXIT_DONE && i < r->place->item_count; i++)
		code = add_file(r, r->place->item[i].path);
	if (code == EXIT_DONE)
		code = columns_finish(r, &classes);
	classes_free(&classes);
	return code;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

static const struct cli_option positional[] = {
	{.name = "FILE", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "x.npy becomes the field `x`; or a list on '-'"},
	{0}};

static const struct cli_option options[] = {
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET", .default_note = "not named",
	 .help = "of the field `label`"},
	{0}};

static const struct cli_verb verb = {
	.name = "array",
	.summary = "Pack NumPy arrays: image.npy label.npy",
	.description = "The first axis of an array counts the records, so all of them must be as long; what is left of the shape is "
		       "that of the field, which is called as the file up to its first dot. Arrays of one name (a/x.npy b/x.npy) "
		       "follow each other. Big-endian arrays are swapped, those in Fortran's order transposed, files that are a "
		       "gzip unpacked first. Python objects and structures are refused.\n"
		       "\n"
		       "An integer array `label` of one axis is the class and becomes i64; with --classes each must be one. An "
		       "array `image` with 1, 3 or 4 channels is images, and gets its mean and deviation.",
	.examples = "shardpack array image.npy label.npy -o ds/train\n",
	.positionals = positional,
	.options = {source_output_options, options, source_run_options, source_input_options},
	.options_bytes = sizeof(struct pack_options),
	.run = source_run,
};

static const struct cli_verb plan_verb = {
	.name = "plan array",
	.summary = "Write the plan only, for builds in parts",
	.description = "As `shardpack array`, but stops before the first shard; see `shardpack plan images`.",
	.examples = "shardpack plan array image.npy label.npy -o ds/train\n",
	.positionals = positional,
	.options = {source_output_options, options, source_input_options},
	.options_bytes = sizeof(struct pack_options),
	.run = source_plan_run,
};

const struct source source_array = {
	.name = "array",
	.kind = SOURCE_FIXED,
	.pack = &verb,
	.plan = &plan_verb,
	.settle = settle,
	.scan = scan,
};
