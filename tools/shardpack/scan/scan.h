/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - finds images, with their labels and fields: in folders, archives, tables and COCO
 */
#ifndef SHARD_SHARDPACK_SCAN_SCAN_H
#define SHARD_SHARDPACK_SCAN_SCAN_H

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/cli.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/plan.h"

struct cli_args;
struct dirent;
struct image_list;
struct labels;
struct limits;
struct request;
struct scan;
struct shelf;
struct source_root;
struct stat;
struct source_files;

/*
 * pack_options.c - what the verbs that pack can be told, all of them
 *
 * One struct for all sources: each verb's tables fill in what that source has.
 */

struct pack_options {
	struct cli_strings sources;
	const char *out;

	/* images */
	uint64_t resize, crop;
	int exif, fit, filter, pixels, layout, dtype, bits;
	const char *mean, *std;
	const char *label_regex, *label_list, *label_key, *multi_label, *label_separator, *path_key, *path_suffix;
	const char *columns;
	bool no_label, extents;
	struct cli_strings fields;
	int accept; /* enum decode_accept */

	/* images, array, raw */
	const char *classes;
	bool strict_classes;

	/* array */
	int v2;	      /* what arrays of two unnamed bytes hold; 0: not said */
	int numbered; /* what files are whose names differ in a number; 0: not said */

	/* raw */
	const char *schema;
	uint64_t skip_bytes;

	/* tokens */
	uint64_t sequence, overlap, end_of_text, max_documents;
	int token_dtype;
	bool pack, position_ids;

	/* cifar, mnist */
	int coarse, split;

	uint64_t shard_records, shard_bytes, align;
	int order;
	uint64_t seed;
	int compress;
	uint64_t jobs;
	int read_back; /* 0: yes */
	int on_error;  /* enum on_error */
	struct cli_amount max_bad;
	const char *quarantine, *report, *limit;
	bool replace, sandbox;
	const char *root, *spool;
	bool trust_names, dry_run;
};

/* The topics of --help, in the order in which a user meets them. */
extern const struct cli_topic pack_topics[];

/* The options of every source, in tables. */
extern const struct cli_option pack_output_options[]; /* --out, and what else decides bytes */
extern const struct cli_option pack_run_options[];    /* what does not */
extern const struct cli_option pack_report_options[]; /* --report */
extern const struct cli_option pack_input_options[];  /* where things are, and --dry-run */
extern const struct cli_option pack_unpack_options[]; /* --limit, of sources without images */

/* What these sources say to that option, and to --sandbox.  Returns the exit code. */
int pack_options_unpack(const struct pack_options *o, const struct cli_args *args, struct limits *out);

/*
 * a command on its way to a plan: what was asked, and where the answer goes
 */

struct request {
	const struct pack_options *o;
	const struct cli_args *args;
	const struct source_root *root;
	struct source_files *source_files; /* files that hold inputs; scan() adds them to the plan */
	struct recipe *recipe;
	struct plan *plan;
	struct scan *scan;
};

/*
 * scan.c - what all scans share
 */

/*
 * Add a file to the plan; one whose name ends with .gz, .tgz or .zst is unpacked.  *file is what
 * can be read by offset.  Says why it fails and returns the exit code.
 */
int input_file_open(const struct request *r, const char *path, uint32_t *file);

/*
 * The size of an input in a plan.  It is 0 for anything but a regular file; the error comes when
 * the input is read.
 */
uint64_t input_file_bytes(const struct stat *st);

/*
 * Call `each` for the entries of a folder below the root, "" for the root itself, in no order, until
 * it returns another code than EXIT_DONE.
 */
int scan_each_entry(const struct source_root *root, const char *path,
		    int (*each)(void *context, const struct dirent *entry), void *context);

/*
 * Files that are not inputs: how many of each ending, and their names.  A user who sees ".gif 9"
 * learns that a part of his images is missing; a number alone does not say so.
 */

#define IGNORED_ENDING_BYTES 12 /* longer ones are names, rather than kinds of files */
#define IGNORED_ENDINGS	     64 /* files of further ones are counted together */

