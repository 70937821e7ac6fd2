/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_images.c - `shardpack images`: pictures, one record each
 *
 * Which kind of source was named, and so which of the files that find images has it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/field.h"
#include "tools/shardpack/scan/class_folders.h"
#include "tools/shardpack/scan/file_name.h"
#include "tools/shardpack/scan/image_archive.h"
#include "tools/shardpack/scan/image_files.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/image_table.h"
#include "tools/shardpack/scan/labels.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/path_table.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/scan/webdataset.h"
#include "tools/shardpack/sources/image_recipe.h"
#include "tools/shardpack/sources/source.h"

/* What lies directly in the folder: archives, and folders beside them? */
static int look_into(const struct request *r, struct text *archives, bool *has_folders)
{
	int fd = openat(r->place->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = EXIT_DONE;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	struct stat st;

	*has_folders = false;
	if (!dir) {
		code = fail(EXIT_IO, "%s: cannot read this folder: %s", r->place->root, strerror(errno));
		if (fd >= 0)
			close(fd);
		return code;
	}
	while (code == EXIT_DONE && (errno = 0, entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (file_name_is_archive(entry->d_name)) {
			text_add(archives, entry->d_name, strlen(entry->d_name) + 1);
			continue;
		}
		code = place_look_at_entry(r->place, entry->d_name, &st);
		*has_folders = *has_folders || (code == EXIT_DONE && S_ISDIR(st.st_mode));
	}
	if (code == EXIT_DONE && errno)
		code = fail(EXIT_IO, "%s: cannot read this folder: %s", r->place->root, strerror(errno));
	closedir(dir);
	return code == EXIT_DONE && text_failed(archives) ? fail(EXIT_IO, "out of memory for a list of archives")
							  : code;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_fields(const struct recipe *r)
{
	for (uint32_t i = 0; i < r->field_count; i++)
		if (field_has_part(&r->from[i]))
			return true;
	return false;
}

/*
 * WebDataset's way, if there are members that end in .cls, or --label-key asks for .json: samples
 * of several members.  So are those with fields of their own.  Else each image is a sample.
 */
static int scan_archive(struct image_list *images, struct labels *labels, const char *path)
{
	const struct request *r = images->request;
	struct image_archive a;
	uint64_t before = images->count;
	int code = image_archive_open(&a, r, path);

	if (code == EXIT_DONE) {
		bool by_name = labels_given(labels) || !(r->o->label_key || webdataset_has_labels(&a));

		images->by_folder = by_name && !labels_given(labels);
		code = by_name && !has_fields(r->recipe) ? image_archive_add_all(&a, labels, images)
							 : webdataset_add(&a, by_name, labels, images);
	}
	if (code == EXIT_DONE && images->count == before)
		scan_barren(r->scan, a.where);
	image_archive_close(&a);
	return code;
}

/* A folder of nothing but archives, as img2dataset leaves it: each, in byte order. */
static int scan_archives(struct image_list *images, struct labels *labels, const struct text *archives)
{
	const char *at = archives->data, *end = at + archives->bytes;
	const char **name = calloc(archives->bytes + 1, sizeof(*name));
	size_t count = 0;
	int code = name ? EXIT_DONE : fail(EXIT_IO, "out of memory for a list of archives");

	for (; name && at < end; at += strlen(at) + 1)
		name[count++] = at;
	if (name)
		qsort(name, count, sizeof(*name), compare_names);
	for (size_t i = 0; code == EXIT_DONE && i < count; i++)
		code = scan_archive(images, labels, name[i]);
	free(name);
	return code;
}

static int scan_item(struct image_list *images, struct labels *labels, const struct source_item *item)
{
	if (images->request->o->columns && (item->is_dir || !path_table_is_one(item->path)))
		return fail(EXIT_USAGE, "%s/%s: --columns is for tables: .csv, .tsv or .jsonl",
			    images->request->place->root, item->path);
	if (item->is_dir)
		return image_files_add_folder(images, labels, item->path);
	if (path_table_is_one(item->path))
		return image_table_add(images, labels, item->path);
	if (file_name_is_image(item->path))
		return image_files_add(images, labels, item->path);
	return scan_archive(images, labels, item->path);
}

/* All that was named, or the archives in the folder that was. */
static int scan_items(const struct request *r, struct labels *labels, const struct text *archives)
{
	struct image_list images = {.request = r};
	int code = archives->bytes ? scan_archives(&images, labels, archives) : EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && !archives->bytes && i < r->place->item_count; i++)
		code = scan_item(&images, labels, &r->place->item[i]);
	if (code == EXIT_DONE)
		code = labels_check_used(labels);
	if (code == EXIT_DONE)
		code = image_list_plan(&images);
	image_list_free(&images);
	return code;
}

static int scan(const struct request *r)
{
	bool one_folder = r->place->item_count == 1 && !r->place->item[0].path[0], has_folders = false;
	struct labels labels = {0};
	struct text archives = {0};
	int code = labels_open(&labels, r);

	if (code == EXIT_DONE && one_folder && r->o->columns)
		code = fail(EXIT_USAGE, "%s: --columns is for tables: .csv, .tsv or .jsonl", r->place->root);
	if (code == EXIT_DONE && one_folder)
		code = look_into(r, &archives, &has_folders);
	if (has_folders)
		archives.bytes = 0; /* they lie beside classes, and are ignored like all that is no image */
	if (code == EXIT_DONE && one_folder && !archives.bytes && !labels_given(&labels))
		code = class_folders_scan(r);
	else if (code == EXIT_DONE)
		code = scan_items(r, &labels, &archives);
	text_free(&archives);
	labels_close(&labels);
	return code;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder, tars, a table of paths, or '-' for stdin"},
	{0}};

static const struct cli_option options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "256, if no --crop", .help = "length of the shorter side"},
	{.name = "fit", .kind = CLI_CHOICE, AT(fit), .arg_name = "HOW", .choices = "short|long|stretch|pad",
	 .default_value = "short", .help = "how to resize"},
	{.name = "crop", .kind = CLI_U64, AT(crop), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "224, or --resize", .help = "side of the centre square"},
	{.name = "filter", .kind = CLI_CHOICE, AT(filter), .arg_name = "NAME", .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear", .help = "filter"},
	{.name = "pixels", .kind = CLI_CHOICE, AT(pixels), .arg_name = "LIKE", .choices = "pillow-13|pillow-12|rows-first",
	 .default_value = "pillow-13", .help = "like"},
	{.name = "exif", .kind = CLI_CHOICE, AT(exif), .arg_name = "HOW", .choices = "ignore|apply", .default_value = "ignore",
	 .help = "orientation in EXIF or XMP"},
	{.name = "layout", .kind = CLI_CHOICE, AT(layout), .choices = "hwc|chw", .default_value = "hwc",
	 .help = "interleaved pixels, or planes"},
	{.name = "dtype", .kind = CLI_CHOICE, AT(dtype), .arg_name = "TYPE", .choices = "u8|f16|bf16|f32", .default_value = "u8",
	 .help = "type of pixel values"},
	{.name = "mean", .kind = CLI_STRING, AT(mean), .arg_name = "R,G,B", .default_note = "0,0,0",
	 .help = "mean of x/255"},
	{.name = "std", .kind = CLI_STRING, AT(std), .arg_name = "R,G,B", .default_note = "1,1,1",
	 .help = "divisor", .beside = true},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "LIST",
	 .default_note = "sorted", .help = "class numbers from this list or dataset"},
	{.name = "labels", .kind = CLI_FILE, AT(label_list), .arg_name = "FILE",
	 .help = "table of paths and labels: CSV, TSV or JSONL"},
	{.name = "label-regex", .kind = CLI_STRING, AT(label_regex), .arg_name = "RE",
	 .help = "regular expression; its first group is the label"},
	{.name = "columns", .kind = CLI_STRING, AT(columns), .arg_name = "FIELDS",
	 .help = "further columns to pack: age:f32,site:u16"},
	{.name = "field", .kind = CLI_STRING, .many = true, AT(fields), .arg_name = "NAME:...",
	 .help = "add a mask, boxes, text or numbers; see the manual"},
	{.name = "accept", .kind = CLI_CHOICE, AT(accept), .arg_name = "HOW", .choices = "none|eoi|warnings", .default_value = "none",
	 .help = "accept damaged JPEGs"},
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "WHAT=N,...",
	 .help = "limits: pixels, side, scans, memory, members"},
	{.name = "label-key", .kind = CLI_STRING, AT(label_key), .arg_name = "NAME", .default_note = "label",
	 .help = "column or JSON key of the label"},
	{0}};
/* clang-format on */

const struct source source_images = {
	SOURCE_NAMED("images"), .positionals = positionals, .options = options, .settle = image_recipe_settle,
	.scan = scan,
};
