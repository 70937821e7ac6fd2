/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_folders.c - a folder whose folders are classes, to a plan
 *
 * One class at a time is in memory in full, because it has to be sorted; the plan takes it
 * over in its own form.  Each folder is opened once, so however deep the tree, one
 * descriptor is in use.
 */
#include "tools/shardpack/scan/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

struct folder {
	uint64_t path_at; /* in names */
	uint64_t parent;  /* its number; its own for the class's folder */
	dev_t dev;
	ino_t ino;
};

struct file {
	uint64_t name_at; /* in names */
	uint64_t folder;  /* number; after sorting, rank */
	uint64_t bytes;
	uint64_t missing_at; /* in names, why there is none; 0: there is one */
};

/* What is below one class. */
struct walk {
	const struct request *request;
	struct text names; /* NUL-terminated, one behind the other; its shelf has all lists */
	struct folder *folder;
	uint64_t folder_count, folder_capacity;
	uint64_t reading; /* the folder whose entries are read */
	struct file *file;
	uint64_t file_count, file_capacity;
	struct progress *progress;
};

static int out_of_room(const struct walk *w)
{
	return shelf_refuse(w->names.shelf, "a list of %" PRIu64 " files of %s", w->file_count, w->request->root->name);
}

/* Keep a string and say where; at failure `names` remembers it. */
static uint64_t keep(struct walk *w, const char *name)
{
	uint64_t at = w->names.bytes;

	text_add(&w->names, name, strlen(name) + 1);
	return at;
}

/* A folder that is to be read.  One that is its own ancestor would never end. */
static int add_folder(struct walk *w, const char *path, uint64_t parent, const struct stat *st)
{
	uint64_t up = parent;

	while (w->folder_count) {
		if (w->folder[up].dev == st->st_dev && w->folder[up].ino == st->st_ino)
			return fail(EXIT_BAD, "%s/%s: this link leads back to %s/%s; following it would never end",
				    w->request->root->name, path, w->request->root->name,
				    w->names.data + w->folder[up].path_at);
		if (w->folder[up].parent == up)
			break;
		up = w->folder[up].parent;
	}
	if (!grow_on(w->names.shelf, &w->folder, &w->folder_capacity, w->folder_count + 1, sizeof(*w->folder)))
		return out_of_room(w);
	w->folder[w->folder_count] = (struct folder){keep(w, path), parent, st->st_dev, st->st_ino};
	w->folder_count++;
	return text_failed(&w->names) ? out_of_room(w) : EXIT_DONE;
}

/* `missing`: NULL, or why there is none. */
static int add_file(struct walk *w, const char *name, uint64_t folder, const struct stat *st, const char *missing)
{
	if (!grow_on(w->names.shelf, &w->file, &w->file_capacity, w->file_count + 1, sizeof(*w->file)))
		return out_of_room(w);
	w->file[w->file_count] = (struct file){.name_at = keep(w, name),
					       .folder = folder,
					       .bytes = missing ? 0 : input_file_bytes(st),
					       .missing_at = missing ? keep(w, missing) : 0};
	w->file_count++;
	progress_add(w->progress, 1, 0, 0);
	if (w->file_count % 256 == 0)
		progress_tick(w->progress);
	return text_failed(&w->names) ? out_of_room(w) : EXIT_DONE;
}

/* An entry of a folder of the class. */
static int add_entry(void *context, const struct dirent *entry)
{
	struct walk *w = context;
	uint64_t folder = w->reading;
	const char *parent = w->names.data + w->folder[folder].path_at;
	char path[PLAN_PATH_BYTES_MAX];
	bool image = file_name_is_image(entry->d_name) && !field_files_has(w->request->recipe, entry->d_name);
	struct bad_input bad = {0};
	struct stat st = {0};
	int rc;
	size_t bytes = strlen(parent) + 1 + strlen(entry->d_name);

	if (entry->d_type == DT_REG && !image) {
		ignored_add(&w->request->scan->ignored, parent, entry->d_name);
		return EXIT_DONE;
	}
	if (bytes >= sizeof(path))
		return fail(EXIT_BAD, "%s/%s/%s: a path of %zu bytes; the limit is %zu", w->request->root->name, parent,
			    entry->d_name, bytes, sizeof(path) - 1);
	strcpy(stpcpy(stpcpy(path, parent), "/"), entry->d_name);
	/* Whatever its name says, it may be a folder of images. */
	rc = source_root_stat_entry(w->request->root, path, &st, &bad);
	if (bad_input_is(&bad, rc) && !field_files_has(w->request->recipe, entry->d_name))
		return add_file(w, entry->d_name, folder, &st, bad.message);
	if (rc != EXIT_DONE && !bad.reason)
		return rc;
	if (S_ISDIR(st.st_mode))
		return add_folder(w, path, folder, &st);
	if (image)
		return add_file(w, entry->d_name, folder, &st, NULL);
	ignored_add(&w->request->scan->ignored, parent, entry->d_name);
	return EXIT_DONE;
}