struct ignored_ending {
	char text[IGNORED_ENDING_BYTES + 1]; /* lower case, with its dot; empty: no ending */
	uint64_t count;
};

struct ignored {		     /* start it zeroed */
	uint64_t count, other_count; /* other: of none of these endings */
	struct ignored_ending ending[IGNORED_ENDINGS];
	uint32_t ending_count;
	bool keep_names;
	struct text names; /* if they are kept: "folder/name", a NUL behind each, in the order found */
};

/* A file or member `name`, which lies in `folder`: a path, or "" if that is part of the name. */
void ignored_add(struct ignored *g, const char *folder, const char *name);

/* ".txt 3, .json 1, no ending 2"; the rest of many in one number.  It was sorted. */
void ignored_list(const struct ignored *g, struct text *out);

/*
 * What a scan found beside the inputs: ignored files, and warnings
 */

/* Of a field that may have no value: what was looked for in the first input that has none. */
struct scan_field {
	bool found; /* of a key of .json members, which a plan does not look at: one of them has it */
	char absent[400];
};

struct scan {			/* start it zeroed */
	struct ignored ignored; /* files, or members of files, that are not inputs */
	uint64_t stray_count;	/* the ones that would be images, but lie in no class's folder */
	char stray[256];	/* the first of these in byte order */
	uint64_t barren_count;	/* files of records that have none, archives without images */
	char barren[1024];	/* the first of these */
	struct text warnings;	/* one line each, as already printed, or in full what was printed in part */
	struct text notes;	/* likewise */
	struct scan_field field[RECIPE_NAMED_MAX];
};

void scan_free(struct scan *scan);

/* All is listed: put ignored files in order, and warn of images of kinds that are not read. */
void scan_end(struct scan *scan);

