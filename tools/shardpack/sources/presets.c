/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presets.c - `shardpack cifar` and `shardpack mnist`: published files, of which all is known
 *
 * A preset says which files of a folder are a half of the dataset, what is in them, and what its
 * classes are called.  Their bytes are read as those of `shardpack raw` and `shardpack array`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

#define AT(member) .offset = offsetof(struct pack_options, member)

#define SPLIT                                                                                                      \
	{                                                                                                          \
		.name = "split", .kind = CLI_CHOICE, AT(split), .choices = "train|test", .default_value = "train", \
		.topic = "input", .often = true, .help = "which records of the folder to pack"                     \
	}

/* ---- cifar: records of one label, or two (coarse, fine), and 32 x 32 pixels in planes ---- */

#define PIXEL_BYTES 3072

/* The image comes first in a record of the dataset. */
#define RECORDS(label_bytes, label_at)                                                                            \
	{                                                                                                         \
		.record_bytes = (label_bytes) + PIXEL_BYTES, .field_count = 2,                                    \
		.field =                                                                                          \
		{ {.name = "image", .dtype = SHARD_U8, .ndim = 3, .shape = {3, 32, 32}, .offset = (label_bytes)}, \
		  {.name = "label", .dtype = SHARD_U8, .offset = (label_at)},                                     \
		}                                                                                                 \
	}

static const struct cifar {
	const char *file[2][6]; /* of training, of testing; end with NULL */
	const char *remedy;	/* of a file that is not whole records */
	struct {		/* fine, coarse */
		uint64_t class_count;
		const char *names; /* a file beside the data */
		struct raw_schema records;
	} label[2];
} cifars[] = {
	{{{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
	  {"test_batch.bin"}},
	 "the file is cut short, or not a file of CIFAR-10",
	 {{10, "batches.meta.txt", RECORDS(1, 0)}, {10, "batches.meta.txt", RECORDS(1, 0)}}},
	{{{"train.bin"}, {"test.bin"}},
	 "the file is cut short, or not a file of CIFAR-100",
	 {{100, "fine_label_names.txt", RECORDS(2, 1)}, {20, "coarse_label_names.txt", RECORDS(2, 0)}}},
};

/* The names lie beside the data, one a line; without them classes are called by their numbers. */
static int cifar_classes(const struct request *r, const struct cifar *kind, struct classes *out)
{
	const char *names = kind->label[r->o->coarse].names;
	uint64_t count = kind->label[r->o->coarse].class_count;
	char file[FILES_PATH_BYTES];
	struct stat st;
	bool there;
	FILE *in;
	int fd, rc;

	if (source_root_stat(r->root, names, &st, &there, NULL) != EXIT_DONE)
		return EXIT_IO;
	if (!there)
		return classes_add_numbers(out, count);
	snprintf(file, sizeof(file), "%s/%s", r->root->name, names);
	fd = openat(r->root->fd, names, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fail(EXIT_IO, "%s: %s", file, strerror(errno));
	in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return fail(EXIT_IO, "out of memory");
	}
	rc = classes_add_lines(out, in, file, true);
	fclose(in);
	if (rc == EXIT_DONE && out->count != count)
		rc = fail(EXIT_BAD, "%s: names %" PRIu64 " classes; must be %" PRIu64, file, out->count, count);
	return rc == EXIT_DONE ? classes_index(out, file) : rc;
}

/* By its name, as a size may be that of either. */
static const struct cifar *cifar_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	return strstr(base, "batch")					 ? &cifars[0]
	       : !strncmp(base, "train", 5) || !strncmp(base, "test", 4) ? &cifars[1]
									 : NULL;
}

/* The context of these steps is where the kind stands. */
static int cifar_begin(const struct request *r, void *context, struct classes *out)
{
	const struct cifar **kind = context;
	const char *first = r->root->item[0].path;
	bool there = false;
	struct stat st;
	int rc = EXIT_DONE;

	if (!fixed_source_is_folder(r)) {
		*kind = cifar_of_file(first);
		return *kind ? cifar_classes(r, *kind, out)
			     : fail(EXIT_BAD,
				    "%s/%s: not the name of a file of CIFAR (data_batch_1.bin, test_batch.bin, "
				    "train.bin, test.bin)",
				    r->root->name, first);
	}
	for (size_t i = 0; rc == EXIT_DONE && !there && i < sizeof(cifars) / sizeof(cifars[0]); i++) {
		*kind = &cifars[i]; /* by the first file that is there */
		rc = source_root_stat(r->root, cifars[i].file[r->o->split][0], &st, &there, NULL);
	}
	if (rc == EXIT_DONE && !there)
		rc = fail(EXIT_BAD,
			  "%s: neither %s nor %s is in it; SRC must be the folder of the binary version of CIFAR",
			  r->root->name, cifars[0].file[r->o->split][0], cifars[1].file[r->o->split][0]);
	return rc == EXIT_DONE ? cifar_classes(r, *kind, out) : rc;
}