static int compare_folders(const void *a, const void *b, void *context)
{
	const struct walk *w = context;

	return strcmp(w->names.data + w->folder[*(const uint64_t *)a].path_at,
		      w->names.data + w->folder[*(const uint64_t *)b].path_at);
}

static int compare_files(const void *a, const void *b, void *context)
{
	const struct walk *w = context;
	const struct file *x = a, *y = b;

	if (x->folder != y->folder)
		return x->folder < y->folder ? -1 : 1;
	return strcmp(w->names.data + x->name_at, w->names.data + y->name_at);
}

/* An input that stands for the images that should be there. */
static int add_empty(const struct walk *w, const char *name, uint64_t class_idx, uint64_t others)
{
	const struct plan_input in = {.class_idx = (uint32_t)class_idx, .file = PLAN_NO_FILE};
	struct text fields = {0};
	struct bad_input bad = {0};
	int rc;

	bad_input(&bad, SHARD_MISS_EMPTY,
		  "a class without images (%" PRIu64 " other files); remove the folder or add images", others);
	bad_input_write(&bad, &fields);
	rc = plan_add_input(w->request->plan, &in, name, fields.data);
	text_free(&fields);
	return rc;
}

/* Folders by path, files by folder and name, into the plan. */
static int add_sorted(struct walk *w, uint64_t class_idx)
{
	struct shelf *shelf = w->names.shelf;
	uint64_t *by_path = NULL, *rank, capacity = 0;
	struct text fields = {0};
	char path[PLAN_PATH_BYTES_MAX];
	int rc = EXIT_DONE;

	if (!grow_on(shelf, &by_path, &capacity, 2 * w->folder_count, sizeof(*by_path)))
		return out_of_room(w);
	rank = by_path + w->folder_count;
	for (uint64_t i = 0; i < w->folder_count; i++)
		by_path[i] = i;
	if (!shelf_sort(shelf, by_path, w->folder_count, sizeof(*by_path), compare_folders, w))
		rc = out_of_room(w);
	for (uint64_t i = 0; i < w->folder_count; i++)
		rank[by_path[i]] = i;
	for (uint64_t i = 0; i < w->file_count; i++)
		w->file[i].folder = rank[w->file[i].folder];
	if (rc == EXIT_DONE && !shelf_sort(shelf, w->file, w->file_count, sizeof(*w->file), compare_files, w))
		rc = out_of_room(w);

	for (uint64_t i = 0; rc == EXIT_DONE && i < w->file_count; i++) {
		const struct file *f = &w->file[i];
		struct bad_input bad = {0};
		const struct plan_input in = {
			.class_idx = (uint32_t)class_idx, .source_bytes = f->bytes, .file = PLAN_NO_FILE};
		char *end = stpcpy(path, w->names.data + w->folder[by_path[f->folder]].path_at);

		stpcpy(stpcpy(end, "/"), w->names.data + f->name_at); /* add_entry() saw that it fits */
		rc = f->missing_at ? bad_input(&bad, SHARD_MISS_MISSING, "%s", w->names.data + f->missing_at)
				   : field_files_find(w->request, path, &fields, &bad);
		if (bad_input_is(&bad, rc)) {
			bad_input_write(&bad, &fields);
			rc = EXIT_DONE;
		}
		if (rc == EXIT_DONE)
			rc = plan_add_input(w->request->plan, &in, path, fields.bytes ? fields.data : "");
	}
	text_free(&fields);
	shelf_free(shelf, by_path);
	return rc;
}