/* Print a line and keep it for the report; without the newline.  --quiet hides a note. */
void scan_warn(struct scan *scan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void scan_note(struct scan *scan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Keep a line for scan_field.absent, if there is none yet. */
void scan_absent(struct scan *scan, uint32_t field, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Count a file without records, or an archive without images.  When all files are listed, warn of
 * these, or refuse them if there are no others.  The refusal returns the exit code.
 */
void scan_barren(struct scan *scan, const char *where);
void scan_warn_of_barren(struct scan *scan, const char *what);
int scan_refuse_barren(const struct scan *scan, const char *root, const char *what, const char *remedy);

/*
 * Warn of class folders whose names say that they are not classes: parts of a dataset, such as train
 * and val, and what programs leave behind.  Warn also if the names are numbers, and byte order gives
 * them other classes than these.
 */
void scan_warn_of_folders(struct scan *scan, const struct classes *folders);

/* Warn of images below folders that are hidden themselves, or lie in such folders: copies, mostly. */
void scan_warn_of_hidden(struct scan *scan, const struct plan *plan);

/*
 * labels.c - the label of an image, by --labels, --label-regex or its folder, or none by --no-label
 */

struct labels { /* start it zeroed */
	const struct pack_options *o;
	bool has_regex; /* it was compiled */
	regex_t regex;
	struct text text; /* of the list */
	struct labels_entry {
		uint64_t path_at, label_at; /* in text */
		uint64_t line;
		bool used;
	} * entry; /* by path */
	uint64_t count, capacity;
};

/* As --label-regex, --labels or --no-label say.  Returns the exit code. */
int labels_open(struct labels *l, const struct request *r);
void labels_close(struct labels *l);

/* Was one of these three options given? */
bool labels_given(const struct pack_options *o);

/*
 * The label of an image, into `out` of CLASS_NAME_BYTES_MAX + 1.  `path` is what the user sees
 * below SRC: --labels looks it up in its list, --label-regex is matched with it.  `folder` (or
 * NULL) is the label without these options; `where` names the image in messages.  With --no-label
 * it is an empty text.  An image whose label cannot be is bad input, which `bad` says.
 */
int labels_find(struct labels *l, const char *where, const char *path, const char *folder, char *out,
		struct bad_input *bad);

/*
 * Says that an image has no label, and which options help; `more` names another one.  Returns the
 * exit code.
 */
int labels_missing(const char *where, const char *more);

/* With --multi-label: `path` has one label at most, such as a folder.  Returns the exit code. */
int labels_refuse_many(const struct request *r, const char *path);

/* Lines of --labels that belong to no image are bad inputs: their files are missing. */
int labels_add_unused(struct image_list *images);

/*
 * path_table.c - a list of files with labels: CSV, TSV or JSON lines, by the extension of its name
 *
 * The first line of a CSV or TSV names the columns.  Files stand in the column that --path-key
 * names, else in `path`; if there is none, in `file_name`, else in `image`.  Labels stand in the
 * column `label`, or in the one that --label-key names.  In JSON lines a column is a key, which may
 * be nested, as objects.bbox.  With --extents, images are parts of files: the columns `offset` and
 * `bytes` say which, and `key`, if there is one, is the key of the record.
 */

enum extent_key { EXTENT_OFFSET, EXTENT_BYTES, EXTENT_KEY, EXTENT_KEYS };

struct path_row {
	const char *path, *label; /* label: NULL if none was asked for */
	/* of the recipe's fields that have a column, as text; NULL if there is none, or "" for --columns */
	const char *value[RECIPE_NAMED_MAX];
	/* then why: "no key is called x; the keys are ...", or NULL where that was said before */
	const char *absent[RECIPE_NAMED_MAX];
	/* with --extents, as text; NULL where there is none */
	const char *extent[EXTENT_KEYS];
	uint64_t line;
	const struct bad_input *bad; /* what is wrong with this row alone, or NULL; then `path` may be NULL, too */
};

/*
 * Call `each` for every row, until it returns another code than EXIT_DONE.  `path_key` NULL means
 * the usual names, `label_key` NULL that labels are not looked for, `columns` NULL that nothing
 * else is, `extents` that images are parts of files.  A large table lies on the shelf meanwhile.  Says what is wrong with the table, with
 * `name` and the line, and returns the exit code.  A row that is bad, while the next one can be
 * read, is a row like any other: `each` decides.
 */
int path_table_read(const char *file, const char *name, const char *path_key, const char *label_key,
		    const struct recipe *columns, bool extents, struct shelf *shelf,
		    int (*each)(void *context, const struct path_row *row), void *context);

/*
 * text_each.c
 *
 * Several fields may be picked so: text k of each list goes to input k, and their lists must be
 * equally long.  A text that is not a list counts as a list of one.  A list that is not there, or is
 * empty, may be so if its field is optional; then the field is empty in all inputs of the row.
 */

#define TEXT_EACH_MOST 10000 /* inputs of a row */

/* Does any field have pick=each? */
bool text_each_asked(const struct recipe *r);

/* Of a row, or of an image of COCO. */
struct text_each {
	const struct recipe *recipe;
	size_t count;			/* inputs that it becomes; never 0 */
	json_t *list[RECIPE_NAMED_MAX]; /* NULL: its value is that of all inputs */
	char *one[RECIPE_NAMED_MAX];	/* text_each_at() */
};

/*
 * Look at value[i] of each such field: JSON, or NULL or empty if there is none.  What is not JSON is
 * left to the code that reads the value.  Returns EXIT_BAD, and `bad`, if lists differ in length or
 * are too long.  Close it in either case.
 */
int text_each_open(struct text_each *e, const struct recipe *r, const char *const *value, struct bad_input *bad);

/* value[i] becomes that of input k, until the next call.  False without memory. */
bool text_each_at(struct text_each *e, size_t k, const char **value);

void text_each_close(struct text_each *e);

/*
 * image_list.c - images with labels, as found, before it is known which classes there are
 *
 * Images found in archives, tables and flat folders are added here in source order, each with its
 * label as text.  When all are there, the labels become classes, and each image a line of the plan.
 * Classes are numbers if all labels are, else their names in byte order, or as --classes says.
 * Names among numbers are refused: one "n/a" would make names of a million numbers, and class 0 of
 * "10".  Names of folders are never numbers, so that a folder and a tar of it give the same
 * classes.
 */

struct image_item {
	uint64_t path_at, label_at; /* in text, NUL-terminated */
	uint64_t fields_at;	    /* in text, NUL-terminated: tokens of further fields, as in a plan */
	uint64_t bytes, offset;
	uint32_t file;		 /* PLAN_NO_FILE: its own */
	uint32_t by_folder : 1;	 /* the label is the name of a folder */
	uint32_t unlabelled : 1; /* a bad input whose label is not known */
	uint32_t in_table : 1;	 /* a row of a table, which others may repeat; of a part, with the same place */
	uint32_t further : 1;	 /* made of the same row or entry as the one before it: pick=each */
	uint32_t row : 28;	 /* of the rows that have this path, from 1; by image_rows_number() */
};

/* The first label of a kind, and where it stands. */
struct image_label {
	bool there;
	uint64_t item;
	const char *table; /* below the root; NULL: it is that of the image, in no line of a table */
	uint64_t line;
};

/* The labels of an image that may have several. */
struct label_list {	   /* start it zeroed */
	struct text names; /* each with its NUL */
	uint64_t count;
};

struct image_list { /* start it zeroed, with the shelf of the text, on which the items lie too */
	struct text text;
	struct image_item *item;
	uint64_t count, capacity;
	bool has_label;		/* one was added, the last of which is at last_label_at */
	uint64_t last_label_at; /* so that a label that repeats is kept once */
	bool by_folder;		/* labels of what is added next are names of folders */
	uint64_t by_folder_count, unlabelled_count;
	bool in_table;	   /* what is added next is a row of a table */
	bool further;	   /* and is made of the same row as the last one */
	const char *table; /* in which labels of what is added next stand, and in which line; or NULL */
	uint64_t line;
	struct image_label number, name; /* of labels that are not of folders: "10", and "n/a" */
	uint64_t number_count;		 /* of these labels */
	const struct classes *classes;	 /* of a source without labels that names classes all the same; or NULL */
	/*
	 * With --multi-label: the labels of what is added next, in the place of the argument
	 * `label`; and all labels, each an item of a list of its own.  Then label_at is the number
	 * of the first of an image, whose labels end where those of the next image begin.
	 */
	struct label_list next;
	struct image_list *every;
	bool is_every;	     /* it is such a list of labels */
	uint32_t *container; /* with --extents: the files that images are parts of, by path */
	uint64_t container_count, container_capacity;
	const struct request *request;
	struct labels *labels; /* by --labels and its like; NULL of COCO, which has none */
};

/*
 * Add an image: `path` below the root, of its own file or of part of a file; `fields` has the
 * tokens of further fields; NULL, or an empty text, if there are none.  `label` NULL: it is not known.
 * Returns the exit code.
 */
int image_list_add(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		   uint64_t offset, const struct text *fields);

/*
 * Add an input that is known to be bad; bad_input() in plan.h says how a function tells.  It is an
 * input like any other: counted, listed with all others, and left out with --on-error skip.  `path`
 * names it to people.  Of a row it is the file that the row names, or if it names none,
 * image_list_row().
 * `label` is NULL if it is not known; one that is known counts among the classes.  `bytes`, `file`
 * and `offset` are those of what quarantine keeps of it: 0, PLAN_NO_FILE and 0 if there is nothing.
 */
int image_list_add_bad(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		       uint64_t offset, const struct bad_input *why);

/* The name of a row without a path: "list.csv#17", into `out`.  False if that is too long. */
bool image_list_row(const char *table, uint64_t line, char out[PLAN_PATH_BYTES_MAX]);

/* There is no room for the list.  Returns the exit code. */
int image_list_refuse(const struct image_list *images);

const char *image_list_path(const struct image_list *images, uint64_t i);
bool image_list_is_bad(const struct image_list *images, uint64_t i);

/* " -1", "07" or "3.0": meant as a number? */
bool image_label_is_number(const char *label);

void image_list_free(struct image_list *images);

/*
 * --multi-label: a list in JSON, or a text that --label-separator splits.  Nothing is guessed: a
 * text without that option is refused.  An empty list or text has no label.
 */

/*
 * The labels of a value in JSON, or of a text, which may be a JSON array too; with `lines` each
 * line of it is a label, or several.  They replace what `out` has.  Returns the exit code; `bad`
 * says what is wrong with the value, if anything is.
 */
int label_list_of_json(const struct request *r, const json_t *value, struct label_list *out, struct bad_input *bad);
int label_list_of_text(const struct request *r, const char *text, size_t bytes, bool lines, struct label_list *out,
		       struct bad_input *bad);

/*
 * class_folders.c
 *
 * The rules are those of torchvision's ImageFolder.  Each folder in SRC is a class, and all image
 * files below it are its samples.  Classes are in byte order.  Within a class, folders are ordered
 * by path, and files by name.  Links are followed.  A file is selected by its extension; whether it
 * is an image is known when it is decoded.
 */

/*
 * List the root, with classes as --classes says.  The plan is begun and has all its inputs, but is
 * not finished.  Returns the exit code; on failure the plan is to be freed all the same.
 */
int class_folders_scan(const struct request *r);

/*
 * image_files.c - images that are files, and fields that are files beside them
 *
 * A field is the file at from=, in which {} stands for the path of the image without its extension.
 */

/*
 * The tokens of the fields of the image at `below`, under the folder that was named, each with a
 * blank before it; they replace what `out` has.  Says why it fails and returns the exit code.  A
 * file that is not there makes the image bad input, which `bad` says.
 */
int field_files_find(const struct request *r, const char *below, struct text *out, struct bad_input *bad);

/* Does a file of this name hold a field, as of from={}_mask.png?  Then it is not an input. */
bool field_files_has(const struct recipe *r, const char *name);

/* These two say why they fail and return the exit code. */

/*
 * All images below a folder, by path.  Without --label-regex and --labels their class is the first
 * folder below it.  `path` is relative to the root, "" the root itself.
 */
int image_files_add_folder(struct image_list *images, const char *path);

/* One image; its class is the folder that it lies in. */
int image_files_add(struct image_list *images, const char *path);

/* The name of the folder that an image lies in, which is its class; false if its path has none. */
bool image_folder(const char *path, char out[PLAN_PATH_BYTES_MAX]);

/* ---- image_table.c ---- */

/*
 * Add the files that a table names, or with --extents parts of them.  Paths are relative to its
 * folder or to --root.  Returns the exit code.
 */
int image_table_add(struct image_list *images, const char *path);

/*
 * image_archive.c
 *
 * Members whose names agree up to the first dot of the last component are one sample, wherever they
 * lie, if a member .cls or a key of .json has the label, or other members are fields.  Else each
 * image is a sample: its class is its folder in the archive, or what --label-regex and --labels say
 * of its name.
 */

/* Add the samples of the archive at `path` below the root.  Returns the exit code. */
int image_archive_add(struct image_list *images, const char *path);

/*
 * coco.c
 *
 * from= is a key of the annotations.  Without it boxes come from `bbox`, a mask from
 * `segmentation`, text from `caption`, and numbers from the key with the name of the field.
 * `category` is the class of an annotation: the place of its category_id among all ids.
 */

/*
 * Add the images of `path`, below the root, in its order.  `classes` are the names of its
 * categories.  Returns the exit code.
 */
int coco_images_add(struct image_list *images, struct classes *classes, const char *path);

/*
 * image_plan.c - the classes of the images that were found, and a line of the plan for each
 *
 * A row is an input, also if another row has the same image, with another caption perhaps.  Keys of
 * records differ all the same: the second row of a.jpg is "a.jpg#2".
 */

/*
 * All images are listed: number the rows that have one path, in their order.  A path that is there
 * twice is an error if one of the two is not a row.  Returns the exit code.
 */
int image_rows_number(struct image_list *images);

/* Make classes of the labels and lines of the images.  Call image_rows_number() before. */
int image_plan(struct image_list *images);

/*
 * class_alike.c - class names that people cannot tell apart: "cat" and "cat ", "Cat" and "cat"
 */

/*
 * Warn of such pairs of a finished plan, with what they differ in and how many inputs each has; or
 * refuse the first one if `strict`.  One warning names the first pairs, and reports have a line for
 * each.  Returns the exit code.
 */
int class_alike_judge(const struct plan *plan, struct scan *scan, bool strict);

#endif
