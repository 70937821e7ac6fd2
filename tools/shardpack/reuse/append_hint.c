/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append_hint.c - what to type if `shardpack append` gets something that is not a dataset
 *
 * A source is packed into a folder beside it, whose name is its own with ".ds" behind it, with the
 * recipe of the dataset that grows: that is in the provenance of its shards, line by line.
 */
#include "tools/shardpack/reuse/reuse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/message.h"

#define MANIFEST "dataset.manifest"

/* Is there no such file in the folder?  An error is not an answer. */
static bool lacks(const char *dir, const char *file)
{
	char path[FILES_PATH_BYTES];

	return files_path(path, dir, file) == EXIT_DONE && access(path, F_OK) != 0 &&
	       (errno == ENOENT || errno == ENOTDIR);
}

/* A word of a command, behind a space. */
static void put_word(struct text *out, const char *word)
{
	text_add(out, " ", 1);
	text_shell_word(out, word);
}

/* "photos/new/" to "photos/new.ds" */
static void put_packed(struct text *out, const char *source)
{
	size_t bytes = strlen(source);
	struct text name = {0};

	while (bytes > 1 && source[bytes - 1] == '/')
		bytes--;
	text_add(&name, source, bytes);
	text_add(&name, ".ds", 3);
	put_word(out, name.data);
	text_free(&name);
}

/* ---- with which verb and options ---- */

static bool ends(const char *name, const char *end)
{
	size_t bytes = strlen(name), end_bytes = strlen(end);

	return bytes > end_bytes && !strcmp(name + bytes - end_bytes, end);
}

/* The value of a line "NAME VALUE" of a recipe; 0 bytes if there is none. */
static struct made_line value_of(const char *recipe, const char *name)
{
	for (const char *at = recipe; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t bytes = strlen(name);

		if (!strncmp(at, name, bytes) && at[bytes] == ' ')
			return (struct made_line){at + bytes + 1, (int)strcspn(at + bytes + 1, "\n")};
	}
	return (struct made_line){"", 0};
}

/* The options whose lines have their names, unless they are what the command does without them. */
static void put_options(struct text *out, const char *recipe)
{
	static const char *const options[][2] = {
		{"resize", "0"},    {"fit", "short"}, {"crop", "0"},	    {"filter", "bilinear"}, {"exif", "ignore"},
		{"layout", "hwc"},  {"dtype", "u8"},  {"bits", "8"},	    {"mean", "0 0 0"},	    {"std", "1 1 1"},
		{"accept", "none"}, {"align", "0"},   {"compress", "none"}, {"pixels", "pillow-13"}};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		struct made_line value = value_of(recipe, options[i][0]);

		if (!value.bytes || (value.bytes == (int)strlen(options[i][1]) &&
				     !strncmp(value.at, options[i][1], (size_t)value.bytes)))
			continue;
		text_format(out, " --%s ", options[i][0]);
		for (int k = 0; k < value.bytes; k++)
			text_add(out, value.at[k] == ' ' ? "," : value.at + k, 1);
	}
}

/* Records of files: "field x u8 tensor none none [4,4] 0 0" is x:u8[4,4]. */
static void put_schema(struct text *out, const char *recipe)
{
	char name[64], dtype[16], shape[128];
	struct text schema = {0};

	for (const char *at = strstr(recipe, "\nfield "); at; at = strstr(at + 1, "\nfield "))
		if (sscanf(at, "\nfield %63s %15s %*s %*s %*s %127s", name, dtype, shape) == 3)
			text_format(&schema, "%s%s:%s%s", schema.bytes ? "," : "", name, dtype,
				    strcmp(shape, "[]") != 0 ? shape : "");
	text_format(out, " --schema");
	put_word(out, schema.bytes ? schema.data : "");
	text_free(&schema);
}

/* `shardpack VERB SRC -o INTO OPTIONS`, as for the dataset `like`, if any; no INTO is SRC.ds. */
static int put_pack(struct text *out, const char *source, const char *into, const struct part *like)
{
	const char *verb = ends(source, ".npy") || ends(source, ".npz") ? "array" : "images";
	struct text recipe = {0};
	struct made_line made = {"", 0};
	int rc = like && like->count ? made_of_read(like, 0, &recipe) : EXIT_DONE;

	if (!rc && recipe.bytes)
		made = value_of(recipe.data, "source");
	text_format(out, "`shardpack %.*s", made.bytes ? made.bytes : (int)strlen(verb), made.bytes ? made.at : verb);
	put_word(out, source);
	text_format(out, " -o");
	if (into)
		put_word(out, into);
	else
		put_packed(out, source);
	if (made.bytes)
		put_options(out, recipe.data);
	if (made.bytes == 3 && !strncmp(made.at, "raw", 3))
		put_schema(out, recipe.data);
	if (like && like->info.class_count) {
		text_format(out, " --classes");
		put_word(out, like->dir);
	}
	text_format(out, "`");
	text_free(&recipe);
	return rc;
}

/* ---- what to type ---- */

/* Word `which` can be packed. */
static int refuse_source(const char *const *words, size_t count, size_t which, const struct part *like)
{
	struct text pack = {0}, append = {0};
	int rc = put_pack(&pack, words[which], NULL, like);

	text_format(&append, "`shardpack append");
	for (size_t i = 0; i < count; i++)
		if (i == which)
			put_packed(&append, words[i]);
		else
			put_word(&append, words[i]);
	text_format(&append, "`");
	if (!rc) {
		rc = fail(EXIT_USAGE, "%s: is not a dataset, and append adds the shards of datasets to a dataset",
			  words[which]);
		if (like)
			hint("pack it with the options of %s: %s, then %s", like->dir, pack.data, append.data);
		else
			hint("pack it: %s, then %s", pack.data, append.data);
	}
	text_free(&pack);
	text_free(&append);
	return rc;
}

/* Nothing has the name of the dataset that is to grow, and the source could be its beginning. */
static int refuse_missing(const char *dir, const char *source)
{
	struct text pack = {0};
	int rc = put_pack(&pack, source, dir, NULL);

	if (!rc) {
		rc = fail(EXIT_USAGE, "%s: there is no such dataset to append to", dir);
		hint("to begin it with %s: %s", source, pack.data);
	}
	text_free(&pack);
	return rc;
}

static int refuse(const char *const *words, size_t count, size_t which)
{
	struct part like = {0};
	struct text name = {0};
	size_t i = 0;
	int rc;

	if (!lacks(words[which], ".shardpack/plan")) {
		put_word(&name, words[which]);
		fail(EXIT_USAGE, "%s: is not a dataset yet, but a plan", words[which]);
		hint("complete it with `shardpack build%s`, then `shardpack seal%s`, and append then", name.data,
		     name.data);
		text_free(&name);
		return EXIT_USAGE;
	}
	while (i < count && lacks(words[i], MANIFEST))
		i++;
	rc = i < count ? part_open(&like, words[i]) : EXIT_DONE;
	if (!rc)
		rc = refuse_source(words, count, which, like.ds ? &like : NULL);
	part_close(&like);
	return rc;
}

int append_check_words(const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *word = words[i];

		if (!lacks(word, MANIFEST) || access(word, F_OK) != 0 || ends(word, ".shard") || ends(word, MANIFEST))
			continue;
		return access(words[0], F_OK) == 0 ? refuse(words, count, i) : refuse_missing(words[0], word);
	}
	return EXIT_DONE;
}