static int cifar_file(const struct request *r, void *context, const char *path)
{
	const struct cifar *kind = *(const struct cifar **)context;
	uint64_t before = r->plan->slice_count;
	int rc;

	if (cifar_of_file(path) != kind)
		return fail(EXIT_BAD, "%s/%s: by its name, belongs to another dataset than %s", r->root->name, path,
			    r->root->item[0].path);
	rc = raw_file_add(r, path, &kind->label[r->o->coarse].records, 0, kind->remedy);
	if (rc == EXIT_DONE && r->plan->slice_count == before)
		rc = fail(EXIT_BAD, "%s/%s: has no records; %s", r->root->name, path, kind->remedy);
	return rc;
}

static int cifar_folder(const struct request *r, void *context)
{
	const struct cifar *kind = *(const struct cifar **)context;
	int rc = EXIT_DONE;

	for (const char *const *name = kind->file[r->o->split]; rc == EXIT_DONE && *name; name++)
		rc = cifar_file(r, context, *name);
	return rc;
}

static int cifar_scan(const struct request *r)
{
	static const struct fixed_source steps = {
		.begin = cifar_begin, .add_folder = cifar_folder, .add_file = cifar_file};
	const struct cifar *kind = NULL;

	return fixed_source_scan(r, &steps, &kind);
}

/* clang-format off */
static const struct cli_option cifar_positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder of the binary version, or some of its files"},
	{0}};

static const struct cli_option cifar_options[] = {
	SPLIT,
	{.name = "labels", .kind = CLI_CHOICE, AT(coarse), .choices = "fine|coarse", .default_value = "fine",
	 .topic = "labels", .often = true, .help = "the 100 fine or the 20 coarse classes of CIFAR-100"},
	{0}};
/* clang-format on */

const struct source source_cifar = {
	SOURCE_NAMED("cifar"),
	.positionals = cifar_positionals,
	.options = cifar_options,
	.scan = cifar_scan,
};

/* ---- mnist: arrays in IDX files, of images or of labels ---- */

/* The context of these steps. */
struct mnist {
	uint64_t largest; /* label so far; it decides how many classes there are */
	struct fixed_parts parts;
};

static int mnist_largest(const struct request *r, uint32_t file, const struct npy *a, uint64_t *out)
{
	uint8_t piece[65536];
	uint64_t n;
	int rc = EXIT_DONE;

	for (uint64_t at = 0; rc == EXIT_DONE && at < a->data_bytes; at += n) {
		n = a->data_bytes - at < sizeof(piece) ? a->data_bytes - at : sizeof(piece);
		rc = source_file_get(r->source_files, file, a->data_offset + at, piece, (size_t)n);
		for (uint64_t i = 0; rc == EXIT_DONE && i < n; i++)
			*out = piece[i] > *out ? piece[i] : *out;
	}
	return rc;
}

/* All of a file: images if it has several axes, else labels. */
static int mnist_array(const struct request *r, struct array_bytes *p, uint64_t *largest)
{
	uint64_t have = p->bytes < IDX_HEAD_BYTES_MAX ? p->bytes : IDX_HEAD_BYTES_MAX;
	uint8_t head[IDX_HEAD_BYTES_MAX];
	struct npy a;
	char why[200];
	int rc = source_file_get(r->source_files, p->file, 0, head, (size_t)have);

	if (rc != EXIT_DONE)
		return rc;
	if (!idx_parse(head, (size_t)have, &a, why, sizeof(why)))
		return fail(EXIT_BAD, "%s: %s", p->where, why);
	p->name = a.ndim == 1 ? "label" : "image";
	if (a.ndim == 1 && a.dtype != SHARD_U8)
		return fail(EXIT_UNSUPPORTED, "%s: labels of type %s; must be u8", p->where,
			    shard_name(SHARD_NAME_DTYPE, a.dtype));
	if (a.ndim == 3)
		a.shape[a.ndim++] = 1; /* one channel, so that it is an image like others */
	rc = array_add(r, p, &a);
	return rc == EXIT_DONE && a.ndim == 1 ? mnist_largest(r, p->file, &a, largest) : rc;
}

