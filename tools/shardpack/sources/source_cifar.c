/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_cifar.c - `shardpack cifar`: CIFAR-10 and CIFAR-100 in their binary versions
 *
 * A record is one label, or two (coarse, fine), and 3,072 bytes of pixels in planes of 32 x 32.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shard.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/line.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/scan/input_file.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/sources/fixed_fields.h"
#include "tools/shardpack/sources/fixed_source.h"
#include "tools/shardpack/sources/source.h"

#define PIXEL_BYTES 3072

static const struct cifar {
	const char *file[2][6]; /* of training, of testing; end with NULL */
	uint64_t label_bytes;
	uint64_t class_count[2]; /* fine, coarse */
	const char *names[2];
} kinds[] = {
	{{{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
	  {"test_batch.bin"}},
	 1,
	 {10, 10},
	 {"batches.meta.txt", "batches.meta.txt"}},
	{{{"train.bin"}, {"test.bin"}}, 2, {100, 20}, {"fine_label_names.txt", "coarse_label_names.txt"}},
};

/* The names lie beside the data, one a line; without them classes are called by their numbers. */
static int read_names(const struct request *r, const struct cifar *kind, struct classes *out)
{
	int which = r->o->coarse, fd, code = EXIT_DONE;
	struct line line = {.number = 0};
	char file[FILES_PATH_BYTES];
	struct stat st;
	bool there;
	FILE *in;

	if (place_look(r->place, kind->names[which], &st, &there, NULL) != EXIT_DONE)
		return EXIT_IO;
	if (!there)
		return classes_add_numbers(out, kind->class_count[which]);
	fd = openat(r->place->root_fd, kind->names[which], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fail(EXIT_IO, "%s/%s: %s", r->place->root, kind->names[which], strerror(errno));
	in = fdopen(fd, "r");
	if (!in)
		return fail(EXIT_IO, "out of memory");
	snprintf(file, sizeof(file), "%s/%s", r->place->root, kind->names[which]);
	while (code == EXIT_DONE && !line.is_end) {
		code = line_next(&line, in, file, "one class name per line");
		while (line.bytes && line.text[line.bytes - 1] == '\r')
			line.bytes--;
		if (code == EXIT_DONE && line.bytes)
			code = classes_add(out, line.text, line.bytes, kind->names[which]);
	}
	if (code == EXIT_DONE && out->count != kind->class_count[which])
		code = fail(EXIT_BAD, "%s/%s: names %" PRIu64 " classes; must be %" PRIu64, r->place->root,
			    kind->names[which], out->count, kind->class_count[which]);
	if (code == EXIT_DONE)
		code = classes_index(out, kind->names[which]);
	fclose(in);
	return code;
}

/* The context of these steps is where the kind stands. */
static int add_file(const struct request *r, void *context, const char *path)
{
	const struct cifar *kind = *(const struct cifar **)context;
	static const uint64_t shape[] = {3, 32, 32};
	uint64_t bytes, record_bytes = kind->label_bytes + PIXEL_BYTES;
	uint32_t file, image, label;
	struct fixed_column c;
	int code = input_file_open(r, path, &file);

	if (code != EXIT_DONE)
		return code;
	bytes = stored_bytes(r->stored, file);
	if (!bytes || bytes % record_bytes)
		return fail(EXIT_BAD,
			    "%s/%s: %" PRIu64 " bytes are %" PRIu64 " records of %" PRIu64 " bytes and %" PRIu64 " "
			    "bytes more; the file is cut short, or not a file of CIFAR-%s",
			    r->place->root, path, bytes, bytes / record_bytes, record_bytes, bytes % record_bytes,
			    kind->label_bytes == 1 ? "10" : "100");
	code = fixed_fields_enter(r->recipe, path, "image", SHARD_U8, shape, 3, &image);
	if (code == EXIT_DONE)
		code = fixed_fields_enter(r->recipe, path, "label", SHARD_U8, NULL, 0, &label);
	c = (struct fixed_column){.file = file,
				  .dtype = SHARD_U8,
				  .stride = record_bytes,
				  .count = bytes / record_bytes,
				  .offset = kind->label_bytes};
	if (code == EXIT_DONE)
		code = fixed_fields_add(r->plan, r->recipe, image, &c);
	c.offset = kind->label_bytes == 2 && !r->o->coarse;
	return code == EXIT_DONE ? fixed_fields_add(r->plan, r->recipe, label, &c) : code;
}

/* Every file of the folder that belongs to the half that was asked for. */
static int add_folder(const struct request *r, void *context)
{
	const struct cifar *kind = *(const struct cifar **)context;
	const char *const *name = kind->file[r->o->split];
	int code = EXIT_DONE;

	for (; code == EXIT_DONE && *name; name++)
		code = add_file(r, context, *name);
	return code;
}

/* The first kind whose first file is there. */
static int kind_of_folder(const struct request *r, const struct cifar **out)
{
	struct stat st;
	bool there = false;
	int code = EXIT_DONE;

	*out = NULL;
	for (size_t i = 0; code == EXIT_DONE && !there && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		code = place_look(r->place, kinds[i].file[r->o->split][0], &st, &there, NULL);
		if (there)
			*out = &kinds[i];
	}
	return code;
}

/* By the names of the files, as a size may be that of either. */
static const struct cifar *kind_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	return strstr(base, "batch")					 ? &kinds[0]
	       : !strncmp(base, "train", 5) || !strncmp(base, "test", 4) ? &kinds[1]
									 : NULL;
}

static int begin(const struct request *r, void *context, struct classes *out)
{
	bool is_folder = fixed_source_is_folder(r);
	const struct cifar *kind = is_folder ? NULL : kind_of_file(r->place->item[0].path);

	if (is_folder && kind_of_folder(r, &kind) != EXIT_DONE)
		return EXIT_IO;
	if (!kind)
		return is_folder ? fail(EXIT_BAD,
					"%s: neither %s nor %s is in it; SRC must be the folder of the "
					"binary version of CIFAR",
					r->place->root, kinds[0].file[r->o->split][0], kinds[1].file[r->o->split][0])
				 : fail(EXIT_BAD,
					"%s/%s: not the name of a file of CIFAR (data_batch_1.bin, test_batch.bin, "
					"train.bin, test.bin)",
					r->place->root, r->place->item[0].path);
	for (uint64_t i = 1; i < r->place->item_count; i++)
		if (kind_of_file(r->place->item[i].path) != kind)
			return fail(EXIT_BAD, "%s/%s: by its name, belongs to another dataset than %s", r->place->root,
				    r->place->item[i].path, r->place->item[0].path);
	*(const struct cifar **)context = kind;
	return read_names(r, kind, out);
}

static int scan(const struct request *r)
{
	static const struct fixed_source steps = {.begin = begin, .add_folder = add_folder, .add_file = add_file};
	const struct cifar *kind = NULL;

	return fixed_source_scan(r, &steps, &kind);
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder of the binary version, or some of its files"},
	{0}};

static const struct cli_option options[] = {
	{.name = "split", .kind = CLI_CHOICE, AT(split), .choices = "train|test", .default_value = "train",
	 .help = "half of the folder to pack"},
	{.name = "labels", .kind = CLI_CHOICE, AT(coarse), .choices = "fine|coarse", .default_value = "fine",
	 .help = "100 or 20 classes of CIFAR-100"},
	{0}};
/* clang-format on */

const struct source source_cifar = {
	SOURCE_NAMED("cifar"),
	.positionals = positionals,
	.options = options,
	.scan = scan,
};
