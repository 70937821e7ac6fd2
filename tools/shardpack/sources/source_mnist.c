/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_mnist.c - `shardpack mnist`: IDX files of MNIST, Fashion-MNIST, EMNIST and others
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/format/idx.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/input_file.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/sources/fixed_fields.h"
#include "tools/shardpack/sources/fixed_parts.h"
#include "tools/shardpack/sources/fixed_source.h"
#include "tools/shardpack/sources/source.h"

/* The context of the steps. */
struct halves {
	uint64_t largest; /* label so far */
	struct fixed_parts parts;
};

/* The largest label decides how many classes there are. */
static int largest_label(const struct request *r, const struct fixed_column *c, uint64_t *out)
{
	uint8_t piece[65536];
	uint64_t n;
	int code = EXIT_DONE;

	for (uint64_t at = 0; code == EXIT_DONE && at < c->count; at += n) {
		n = c->count - at < sizeof(piece) ? c->count - at : sizeof(piece);
		code = stored_get(r->stored, c->file, c->offset + at, piece, (size_t)n);
		for (uint64_t i = 0; code == EXIT_DONE && i < n; i++)
			*out = piece[i] > *out ? piece[i] : *out;
	}
	return code;
}

/* "a/train-images-idx3-ubyte.gz" to "a/train-": what it shares with the file of its labels. */
static void name_half(const char *path, char out[PLAN_PATH_BYTES_MAX])
{
	const char *base = path + files_folder_bytes(path), *what = strstr(base, "images");

	what = what ? what : strstr(base, "labels");
	snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s", what ? (int)(what - path) : (int)(base - path), path);
}

static int add_parsed(const struct request *r, const char *where, const struct idx *x, uint32_t file, uint64_t *largest)
{
	struct fixed_column c = {.file = file,
				 .dtype = x->dtype,
				 .swap = true,
				 .offset = x->data_offset,
				 .count = x->shape[0],
				 .stride = x->shape[0] ? x->data_bytes / x->shape[0] : 0};
	uint64_t shape[IDX_DIMS_MAX] = {0};
	uint32_t field, ndim = x->ndim - 1;
	int code = EXIT_DONE;

	memcpy(shape, x->shape + 1, ndim * sizeof(*shape));
	if (ndim == 2)
		shape[ndim++] = 1; /* one channel, so that it is an image like others */
	if (x->ndim == 1 && x->dtype != SHARD_U8)
		return fail(EXIT_UNSUPPORTED, "%s: labels of type %s; must be u8", where, shard_dtype_name(x->dtype));
	if (x->ndim == 1)
		code = largest_label(r, &c, largest);
	if (code == EXIT_DONE)
		code = fixed_fields_enter(r->recipe, where, x->ndim == 1 ? "label" : "image", x->dtype, shape, ndim,
					  &field);
	return code == EXIT_DONE ? fixed_fields_add(r->plan, r->recipe, field, &c) : code;
}

static int add_file(const struct request *r, void *context, const char *path)
{
	char half[PLAN_PATH_BYTES_MAX];
	struct halves *h = context;
	uint8_t head[IDX_HEAD_BYTES_MAX];
	uint64_t bytes, have;
	char why[200], *where;
	struct idx x;
	uint32_t file;
	int code = input_file_open(r, path, &file);

	if (code != EXIT_DONE)
		return code;
	bytes = stored_bytes(r->stored, file);
	have = bytes < sizeof(head) ? bytes : sizeof(head);
	code = stored_get(r->stored, file, 0, head, (size_t)have);
	where = stored_name(r->stored, file);
	if (code == EXIT_DONE && !where)
		code = fail(EXIT_IO, "out of memory");
	if (code == EXIT_DONE && !idx_parse(head, (size_t)have, &x, why, sizeof(why)))
		code = fail(EXIT_BAD, "%s: %s", where, why);
	else if (code == EXIT_DONE && bytes != x.data_offset + x.data_bytes)
		code = fail(EXIT_BAD,
			    "%s: has %" PRIu64 " bytes, but must have a head of %" PRIu64 " and data of "
			    "%" PRIu64 "; it is %s",
			    where, bytes, x.data_offset, x.data_bytes,
			    bytes < x.data_offset + x.data_bytes ? "cut short" : "longer than it should be");
	else if (code == EXIT_DONE && !x.data_bytes)
		code = fail(EXIT_BAD, "%s: its head gives an axis of 0, so it has no records", where);
	else if (code == EXIT_DONE)
		code = add_parsed(r, where, &x, file, &h->largest);
	if (code == EXIT_DONE) {
		name_half(path, half);
		code = fixed_parts_add(&h->parts, r, half, 0, where);
	}
	free(where);
	return code;
}