static int mnist_file(const struct request *r, void *context, const char *path)
{
	/* "a/train-images-idx3-ubyte.gz" to "a/train-": what it shares with the file of its labels */
	const char *base = path + files_folder_bytes(path), *what = strstr(base, "images");
	char half[PLAN_PATH_BYTES_MAX], *where;
	struct mnist *m = context;
	struct array_bytes p = {.offset = 0};
	int rc = input_file_open(r, path, &p.file);

	if (rc != EXIT_DONE)
		return rc;
	where = source_file_name(r->source_files, p.file);
	p.where = where;
	p.bytes = source_file_bytes(r->source_files, p.file);
	rc = mnist_array(r, &p, &m->largest);
	what = what ? what : strstr(base, "labels");
	snprintf(half, sizeof(half), "%.*s", what ? (int)(what - path) : (int)(base - path), path);
	if (rc == EXIT_DONE)
		fixed_parts_add(&m->parts, r, half, 0, where);
	free(where);
	return rc;
}

/* "train-images-idx3-ubyte.gz", "emnist-letters-train-images-idx3-ubyte": which half, and what. */
static bool mnist_is_wanted(const char *name, const char *half, const char *what)
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
static int mnist_find(const struct request *r, const char *half, const char *what, char out[256])
{
	DIR *dir;
	struct dirent *entry;
	int fd = openat(r->root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = EXIT_DONE;

	out[0] = '\0';
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fail(EXIT_IO, "%s: cannot read this folder: %s", r->root->name, strerror(errno));
	}
	while (rc == EXIT_DONE && (errno = 0, entry = readdir(dir)) != NULL) {
		size_t old = strlen(out), new = strlen(entry->d_name);

		if (!mnist_is_wanted(entry->d_name, half, what))
			continue;
		if (!old || (old == new + 3 && !strncmp(out, entry->d_name, new)))
			snprintf(out, 256, "%s", entry->d_name);
		else if (!(new == old + 3 && !strncmp(out, entry->d_name, old)))
			rc = fail(EXIT_BAD, "%s: holds both %s and %s; name the files to pack", r->root->name, out,
				  entry->d_name);
	}
	if (rc == EXIT_DONE && errno)
		rc = fail(EXIT_IO, "%s: cannot read this folder: %s", r->root->name, strerror(errno));
	if (rc == EXIT_DONE && !out[0])
		rc = fail(EXIT_BAD, "%s: no file %s-%s-idx*-ubyte, with or without .gz, is in it", r->root->name, half,
			  what);
	closedir(dir);
	return rc;
}

static int mnist_folder(const struct request *r, void *context)
{
	const char *half = r->o->split ? "t10k" : "train";
	char images[256], labels[256];
	int rc = mnist_find(r, half, "images", images);

	if (rc == EXIT_DONE)
		rc = mnist_find(r, half, "labels", labels);
	if (rc == EXIT_DONE)
		rc = mnist_file(r, context, images);
	return rc == EXIT_DONE ? mnist_file(r, context, labels) : rc;
}

static int mnist_end(const struct request *r, void *context, struct classes *out)
{
	struct mnist *m = context;
	int rc = fixed_parts_pair(&m->parts, r,
				  "call the files of the same records alike, as train-images-idx3-ubyte and "
				  "train-labels-idx1-ubyte");

	return rc != EXIT_DONE || r->o->classes ? rc : classes_add_numbers(out, m->largest + 1);
}

static int mnist_scan(const struct request *r)
{
	static const struct fixed_source steps = {.add_folder = mnist_folder, .add_file = mnist_file, .end = mnist_end};
	struct mnist m = {.largest = 9};
	int rc = fixed_source_scan(r, &steps, &m);

	fixed_parts_free(&m.parts);
	return rc;
}

/* clang-format off */
static const struct cli_option mnist_positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder of IDX files, or the files themselves"},
	{0}};

static const struct cli_option mnist_options[] = {
	SPLIT,
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET", .default_note = "0, 1, ...",
	 .topic = "labels", .often = true, .help = "take names of classes from a file or another dataset"},
	{.name = "strict-classes", .kind = CLI_FLAG, AT(strict_classes), .topic = "labels",
	 .help = "refuse class names that look alike"},
	{0}};
/* clang-format on */

const struct source source_mnist = {
	SOURCE_NAMED("mnist"),
	.positionals = mnist_positionals,
	.options = mnist_options,
	.scan = mnist_scan,
};
