/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - what can be packed: a row for each source, in source_NAME.c or presets.c
 *
 * A source is two verbs, `shardpack NAME` and `shardpack plan NAME`, and two functions.  settle()
 * looks at the command alone; scan() looks at the inputs and fills the plan.  There are two kinds:
 *
 *   images  each input has a line in the plan, is read whole, decoded and transformed.
 *           source_images.c looks at what was named.  class_folders.c plans a folder of classes,
 *           one class at a time.  What lies elsewhere is found by image_files.c, image_table.c,
 *           image_archive.c and webdataset.c; image_list.c collects it and makes the plan's lines.
 *   fixed   inputs are records of files, counted; the plan has slices of files for each field.
 *           fixed_source.c goes through the files, fixed_fields.c makes the slices.  presets.c has
 *           published datasets, which are files of records or arrays with known names.
 */
#ifndef SHARD_SOURCES_SOURCE_H
#define SHARD_SOURCES_SOURCE_H

struct cli_option;
struct request;

struct source {
	const char *name, *plan_name;			/* of the verbs; docs/man/shardpack.md has the text of both */
	const struct cli_option *positionals, *options; /* beside those of pack_options.h */

	/* Both say why they fail and return the exit code. */
	/* complete the recipe as far as options decide it; NULL: they do not */
	int (*settle)(const struct request *r);
	/* begin the plan and add all inputs; on failure it is freed all the same */
	int (*scan)(const struct request *r);
};

#define SOURCE_NAMED(NAME) .name = NAME, .plan_name = "plan " NAME

extern const struct source source_images, source_array, source_raw, source_tokens, source_cifar, source_mnist;

#endif
