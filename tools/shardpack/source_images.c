/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_images.c - `shardpack images`: pictures, one record each
 */
#include <inttypes.h>

#include "tools/shardpack/scan_images.h"
#include "tools/shardpack/source.h"

#define DEFAULT_RESIZE 256 /* with the crop of 224, what the field calls the standard evaluation transform */
#define DEFAULT_CROP   224

static int settle(const struct request *r)
{
	static const enum resize_filter filters[] = {RESIZE_BILINEAR, RESIZE_BICUBIC, RESIZE_LANCZOS, RESIZE_BOX};
	const struct pack_options *o = r->o;
	struct transform_options *t = &r->recipe->transform;

	t->resize_short = (uint32_t)o->resize;
	t->crop = (uint32_t)o->crop;
	t->filter = filters[o->filter];
	t->layout = o->layout ? IMAGE_CHW : IMAGE_HWC;
	if (!o->resize && !o->crop) {
		t->resize_short = DEFAULT_RESIZE;
		t->crop = DEFAULT_CROP;
		note("no size was given: --resize %d --crop %d", DEFAULT_RESIZE, DEFAULT_CROP);
	} else if (!o->crop) {
		t->crop = t->resize_short;
		note("no crop was given: --crop %" PRIu32 ", all of the shorter side", t->crop);
	} else if (o->resize && o->crop > o->resize) {
		return cli_misuse(r->args, "--crop %" PRIu64 " is larger than --resize %" PRIu64, o->crop, o->resize);
	}
	return EXIT_DONE;
}

static int scan(const struct request *r)
{
	if (r->place->item_count != 1 || !r->place->item[0].is_dir)
		return fail(EXIT_USAGE, "%s: the source must be one folder of class folders", r->place->root);
	return scan_images(r->place->root_fd, r->place->root, r->o->classes, r->recipe, r->plan, r->scan);
}

#define AT(member) .offset = offsetof(struct pack_options, member)

static const struct cli_option positional[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder with one folder of images per class"},
	{0}};

static const struct cli_option options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "256, if no --crop", .help = "shorter side, in pixels"},
	{.name = "crop", .kind = CLI_U64, AT(crop), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "224, or --resize", .help = "centre square, in pixels"},
	{.name = "filter", .kind = CLI_CHOICE, AT(filter), .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear", .help = "as Pillow's, bit for bit"},
	{.name = "layout", .kind = CLI_CHOICE, AT(layout), .choices = "hwc|chw", .default_value = "hwc",
	 .help = "pixels interleaved, or in planes"},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "FILE|DATASET",
	 .default_note = "sorted", .help = "class numbers as there; a FILE has one class name a line"},
	{0}};

static const struct cli_verb verb = {
	.name = "images",
	.summary = "Pack folders of images into a dataset",
	.description = "Each folder in SRC is a class; all JPEG and PNG files below it are its samples, in the order of "
		       "torchvision's ImageFolder. They are decoded, resized and cropped once, and become records of one "
		       "size, in shuffled order unless --order says otherwise.\n"
		       "\n"
		       "The same source and options give the same bytes, for any -j and on any machine. If the command is "
		       "stopped, by whatever, the same command again continues, and ends with the same dataset.\n"
		       "\n"
		       "A file that cannot be read is always an error. With --on-error skip or quarantine, an image that is "
		       "damaged or none at all is left out, counted, and listed by --report; each input is written, skipped, "
		       "quarantined or failed. --quarantine DIR mirrors SRC: SRC/cat/1.jpg is copied to DIR/cat/1.jpg, and "
		       "DIR/quarantine.jsonl has a line of JSON for each, with input, class, bytes, ordinal, reason and "
		       "message.\n"
		       "\n"
		       "Whether DIR of -o is this very dataset is told by the names and sizes of the sources and by the options; "
		       "what is in the sources is not read again. After files were changed in place, with their sizes kept, "
		       "pack into another DIR.",
	.examples = "shardpack images photos/train -o ds/train --resize 256 --crop 224\n"
		    "shardpack images photos/val -o ds/val --resize 256 --crop 224 --classes ds/train\n",
	.positionals = positional,
	.options = {source_output_options, options, source_run_options, source_input_options},
	.options_bytes = sizeof(struct pack_options),
	.run = source_run,
};

static const struct cli_verb plan_verb = {
	.name = "plan images",
	.summary = "Write the plan only, for builds in parts",
	.description = "Lists the source and writes DIR/.shardpack/plan, which fixes every byte of the dataset. Any number of "
		       "`shardpack build DIR --part k/n`, on any machines that see SRC and DIR, then make its shards, and "
		       "`shardpack seal DIR` completes it.",
	.examples = "shardpack plan images photos/train -o ds/train --resize 256 --crop 224\n",
	.positionals = positional,
	.options = {source_output_options, options, source_input_options},
	.options_bytes = sizeof(struct pack_options),
	.run = source_plan_run,
};

const struct source source_images = {
	.name = "images",
	.kind = SOURCE_IMAGES,
	.pack = &verb,
	.plan = &plan_verb,
	.settle = settle,
	.scan = scan,
};
