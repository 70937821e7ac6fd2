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
#include "tools/shardpack/sources/image_recipe.h"
#include "tools/shardpack/scan/image_table.h"
#include "tools/shardpack/scan/labels.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/path_table.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/source.h"
#include "tools/shardpack/scan/webdataset.h"

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
	while ((errno = 0, entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (file_name_is_archive(entry->d_name))
			text_add(archives, entry->d_name, strlen(entry->d_name) + 1);
		else if (fstatat(r->place->root_fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode))
			*has_folders = true;
	}
	if (errno)
		code = fail(EXIT_IO, "%s: cannot read this folder: %s", r->place->root, strerror(errno));
	closedir(dir);
	return code == EXIT_DONE && text_failed(archives) ? fail(EXIT_IO, "out of memory for a list of archives") : code;
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
		return fail(EXIT_USAGE, "%s/%s: --columns is for tables: .csv, .tsv or .jsonl", images->request->place->root, item->path);
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

static const struct cli_option positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder, tars, CSV/TSV/JSONL, or a list on '-'"},
	{0}};

static const struct cli_option options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "256, if no --crop", .help = "shorter side, in pixels"},
	{.name = "fit", .kind = CLI_CHOICE, AT(fit), .arg_name = "HOW", .choices = "short|long|stretch|pad",
	 .default_value = "short", .help = "to N"},
	{.name = "crop", .kind = CLI_U64, AT(crop), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "224, or --resize", .help = "centre square, in pixels"},
	{.name = "filter", .kind = CLI_CHOICE, AT(filter), .arg_name = "NAME", .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear", .help = "kind"},
	{.name = "exif", .kind = CLI_CHOICE, AT(exif), .arg_name = "HOW", .choices = "ignore|apply", .default_value = "ignore",
	 .help = "orientation"},
	{.name = "layout", .kind = CLI_CHOICE, AT(layout), .choices = "hwc|chw", .default_value = "hwc",
	 .help = "pixels interleaved, or in planes"},
	{.name = "dtype", .kind = CLI_CHOICE, AT(dtype), .arg_name = "TYPE", .choices = "u8|f16|bf16|f32", .default_value = "u8",
	 .help = "of samples"},
	{.name = "mean", .kind = CLI_STRING, AT(mean), .arg_name = "R,G,B", .default_note = "0,0,0",
	 .help = "x/255 - mean"},
	{.name = "std", .kind = CLI_STRING, AT(std), .arg_name = "R,G,B", .default_note = "1,1,1", .help = "divisor", .beside = true},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "LIST",
	 .default_note = "sorted", .help = "class numbers as in this list or dataset"},
	{.name = "labels", .kind = CLI_FILE, AT(label_list), .arg_name = "FILE", .help = "CSV, TSV or JSONL of paths and labels"},
	{.name = "label-regex", .kind = CLI_STRING, AT(label_regex), .arg_name = "RE", .help = "its first brackets match the label"},
	{.name = "columns", .kind = CLI_STRING, AT(columns), .arg_name = "FIELDS", .help = "more columns of tables: age:f32,site:u16"},
	{.name = "field", .kind = CLI_STRING, .many = true, AT(fields), .arg_name = "NAME:...", .help = "mask, boxes, text, numbers: see the manual"},
	{.name = "accept", .kind = CLI_CHOICE, AT(accept), .arg_name = "HOW", .choices = "none|eoi|warnings", .default_value = "none",
	 .help = "damaged JPEGs"},
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "WHAT=N,...", .help = "pixels, side, scans, memory, members"},
	{.name = "label-key", .kind = CLI_STRING, AT(label_key), .arg_name = "NAME", .default_note = "label",
	 .help = "column, or key of JSON"},
	{0}};