static int scan_class(struct walk *w, const char *name, uint64_t class_idx)
{
	uint64_t ignored_before = w->request->scan->ignored.count;
	struct stat st;
	int rc;

	w->names.bytes = 0;
	w->folder_count = 0;
	w->file_count = 0;
	if (fstatat(w->request->root->fd, name, &st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: %s", w->request->root->name, name, strerror(errno));
	rc = add_folder(w, name, 0, &st);
	for (uint64_t i = 0; rc == EXIT_DONE && i < w->folder_count; i++) {
		char path[PLAN_PATH_BYTES_MAX]; /* names may move while the folder is read */

		strcpy(path, w->names.data + w->folder[i].path_at);
		w->reading = i;
		rc = scan_each_entry(w->request->root, path, add_entry, w);
	}
	if (rc == EXIT_DONE && !w->file_count)
		return add_empty(w, name, class_idx, w->request->scan->ignored.count - ignored_before);
	return rc == EXIT_DONE ? add_sorted(w, class_idx) : rc;
}

/* An entry of the source itself: a folder is a class, whose name goes to names. */
static int add_top(void *context, const struct dirent *entry)
{
	struct walk *w = context;
	struct bad_input bad = {0};
	struct stat st = {0};

	/* A link that leads nowhere may be a class, unless it is called like an image. */
	if (source_root_stat_entry(w->request->root, entry->d_name, &st,
				   file_name_is_image(entry->d_name) ? &bad : NULL) != EXIT_DONE &&
	    !bad.reason)
		return EXIT_IO;
	if (S_ISDIR(st.st_mode)) {
		keep(w, entry->d_name);
	} else {
		ignored_add(&w->request->scan->ignored, "", entry->d_name);
		if (file_name_is_image(entry->d_name) &&
		    (!w->request->scan->stray_count++ || strcmp(entry->d_name, w->request->scan->stray) < 0))
			snprintf(w->request->scan->stray, sizeof(w->request->scan->stray), "%s", entry->d_name);
	}
	return text_failed(&w->names) ? out_of_room(w) : EXIT_DONE;
}

/* The classes that have a folder, sorted. */
static int find_folders(struct walk *w, struct classes *folders)
{
	const char *name, *end;
	int rc = scan_each_entry(w->request->root, "", add_top, w);

	end = w->names.data + w->names.bytes;
	for (name = w->names.data; rc == EXIT_DONE && name < end; name += strlen(name) + 1)
		rc = classes_add(folders, name, strlen(name), w->request->root->name);
	if (rc == EXIT_DONE && !folders->count)
		rc = fail(EXIT_BAD,
			  "%s: no class folders in it (%" PRIu64
			  " files found). Make one folder per class, or give the labels with "
			  "--labels FILE or --label-regex RE, or pack without labels with --no-label",
			  w->request->root->name, w->request->scan->ignored.count);
	classes_sort(folders);
	return rc;
}

int class_folders_scan(const struct request *r)
{
	const char *source = r->root->name, *class_list = r->o->classes;
	struct progress progress;
	struct walk w = {.request = r, .names.shelf = r->plan->text.shelf, .progress = &progress};
	char source_text[1024], stray_text[1024];
	struct classes folders = {0}, listed = {0};
	const struct classes *classes = class_list ? &listed : &folders;
	int rc = class_list ? classes_from_list(&listed, class_list) : EXIT_DONE;

	progress_start(&progress, "listing", "files", 0);
	if (rc == EXIT_DONE)
		rc = find_folders(&w, &folders);
	if (rc == EXIT_DONE && !class_list)
		rc = classes_index(&folders, source);
	/* torchvision ignores such images as well, but the user may not know that */
	if (rc == EXIT_DONE && r->scan->stray_count) {
		escape_text(source_text, sizeof(source_text), source, strlen(source), ESCAPE_TALK);
		escape_text(stray_text, sizeof(stray_text), r->scan->stray, strlen(r->scan->stray), ESCAPE_TALK);
		scan_warn(r->scan,
			  "%" PRIu64 " image%s directly in %s, outside any class folder: ignored (the first is '%s')",
			  r->scan->stray_count, r->scan->stray_count == 1 ? " lies" : "s lie", source_text, stray_text);
	}
	if (rc == EXIT_DONE && !class_list)
		scan_warn_of_folders(r->scan, &folders);
	for (uint64_t i = 0; rc == EXIT_DONE && i < folders.count; i++)
		if (classes_find(classes, folders.name[i]) < 0)
			rc = fail(EXIT_BAD,
				  "%s/%s: no class has that name, of the %" PRIu64 " classes of --classes "
				  "%s",
				  source, folders.name[i], classes->count, class_list);
	if (rc == EXIT_DONE)
		rc = plan_begin(r->plan, r->recipe, classes);
	for (uint64_t i = 0; rc == EXIT_DONE && i < folders.count; i++)
		rc = scan_class(&w, folders.name[i], (uint64_t)classes_find(classes, folders.name[i]));

	progress_abandon(&progress);
	classes_free(&folders);
	classes_free(&listed);
	shelf_free(w.names.shelf, w.folder);
	shelf_free(w.names.shelf, w.file);
	text_free(&w.names);
	return rc;
}
