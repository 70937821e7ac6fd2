/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images_options.c - the command lines of `shardpack images` and `shardpack plan images`
 */
#include "tools/shardpack/images_options.h"

#include "tools/shardpack/command.h"

#define AT(member) .offset = offsetof(struct images_options, member)

static const struct cli_option source_positional[] = {
	{.name = "SRC", .kind = CLI_DIR, .required = true, AT(source), .help = "folder with one folder of images per class"},
	{0}};

/* What decides the bytes of the dataset. */
static const struct cli_option recipe_options[] = {
	{.name = "out", .short_name = 'o', .kind = CLI_DIR, .required = true, AT(out), .arg_name = "DIR",
	 .help = "folder of the dataset; made if it is not there"},
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
	{.name = "order", .kind = CLI_CHOICE, AT(order), .choices = "shuffle|source", .default_value = "shuffle",
	 .help = "order of the records"},
	{.name = "seed", .kind = CLI_U64, AT(seed), .arg_name = "N", .default_value = "0", .help = "of the shuffle"},
	{.name = "shard-records", .kind = CLI_U64, AT(shard_records), .arg_name = "N", .min = 1,
	 .default_note = "by --shard-bytes", .help = "records per shard"},
	{.name = "shard-bytes", .kind = CLI_SIZE, AT(shard_bytes), .arg_name = "SIZE", .min = 1,
	 .default_note = "an eighth, 64 MiB to 1 GiB",
	 .help = "records per shard by their size"},
	{.name = "compress", .kind = CLI_CHOICE, AT(compress), .choices = "none|lz4", .default_value = "none",
	 .help = "of the images; photographs hardly shrink"},
	{.name = "align", .kind = CLI_U64, AT(align), .arg_name = "4096", .min = 4096, .max = 4096,
	 .default_note = "by size", .help = "start each image on a page, for O_DIRECT"},
	{.name = "on-error", .kind = CLI_CHOICE, AT(on_error), .choices = "fail|skip|quarantine", .default_value = "fail",
	 .help = "what to do with bad images"},
	{.name = "quarantine", .kind = CLI_DIR, AT(quarantine), .arg_name = "DIR", .help = "copy bad images there"},
	{0}};

/* What does not. */
static const struct cli_option run_options[] = {
	{.name = "jobs", .short_name = 'j', .kind = CLI_U64, AT(jobs), .arg_name = "N", .min = 1, .max = 1024,
	 .default_note = "one per CPU", .help = "threads that convert"},
	{.name = "max-bad", .kind = CLI_COUNT_OR_PERCENT, AT(max_bad), .arg_name = "N|P%", .default_note = "no limit",
	 .help = "stop when more images are bad than that"},
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE", .help = "write what happened as JSON"},
	{.name = "replace", .kind = CLI_FLAG, AT(replace), .help = "take the place of another dataset in DIR"},
	{0}};

static const struct cli_option look_options[] = {
	{.name = "dry-run", .kind = CLI_FLAG, AT(dry_run), .help = "print the plan and write nothing"},
	{0}};

const struct cli_verb command_images = {
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
	.positionals = source_positional,
	.options = {recipe_options, run_options, look_options},
	.options_bytes = sizeof(struct images_options),
	.run = images_run,
};

const struct cli_verb command_plan_images = {
	.name = "plan images",
	.summary = "Write the plan only, for builds in parts",
	.description = "Lists the source and writes DIR/.shardpack/plan, which fixes every byte of the dataset. Any number of "
		       "`shardpack build DIR --part k/n`, on any machines that see SRC and DIR, then make its shards, and "
		       "`shardpack seal DIR` completes it.",
	.examples = "shardpack plan images photos/train -o ds/train --resize 256 --crop 224\n",
	.positionals = source_positional,
	.options = {recipe_options, look_options},
	.options_bytes = sizeof(struct images_options),
	.run = images_plan_run,
};