const struct source source_images = {
	SOURCE_NAMED("images"),
	.summary = "Pack images: folders, tars (WebDataset), tables",
	.description = "SRC is one of these, or several, or a quoted pattern, or '-' for a list on standard input:\n"
		       "\n"
		       "A folder whose folders are classes; all images (JPEG, PNG, WebP, BMP, PPM) below are samples, in the order of torchvision's "
		       "ImageFolder. A flat folder, if --label-regex or --labels say which label each image has.\n"
		       "\n"
		       "A tar, a pattern of tars ('shards/train-*.tar'), or a folder of them (plain, or .gz, .zst or .zip, which "
		       "are unpacked once to --spool). As WebDataset and img2dataset "
		       "make them, if there are .cls members, or .json ones with --label-key: members of one name up to the first dot are "
		       "a sample. Else each image is one, and its folder in the tar its class. What macOS adds to archives (__MACOSX, ._x.jpg) is "
		       "ignored.\n"
		       "\n"
		       "A .csv, .tsv or .jsonl with the columns path (or file_name, or image) and label (or --label-key); paths are "
		       "relative to it, or to --root. Other columns of numbers become fields if --columns names "
		       "them with their types; the rest is not packed, unless --field asks for it.\n"
		       "\n"
		       "Labels that are all whole numbers are the class numbers. Others are names, numbered in byte order, and so are folders, "
		       "whatever they are called: 1, 10, 2. With --classes both must be in that list.\n"
		       "\n"
		       "One file under two names, by links of either kind, is two inputs; a path that is there twice is refused. `shardcat stats` "
		       "lists records that are copies.\n"
		       "\n"
		       "Images are decoded, resized and cropped once, and become records of one size, in shuffled order unless --order "
		       "says otherwise.\n"
		       "\n"
		       "What --fit does, bit for bit, with N of --resize and C of --crop, on PIL images: short is torchvision's Resize(N), "
		       "CenterCrop(C). long is Resize(None, max_size=N), CenterCrop(C). stretch is Resize((N, N)), CenterCrop(C). pad is "
		       "PIL.ImageOps.pad(image, (N, N)). long and pad keep all of the image and fill up with zeros; they differ where the "
		       "short side, or half of what is filled, is no whole number. A side that would become 0 becomes 1.\n"
		       "\n"
		       "The orientation that EXIF in a JPEG, PNG or WebP states is ignored, as ImageFolder does. With --exif apply the image is "
		       "set upright first, as PIL.ImageOps.exif_transpose does; EXIF that cannot be read counts as none.\n"
		       "\n"
		       "Samples are u8 as Pillow has them; that is the smallest, and a trainer normalises them on the fly. With --dtype f16, bf16 "
		       "or f32 a sample x becomes (x / 255 - mean) / std of its channel, computed in double precision and rounded once to "
		       "that type, to nearest, a half to even. So does what a crop or --fit filled up: its x is 0. Sums are recorded of u8 "
		       "only; `shardcat stats` reads floats themselves. `shardcat show` and `get --png` undo it.\n"
		       "\n"
		       "--field NAME:OPTION,... adds a field to every record; repeat it for more. kind= says what it is. "
		       "mask: u8 [C,C], the values of a PNG, BMP or PGM of one channel; it is as large as its image and moves with it, to the nearest "
		       "pixel; fill=N where there is no image. "
		       "boxes: f32 [max,4]; pixels of the source image in, xyxy or format=xywh; pixels of the record out, xyxy, clamped as "
		       "torchvision's v2 Resize and CenterCrop do. None is removed: one that was cropped away has no area. "
		       "image: another RGB image, with resize=, crop=, fit=, filter=, layout=, dtype=, mean=R/G/B, std=R/G/B and decode-scale= of its own; what is not said is "
		       "as for the first, sizes both or none. "
		       "text (UTF-8) and bytes: at most max=N, as they are, a newline at the end included. "
		       "tensor: numbers of dtype= and shape=4x4; without a shape, one. ragged: the same with max=64 or max=64x4, of which the first axis varies. "
		       "How long boxes, text, bytes and ragged numbers are is in a field NAME_length. --field image:resize=N,... is the same as "
		       "--resize N.\n"
		       "\n"
		       "--field image:decode-scale=2, 4 or 8 decodes JPEGs at 1/2, 1/4 or 1/8, with libjpeg's own scaling, before they are resized: faster where images are "
		       "much larger than what they become (photographs of 12 megapixels to 256 pixels take half the instructions, with auto, those of 500 x 375 all of them), and not "
		       "the same pixels. auto is for each image the smallest that is still at least as large, width and "
		       "height, as --resize makes it; so does Pillow's Image.draft(), and the pixels are, bit for bit, those of its resize(box=) with the box that draft() "
		       "returns. An image that 2, 4 or 8 would make smaller than that is bad input. Other formats are decoded whole, masks and boxes are those of the whole image, "
		       "and --limit is for the size in the file. The default is 1.\n"
		       "\n"
		       "from= says where a field is; without it, what has the field's name. In a table, a column: of masks and images a path, else the value, "
		       "numbers and boxes as a JSON array. In an archive, a member of the sample, by its suffix: from=seg.png; or from=json:KEY of the "
		       "sample's .json. Of images that are files, a path with {} in it, which is the image's path below SRC without its extension: "
		       "from=masks/{}.png; --root names a folder that holds both. Files and members have numbers as JSON, or as .npy of any dtype that "
		       "the field's holds. With optional a sample of a list, a text or a mask may have none: length 0, or a mask of fill. With "
		       "--exif apply boxes turn with their image, a mask by its own EXIF.\n"
		       "\n"
		       "Values of a table stand in the plan, and take 2 bytes of memory for each of theirs; one that is no good is refused when the "
		       "table is read. What is no good in files and members makes its sample bad input, of which --quarantine keeps all parts.\n"
		       "\n"
		       "The same source and options give the same bytes, for any -j and on any machine. If the command is "
		       "stopped, by whatever, the same command again continues, and ends with the same dataset.\n"
		       "\n"
		       "A file that cannot be read is always an error. With --on-error skip or quarantine, an image that is "
		       "damaged or none at all is left out, counted, and listed by --report; each input is written, skipped, "
		       "quarantined or failed. If all are bad there is no dataset, and the exit code is 1. --quarantine DIR mirrors SRC: SRC/cat/1.jpg is copied to DIR/cat/1.jpg, and "
		       "DIR/quarantine.jsonl has a line of JSON for each, with input, class, bytes, ordinal, reason and "
		       "message.\n"
		       "\n"
		       "A JPEG that libjpeg warns of is bad input, unless --accept says otherwise. eoi takes those that lack their end-of-image marker "
		       "and nothing else: all pixels are there. warnings takes all that libjpeg makes pixels of, with a warning; it fills "
		       "what is missing with gray or what was before. The pixels are libjpeg-turbo's, as djpeg gives them. Either adds a field damage (u8) to every "
		       "record: 0, 5 if only the marker was missing, 4 if pixels are made up; so a trainer can leave them out. Each such image is "
		       "named in a warning, counted at the end, and listed by --report. Pixels that "
		       "are wrong without a warning are seen by nobody: of 200 files with one flipped bit, libjpeg warned of 62. Other formats, and what --max-bad counts, stay as they are.\n"
		       "\n"
		       "What is larger than --limit says is bad input; only a sample of too many members ends the command when the archive is read. "
		       "pixels [89478485] are those of an image, side [65500, the most there can be] the longer side of it, scans [100] those of "
		       "a JPEG, memory [768M] what libjpeg holds beside the image, 2 bytes for each pixel and channel of a progressive JPEG; "
		       "members [1000] are those of one sample in an archive. K, M, G and T are powers of 1024: --limit pixels=200M,memory=2G. "
		       "Memory for large images is shared: one that needs more than 256 MiB is decoded alone, whatever -j says.\n"
		       "\n"
		       "Whether DIR of -o is this very dataset is told by the names and sizes of the sources and by the options; "
		       "what is in the sources is not read again. After files were changed in place, with their sizes kept, "
		       "pack into another DIR.",
	.examples = "shardpack images photos/train -o ds/train --resize 256 --crop 224\n",
	.plan_description = "Lists the source and writes DIR/.shardpack/plan, which fixes every byte of the dataset. Any number of "
			    "`shardpack build DIR --part k/n`, on any machines that see SRC and DIR, then make its shards, and "
			    "`shardpack seal DIR` completes it.",
	.plan_examples = "shardpack plan images photos/train -o ds/train --resize 256 --crop 224\n",
	.positionals = positionals,
	.options = options,
	.settle = image_recipe_settle,
	.scan = scan,
};