/* "train-images-idx3-ubyte.gz", "emnist-letters-train-images-idx3-ubyte": which half, and what. */
static bool is_wanted(const char *name, const char *half, const char *what)
{
	const char *at = strstr(name, half), *kind = strstr(name, what);
	size_t bytes = strlen(name);

	return at && kind && at < kind && (at == name || at[-1] == '-') &&
	       (kind[strlen(what)] == '-' || kind[strlen(what)] == '.') && strstr(kind, "idx") && bytes > 5 &&
	       (!strcmp(name + bytes - 5, "ubyte") || !strcmp(name + bytes - 3, ".gz"));
}

/*
 * The file of the folder, the unpacked one if both are there.  Of two of a kind the user chooses.
 */
static int find_file(const struct request *r, const char *half, const char *what, char out[256])
{
	DIR *dir;
	struct dirent *entry;
	int fd = openat(r->place->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = EXIT_DONE;

	out[0] = '\0';
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fail(EXIT_IO, "%s: cannot read this folder: %s", r->place->root, strerror(errno));
	}
	while (code == EXIT_DONE && (errno = 0, entry = readdir(dir)) != NULL) {
		size_t old = strlen(out), new = strlen(entry->d_name);

		if (!is_wanted(entry->d_name, half, what))
			continue;
		if (!old || (old == new + 3 && !strncmp(out, entry->d_name, new)))
			snprintf(out, 256, "%s", entry->d_name);
		else if (!(new == old + 3 && !strncmp(out, entry->d_name, old)))
			code = fail(EXIT_BAD, "%s: holds both %s and %s; name the files to pack", r->place->root, out,
				    entry->d_name);
	}
	if (code == EXIT_DONE && errno)
		code = fail(EXIT_IO, "%s: cannot read this folder: %s", r->place->root, strerror(errno));
	if (code == EXIT_DONE && !out[0])
		code = fail(EXIT_BAD, "%s: no file %s-%s-idx*-ubyte, with or without .gz, is in it", r->place->root,
			    half, what);
	closedir(dir);
	return code;
}

static int add_folder(const struct request *r, void *context)
{
	static const char *const halves[] = {"train", "t10k"};
	const char *half = halves[r->o->split];
	char images[256], labels[256];
	int code = find_file(r, half, "images", images);

	if (code == EXIT_DONE)
		code = find_file(r, half, "labels", labels);
	if (code == EXIT_DONE)
		code = add_file(r, context, images);
	return code == EXIT_DONE ? add_file(r, context, labels) : code;
}

static int end(const struct request *r, void *context, struct classes *out)
{
	struct halves *h = context;
	int code = fixed_parts_pair(&h->parts, r,
				    "call the files of the same records alike, as train-images-idx3-ubyte and "
				    "train-labels-idx1-ubyte");

	return code != EXIT_DONE || r->o->classes ? code : classes_add_numbers(out, h->largest + 1);
}

static int scan(const struct request *r)
{
	static const struct fixed_source steps = {.add_folder = add_folder, .add_file = add_file, .end = end};
	struct halves h = {.largest = 9};
	int code = fixed_source_scan(r, &steps, &h);

	fixed_parts_free(&h.parts);
	return code;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder of IDX files, or the files themselves"},
	{0}};

static const struct cli_option options[] = {
	{.name = "split", .kind = CLI_CHOICE, AT(split), .choices = "train|test", .default_value = "train",
	 .help = "half of the folder to pack"},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET", .default_note = "0, 1, ...",
	 .help = "names of the classes, one per line"},
	{.name = "strict-classes", .kind = CLI_FLAG, AT(strict_classes), .help = "refuse class names that look alike"},
	{0}};
/* clang-format on */

const struct source source_mnist = {
	SOURCE_NAMED("mnist"),
	.positionals = positionals,
	.options = options,
	.scan = scan,
};
