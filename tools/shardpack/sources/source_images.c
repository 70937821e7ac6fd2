/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_images.c - `shardpack images`: pictures, one record each
 *
 * Which kind of source was named, and so which of the files that find images has it.
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
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

/* ---- files of other kinds ---- */

#define USE_PYTHON   "read its records in Python, and give them to libshard.pack(); docs/PYTHON.md shows how"
#define GIVE_TO_PACK "give it to libshard.pack() in Python, which reads it; docs/MIGRATING.md shows how"
#define CONVERT(kind) \
	"pack the images in it with `python -m libshard.convert " kind " SRC OUT`; docs/MIGRATING.md says more"

/* By the ending of a name: what it is, and what to do. */
static const struct foreign {
	const char *ending, *what, *remedy;
} foreign[] = {
	{".parquet", "a table of Parquet",
	 "write it as JSON Lines with paths of images, python3 -c 'import pandas; pandas.read_parquet(\"IN.parquet\")"
	 ".to_json(\"OUT.jsonl\", orient=\"records\", lines=True)', or if the images are in it, " GIVE_TO_PACK},
	{".arrow", "a table of Arrow", GIVE_TO_PACK},
	{".feather", "a table of Arrow", USE_PYTHON},
	{".tfrecord", "a file of TFRecord", CONVERT("tfrecord")},
	{".tfrecords", "a file of TFRecord", CONVERT("tfrecord")},
	{".mds", "a shard of MosaicML Streaming", CONVERT("mds")},
	{".beton", "a dataset of FFCV", CONVERT("beton")},
	{".rec", "a file of RecordIO", CONVERT("recordio")},
	{".lmdb", "a database of LMDB", CONVERT("lmdb")},
	{".mdb", "a database of LMDB", CONVERT("lmdb")},
	{".h5", "a file of HDF5", GIVE_TO_PACK},
	{".hdf5", "a file of HDF5", GIVE_TO_PACK},
	{".npy", "an array of NumPy", "pack it with `shardpack array`"},
	{".npz", "a file of arrays", "pack it with `shardpack array`"},
	{".pkl", "a pickle of Python", USE_PYTHON},
	{".pickle", "a pickle of Python", USE_PYTHON},
	{".pt", "a file of PyTorch", USE_PYTHON},
	{".pth", "a file of PyTorch", USE_PYTHON},
	{".mp4", "a video", "write its frames as images, for example with ffmpeg, and pack their folder"},
	{".avi", "a video", "write its frames as images, for example with ffmpeg, and pack their folder"},
	{".mkv", "a video", "write its frames as images, for example with ffmpeg, and pack their folder"},
	{".mov", "a video", "write its frames as images, for example with ffmpeg, and pack their folder"},
	{".webm", "a video", "write its frames as images, for example with ffmpeg, and pack their folder"},
	{".7z", "an archive of 7-Zip", "unpack it, and pack the folder"},
	{".rar", "an archive of RAR", "unpack it, and pack the folder"},
	{".xlsx", "a workbook", "save the sheet as CSV in UTF-8"},
	{".xls", "a workbook", "save the sheet as CSV in UTF-8"},
	{".xml", "XML", "write its annotations as JSON of COCO, or as a table"},
	{NULL, NULL, NULL}};

static const struct foreign *find_foreign(const char *name)
{
	for (const struct foreign *f = foreign; f->ending; f++) {
		const char *part = strcasestr(name, f->ending); /* x.tfrecord-00000-of-00010 */

		if (file_name_has_extension(name, f->ending) || (part && part[strlen(f->ending)] == '-'))
			return f;
	}
	return NULL;
}

static bool is_yaml(const char *name)
{
	return file_name_has_extension(name, ".yaml") || file_name_has_extension(name, ".yml");
}

/* What lies directly in the folder that was named. */
struct folder {
	const struct source_root *root;
	struct text archives, others; /* names of files, NUL-terminated */
	bool has_folders;
	char dangling[256];   /* a link that leads nowhere, and may be a folder; or empty */
	uint64_t image_count; /* among the others */
	char image[256];      /* the first of these in byte order */
	const char *table;    /* as Hugging Face's imagefolder has it; NULL: there is none */
	bool has_parquet;     /* the same as metadata.parquet */
	char foreign[256];    /* the first in byte order that find_foreign() knows, or is YAML */
};

#define FOLDER_PARQUET "metadata.parquet"
static const char *const folder_tables[] = {"metadata.jsonl", "metadata.csv"};

static int look_at_entry(void *context, const struct dirent *entry)
{
	const char *name = entry->d_name;
	struct folder *in = context;
	struct bad_input bad = {0};
	struct stat st;
	int rc;

	if (file_name_is_archive(name)) {
		text_add(&in->archives, name, strlen(name) + 1);
		return EXIT_DONE;
	}
	rc = source_root_stat_entry(in->root, name, &st, &bad);
	if (rc != EXIT_DONE && !bad_input_is(&bad, rc))
		return rc;
	if (rc == EXIT_DONE && S_ISDIR(st.st_mode)) {
		in->has_folders = true;
		return EXIT_DONE;
	}
	if (rc != EXIT_DONE && !file_name_is_image(name)) { /* a link that leads nowhere may be a folder */
		snprintf(in->dangling, sizeof(in->dangling), "%s", name);
		return EXIT_DONE;
	}
	text_add(&in->others, name, strlen(name) + 1);
	for (size_t i = 0; i < sizeof(folder_tables) / sizeof(folder_tables[0]); i++)
		if (!strcmp(name, folder_tables[i]) && (!in->table || strcmp(in->table, name) < 0))
			in->table = folder_tables[i];
	in->has_parquet = in->has_parquet || !strcmp(name, FOLDER_PARQUET);
	if ((find_foreign(name) || is_yaml(name)) && (!in->foreign[0] || strcmp(name, in->foreign) < 0))
		snprintf(in->foreign, sizeof(in->foreign), "%s", name);
	if (file_name_is_image(name) && (!in->image_count++ || strcmp(name, in->image) < 0))
		snprintf(in->image, sizeof(in->image), "%s", name);
	return EXIT_DONE;
}

/* Is the table what --labels names? */
static bool is_label_list(const struct request *r, const char *table)
{
	struct stat a, b;

	return r->o->label_list && stat(r->o->label_list, &a) == 0 && fstatat(r->root->fd, table, &b, 0) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* What lies in the folder, and a warning of what is not taken, and may well have been meant. */
static int look_into(const struct request *r, struct folder *in)
{
	const char *root = r->root->name, *at, *end;
	struct stat st;
	int rc = scan_each_entry(r->root, "", look_at_entry, in);

	if (rc == EXIT_DONE && in->dangling[0] && in->archives.bytes) /* is it a folder of archives? */
		rc = source_root_stat_entry(r->root, in->dangling, &st, NULL);
	if (rc != EXIT_DONE)
		return rc;
	if (in->has_folders)
		in->archives.bytes = 0; /* they lie beside classes, and are ignored like all that is not an image */
	if (in->table && !is_label_list(r, in->table))
		scan_warn(r->scan,
			  "%s/%s: is not read, because the folder is packed; to pack the images that it names, and its "
			  "columns, give it in the place of the folder",
			  root, in->table);
	else if (in->has_parquet && !in->table)
		scan_warn(r->scan,
			  "%s/" FOLDER_PARQUET ": is not read; to pack its columns, write it as metadata.jsonl beside "
			  "it, and give that in the place of the folder: python3 -c 'import pandas; "
			  "pandas.read_parquet(\"" FOLDER_PARQUET "\").to_json(\"metadata.jsonl\", orient=\"records\", "
			  "lines=True)'",
			  root);
	if (in->has_folders && is_yaml(in->foreign))
		scan_warn(
			r->scan,
			"%s/%s: is not read, because the folder is packed, and each folder in it is a class; give the "
			"file in the place of the folder to see which commands pack the images with their boxes",
			root, in->foreign);
	if (!in->archives.bytes)
		return EXIT_DONE;
	at = in->others.data;
	for (end = at + in->others.bytes; at < end; at += strlen(at) + 1)
		ignored_add(&r->scan->ignored, "", at);
	if (in->image_count)
		scan_warn(r->scan,
			  "%s: %" PRIu64 " image%s beside the archives: ignored (the first is '%s'); move the archives "
			  "to a folder of their own, or name them",
			  root, in->image_count, in->image_count == 1 ? " lies" : "s lie", in->image);
	return EXIT_DONE;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A folder of nothing but archives, as img2dataset leaves it: each, in byte order. */
static int scan_archives(struct image_list *images, const struct text *archives)
{
	const char *at = archives->data, *end = at + archives->bytes;
	const char **name = xcalloc(archives->bytes + 1, sizeof(*name));
	size_t count = 0;
	int rc = EXIT_DONE;

	for (; at < end; at += strlen(at) + 1)
		name[count++] = at;
	qsort(name, count, sizeof(*name), compare_names);
	for (size_t i = 0; rc == EXIT_DONE && i < count; i++)
		rc = image_archive_add(images, name[i]);
	free(name);
	return rc;
}

/* An option that was given and needs a table, or NULL. */
static const char *option_of_tables(const struct request *r)
{
	if (r->o->columns)
		return "--columns";
	if (r->o->extents)
		return "--extents";
	if (!r->o->label_list && (r->o->path_key || r->o->path_suffix))
		return r->o->path_key ? "--path-key" : "--path-suffix";
	return text_each_asked(r->recipe) ? "pick=each" : NULL;
}

/* Nothing that was named has keys: folders are classes, and files lie in them. */
static int check_label_key(const struct request *r)
{
	bool keys = r->o->label_list || !r->o->label_key;

	for (uint64_t i = 0; i < r->root->item_count; i++)
		keys = keys || !(r->root->item[i].is_dir || file_name_is_image(r->root->item[i].path));
	if (keys)
		return EXIT_DONE;
	return fail(EXIT_USAGE,
		    "%s%s%s: --label-key is for tables, for --labels and for archives; the labels of a folder are the "
		    "names of the folders in it, so leave it out",
		    r->root->name, r->root->item[0].path[0] ? "/" : "", r->root->item[0].path);
}

static int refuse_option(const struct request *r, const char *slash, const char *path)
{
	bool is_each = !strcmp(option_of_tables(r), "pick=each");

	return fail(EXIT_USAGE, "%s%s%s: %s is for tables: .csv, .tsv or .jsonl%s", r->root->name, slash, path,
		    option_of_tables(r),
		    is_each ? ", and for COCO; of other sources say pick=first, or pick=all,count=N" : "");
}

/* A key at the beginning of a line of YAML: its value, if that is a text on the same line. */
static void yaml_value(const char *text, const char *key, char out[PLAN_PATH_BYTES_MAX])
{
	const char *at = text, *end;
	size_t bytes = strlen(key);

	out[0] = '\0';
	while (at && (strncmp(at, key, bytes) || at[bytes] != ':'))
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	if (!at)
		return;
	at += bytes + 1;
	at += strspn(at, " \t'\"");
	end = at + strcspn(at, "\r\n#'\"");
	while (end > at && (end[-1] == ' ' || end[-1] == '/'))
		end--;
	if (!strchr("[{-|>&*", *at) && end - at < PLAN_PATH_BYTES_MAX)
		snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s", (int)(end - at), at);
}

/*
 * A data.yaml of Ultralytics says where images are; labels lie beside them, in a folder that has
 * `labels` in the place of `images`.  It is not read, but the command for its training part is
 * said.
 */
static int refuse_yaml(const struct request *r, const char *path)
{
	const char *slash = strrchr(path, '/'), *images;
	char file[FILES_PATH_BYTES], folder[FILES_PATH_BYTES], train[PLAN_PATH_BYTES_MAX] = "",
							       base[PLAN_PATH_BYTES_MAX];
	struct text text = {0}, word = {0};
	struct stat st;
	bool found = false;
	int rc = files_path(file, r->root->absolute, path);

	if (rc == EXIT_DONE)
		rc = files_read(file, &text, &found);
	if (rc != EXIT_DONE) {
		text_free(&text);
		return rc;
	}
	snprintf(folder, sizeof(folder), "%s%s%.*s", r->root->name, slash ? "/" : "", slash ? (int)(slash - path) : 0,
		 path);
	text_add(&text, "", 1);
	if (found) {
		yaml_value(text.data, "train", train);
		yaml_value(text.data, "path", base);
		if (base[0] == '/' && stat(base, &st) == 0)
			snprintf(folder, sizeof(folder), "%s", base);
	}
	images = strstr(train, "images");
	if (!images || train[0] == '/')
		images = strcpy(train, "images/train");
	while (!strncmp(train, "../", 3)) { /* as Roboflow writes it, of what lies beside the file */
		memmove(train, train + 3, strlen(train + 3) + 1);
		images -= 3;
	}
	text_shell_word(&word, folder);
	rc = fail(EXIT_BAD,
		  "%s/%s: YAML is not read; of a data.yaml of Ultralytics, give the folder of each part: "
		  "shardpack images %s/%s --root %s --no-label -o OUT --field "
		  "'boxes:kind=boxes,max=100,from=%.*slabels%s/{}.txt,format=yolo,optional' --field "
		  "'classes:kind=ragged,dtype=i64,max=100,from=%.*slabels%s/{}.txt,format=yolo,optional'",
		  r->root->name, path, word.data, train, word.data, (int)(images - train), train,
		  images + strlen("images"), (int)(images - train), train, images + strlen("images"));
	text_free(&text);
	text_free(&word);
	return rc;
}

/* By its name it is none of what is read here, and what it is is known; EXIT_DONE if it is not. */
static int refuse_foreign(const struct request *r, const char *path)
{
	static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst", NULL};
	const struct foreign *f = find_foreign(path);
	char inner[PLAN_PATH_BYTES_MAX];

	if (is_yaml(path))
		return refuse_yaml(r, path);
	if (f)
		return fail(EXIT_BAD, "%s/%s: is %s, which `shardpack images` does not read; %s", r->root->name, path,
			    f->what, f->remedy);
	for (const char *const *p = packed; *p; p++) {
		if (!file_name_has_extension(path, *p))
			continue;
		snprintf(inner, sizeof(inner), "%.*s", (int)(strlen(path) - strlen(*p)), path);
		if (file_name_is_table(inner))
			return fail(EXIT_BAD, "%s/%s: is a compressed table, which is not read; unpack it, and give %s",
				    r->root->name, path, inner);
	}
	return EXIT_DONE;
}

static int scan_item(struct image_list *images, const struct source_item *item)
{
	struct bad_input bad = {0};
	int rc;

	if (option_of_tables(images->request) && (item->is_dir || !file_name_is_table(item->path)))
		return refuse_option(images->request, "/", item->path);
	if (recipe_is_multi_label(images->request->recipe) && (item->is_dir || file_name_is_image(item->path)))
		return labels_refuse_many(images->request, item->path);
	if (item->missing && !file_name_is_image(item->path)) {
		bad_input(&bad, SHARD_MISS_MISSING, "%s", strerror(ENOENT));
		return image_list_add_bad(images, item->path, NULL, 0, PLAN_NO_FILE, 0, &bad);
	}
	if (item->is_dir)
		return image_files_add_folder(images, item->path);
	if (file_name_is_table(item->path))
		return image_table_add(images, item->path);
	if (file_name_is_image(item->path))
		return image_files_add(images, item->path);
	if (file_name_is_coco(item->path))
		return fail(EXIT_USAGE, "%s/%s: JSON of COCO must be the only input", images->request->root->name,
			    item->path);
	rc = refuse_foreign(images->request, item->path);
	return rc == EXIT_DONE ? image_archive_add(images, item->path) : rc;
}

/* What COCO does not have, and what a plan alone says. */
static int check_coco(const struct request *r, bool is_coco)
{
	static const char *const names[] = {"labels",	   "label-regex", "label-key", "multi-label", "path-key",
					    "path-suffix", "classes",	  "columns",   "extents"};

	for (size_t i = 0; is_coco && i < sizeof(names) / sizeof(names[0]); i++)
		if (cli_given(r->args, names[i]))
			return cli_misuse(r->args,
					  "images of COCO have no label: leave --%s out; their classes are a field, "
					  "such as --field classes:kind=ragged,dtype=i64,max=100,from=category",
					  names[i]);
	for (uint32_t i = 0; i < r->recipe->field_count; i++)
		if (field_coco_key(&r->recipe->from[i]))
			return cli_misuse(r->args,
					  "--field %s: from=%s: must be a key of the annotations, without coco:",
					  r->recipe->field[i].name, r->recipe->from[i].from);
	return EXIT_DONE;
}

/* Images of COCO have no label, so --no-label need not be said. */
static int scan_coco(const struct request *r)
{
	struct image_list images = {.request = r};
	struct classes classes = {0};
	int rc;

	r->recipe->label = LABEL_NONE;
	if (recipe_has_parts(r->recipe))
		images.classes = &classes;
	rc = coco_images_add(&images, &classes, r->root->item[0].path);
	if (rc == EXIT_DONE && !recipe_has_parts(r->recipe))
		scan_warn(r->scan,
			  "%s/%s: its annotations are not packed; --field boxes:kind=boxes,max=100 packs boxes",
			  r->root->name, r->root->item[0].path);
	if (rc == EXIT_DONE)
		rc = image_rows_number(&images);
	if (rc == EXIT_DONE)
		rc = image_plan(&images);
	image_list_free(&images);
	classes_free(&classes);
	return rc;
}

/* All that was named, or the archives in the folder that was. */
static int scan_items(const struct request *r, struct labels *labels, const struct text *archives)
{
	struct image_list images = {.request = r, .text.shelf = r->plan->text.shelf, .labels = labels};
	int rc = archives->bytes ? scan_archives(&images, archives) : EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && !archives->bytes && i < r->root->item_count; i++)
		rc = scan_item(&images, &r->root->item[i]);
	if (rc == EXIT_DONE)
		rc = labels_add_unused(&images);
	if (rc == EXIT_DONE)
		rc = image_rows_number(&images);
	if (rc == EXIT_DONE)
		rc = image_plan(&images);
	image_list_free(&images);
	return rc;
}

/* Has any input a value of this field?  Only of such inputs is anything known that are good. */
static bool is_any_there(const struct plan *plan, uint32_t i, bool *any_good)
{
	const struct field_source *s = &plan->recipe.from[i];
	struct plan_input input;
	struct field_part part;

	for (uint64_t n = 0; n < plan->input_count; n++) {
		plan_input(plan, n, &input);
		if (input.bad_reason)
			continue;
		*any_good = true;
		for (uint32_t k = 0; k <= i; k++)
			field_part_next(&plan->recipe.field[k], &plan->recipe.from[k], &input.parts, &part);
		if (!field_part_is_none(&part, s))
			return true;
	}
	return false;
}

/*
 * `optional` and `default` are for inputs that lack a value.  If no input has one, the name of the
 * source is probably wrong, and each record would silently have nothing.
 */
static int check_sources(const struct request *r)
{
	const struct plan *plan = r->plan;

	for (uint32_t i = 0; i < r->recipe->field_count; i++) {
		const struct field_source *s = &r->recipe->from[i];
		const struct scan_field *f = &r->scan->field[i];
		const char *name = r->recipe->field[i].name, *key = field_coco_key(s);
		bool any_good = s->column && f->absent[0], there = f->found;

		if (s->all_may_lack || (!s->optional && !(s->column && s->empty[0])))
			continue;
		if (!s->column)
			there = is_any_there(plan, i, &any_good) && (!field_json_key(s) || f->found);
		if (there || !any_good)
			continue;
		if (s->column)
			return fail(
				EXIT_BAD,
				"--columns %s: no row has a value, so all would be packed as %s; the first row: %s; "
				"if that is right, say %s:%s:default=%s:all",
				name, s->empty, f->absent, name,
				shard_name(SHARD_NAME_DTYPE, r->recipe->field[i].dtype), s->empty);
		return fail(
			EXIT_BAD,
			"--field %s: from=%s: no input has it, so the field would be empty in all records; the first "
			"input: %s%s",
			name, key ? key : s->from, f->absent[0] ? f->absent : "its value is empty",
			strstr(f->absent, "say from=") ? ""
						       : "; correct from=, or leave the field out; if no "
							 "input should have it, say optional=all");
	}
	return EXIT_DONE;
}

static int scan_sources(const struct request *r)
{
	bool one_folder = r->root->item_count == 1 && !r->root->item[0].path[0];
	struct labels labels = {0};
	struct folder in = {.root = r->root};
	bool coco = r->root->item_count == 1 && !r->root->item[0].is_dir && file_name_is_coco(r->root->item[0].path);
	int rc = check_coco(r, coco);

	if (rc != EXIT_DONE || coco)
		return rc == EXIT_DONE ? scan_coco(r) : rc;
	rc = labels_open(&labels, r);
	if (rc == EXIT_DONE && one_folder && option_of_tables(r))
		rc = refuse_option(r, "", "");
	if (rc == EXIT_DONE && one_folder)
		rc = look_into(r, &in);
	if (rc == EXIT_DONE && in.foreign[0] && !in.has_folders && !in.archives.bytes && !in.image_count)
		rc = refuse_foreign(r, in.foreign);
	if (rc == EXIT_DONE && !in.archives.bytes)
		rc = check_label_key(r);
	if (rc == EXIT_DONE && one_folder && !in.archives.bytes && recipe_is_multi_label(r->recipe))
		rc = labels_refuse_many(r, "");
	if (rc == EXIT_DONE && one_folder && !in.archives.bytes && !labels_given(r->o))
		rc = class_folders_scan(r);
	else if (rc == EXIT_DONE)
		rc = scan_items(r, &labels, &in.archives);
	text_free(&in.archives);
	text_free(&in.others);
	labels_close(&labels);
	return rc;
}

/* Numbers stay as they are when an image is resized, cropped or turned.  Are they boxes? */
static void warn_of_what_stays(const struct request *r)
{
	uint64_t side = r->recipe->transform.crop;

	for (uint32_t i = 0; i < r->recipe->field_count; i++) {
		const struct shard_field *f = &r->recipe->field[i];
		const char *name = f->name;

		if (r->recipe->from[i].kind != FIELD_TENSOR || !f->ndim)
			continue;
		if (f->shape[f->ndim - 1] == 4 && f->dtype != SHARD_BOOL)
			scan_warn(r->scan,
				  "field %s has rows of 4 numbers, which stay as they are when the image is resized or "
				  "cropped; if they are boxes, pack them with --field %s:kind=boxes,max=%u",
				  name, name, f->ndim > 1 ? f->shape[0] : 1);
		for (uint32_t a = 0; a + 1 < f->ndim; a++)
			if (f->shape[a] == side && f->shape[a + 1] == side)
				scan_warn(r->scan,
					  "field %s has the image's height and width, and stays as it is when the "
					  "image is resized or cropped; if it is a mask, pack it with --field "
					  "%s:kind=mask",
					  name, name);
	}
}

/* A list of classes may be for several datasets, and have more; or it is the wrong one. */
static void warn_of_classes(const struct request *r)
{
	const struct plan *plan = r->plan;
	uint64_t *images = xcalloc(plan->class_count + 1, sizeof(*images)), empty = 0, first = 0;
	char name[SHARD_KEY_BYTES_MAX + 1];

	plan_count_classes(plan, images);
	for (uint64_t i = 0; i < plan->class_count; i++)
		if (!images[i] && !empty++)
			first = i;
	free(images);
	if (!empty)
		return;
	plan_class_name(plan, first, name);
	scan_warn(r->scan, "--classes %s: %" PRIu64 " of %" PRIu64 " classes have no image; the first of these is '%s'",
		  r->o->classes, empty, plan->class_count, name);
}

static int scan(const struct request *r)
{
	int rc = scan_sources(r);
	bool folders = !r->plan->file_count; /* not tables or lists, which name each file */

	if (rc == EXIT_DONE)
		rc = check_sources(r);
	if (rc == EXIT_DONE)
		warn_of_what_stays(r);
	for (uint64_t i = 0; i < r->root->item_count; i++)
		folders = folders && r->root->item[i].is_dir;
	if (rc == EXIT_DONE && folders) /* archives leave out what is hidden */
		scan_warn_of_hidden(r->scan, r->plan);
	if (rc == EXIT_DONE && r->o->classes && plan_has_labels(r->plan))
		warn_of_classes(r);
	return rc;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

static const struct cli_key fit_help[] = {{"short", NULL, "the shorter side has N pixels"},
					  {"long", NULL, "the longer side has N pixels; zeros fill the rest"},
					  {"stretch", NULL, "both sides have N pixels; shapes change"},
					  {"pad", NULL, "as long, but rounded as PIL.ImageOps.pad does"},
					  {"area", NULL, "the whole image, with about N x N pixels in all"},
					  {0}};

static const struct cli_key accept_help[] = {{"eoi", NULL, "JPEGs that lack only their end marker"},
					     {"warnings", NULL, "all JPEGs that libjpeg decodes with a warning"},
					     {0}};

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "folder of images, tars, table of paths and labels, COCO .json, or '-' for a list of them on stdin"},
	{0}};

static const struct cli_option options[] = {
	{.name = "path-key", .kind = CLI_STRING, AT(path_key), .arg_name = "NAME", .topic = "input",
	 .default_note = "path, file_name or image", .help = "column of the table that has the paths"},
	{.name = "path-suffix", .kind = CLI_STRING, AT(path_suffix), .arg_name = "END", .topic = "input",
	 .help = "ending to add to each path of the table, such as .jpg"},
	{.name = "extents", .kind = CLI_FLAG, AT(extents), .topic = "input",
	 .help = "each image is part of a file: the columns offset and bytes of the table say which"},
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .min = 1, .max = 65500, .topic = "images",
	 .often = true, .default_note = "256, unless --crop is given",
	 .help = "resize until the shorter side has N pixels; see --fit"},
	{.name = "fit", .kind = CLI_CHOICE, AT(fit), .arg_name = "HOW", .choices = "short|long|stretch|pad|area",
	 .default_value = "short", .topic = "images", .often = true, .keys = {fit_help},
	 .help = "how to reach the size"},
	{.name = "crop", .kind = CLI_U64, AT(crop), .arg_name = "N", .min = 1, .max = 65500, .topic = "images",
	 .often = true, .default_note = "224, or as --resize",
	 .help = "cut out a square of N x N pixels from the middle"},
	{.name = "dtype", .kind = CLI_CHOICE, AT(dtype), .arg_name = "TYPE", .choices = "u8|f16|bf16|f32|u16",
	 .default_value = "u8", .topic = "images", .help = "type of the stored pixel values"},
	{.name = "mean", .kind = CLI_STRING, AT(mean), .arg_name = "R,G,B", .default_note = "0,0,0", .topic = "images",
	 .help = "mean to subtract from values of 0 to 1, if --dtype is f16, bf16 or f32"},
	{.name = "std", .kind = CLI_STRING, AT(std), .arg_name = "R,G,B", .default_note = "1,1,1", .topic = "images",
	 .help = "standard deviation to divide by after that"},
	{.name = "layout", .kind = CLI_CHOICE, AT(layout), .choices = "hwc|chw", .default_value = "hwc",
	 .topic = "images", .help = "interleaved channels, or a plane for each channel"},
	{.name = "exif", .kind = CLI_CHOICE, AT(exif), .arg_name = "HOW", .choices = "ignore|apply", .default_value = "ignore",
	 .topic = "images", .help = "what to do with an orientation in EXIF or XMP data"},
	{.name = "filter", .kind = CLI_CHOICE, AT(filter), .arg_name = "NAME", .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear", .topic = "images", .help = "filter that computes the resized pixels"},
	{.name = "pixels", .kind = CLI_CHOICE, AT(pixels), .arg_name = "LIKE", .choices = "pillow-13|pillow-12|rows-first",
	 .default_value = "pillow-13", .topic = "images", .help = "version of Pillow to resize like"},
	{.name = "bits", .kind = CLI_CHOICE, AT(bits), .arg_name = "N", .choices = "auto|8|16", .default_value = "auto",
	 .topic = "images", .help = "how many bits to read of each colour value"},
	{.name = "labels", .kind = CLI_FILE, AT(label_list), .arg_name = "FILE", .topic = "labels", .often = true,
	 .help = "table of paths and their labels: CSV, TSV or JSONL"},
	{.name = "label-regex", .kind = CLI_STRING, AT(label_regex), .arg_name = "RE", .topic = "labels",
	 .help = "take each label from the path: the first group of this regular expression"},
	{.name = "label-key", .kind = CLI_STRING, AT(label_key), .arg_name = "NAME", .default_note = "label",
	 .topic = "labels", .help = "column of the table, or key of .json members, that has the labels"},
	{.name = "no-label", .kind = CLI_FLAG, AT(no_label), .topic = "labels", .often = true,
	 .help = "pack images without labels"},
	{.name = "multi-label", .kind = CLI_STRING, AT(multi_label), .arg_name = "N", .topic = "labels",
	 .help = "each image has up to N labels; with `hot`, store 0 or 1 for each class"},
	{.name = "label-separator", .kind = CLI_STRING, AT(label_separator), .arg_name = "TEXT", .topic = "labels",
	 .help = "with --multi-label: text that stands between the labels of an image"},
	{.name = "classes", .kind = CLI_FILE, AT(classes), .arg_name = "LIST", .default_note = "names in byte order",
	 .topic = "labels", .often = true, .help = "take classes from a file of names or another dataset"},
	{.name = "strict-classes", .kind = CLI_FLAG, AT(strict_classes), .topic = "labels",
	 .help = "refuse class names that look alike"},
	{.name = "field", .kind = CLI_STRING, .many = true, AT(fields), .arg_name = "NAME:...", .topic = "fields",
	 .often = true, .keys = {field_kind_help, field_key_help},
	 .help = "add a field, such as mask:kind=mask,from=masks/{}.png"},
	{.name = "columns", .kind = CLI_STRING, AT(columns), .arg_name = "FIELDS", .topic = "fields",
	 .help = "add columns of numbers as fields, such as age:f32,site:u16"},
	{.name = "accept", .kind = CLI_CHOICE, AT(accept), .arg_name = "HOW", .choices = "none|eoi|warnings", .default_value = "none",
	 .topic = "bad-input", .keys = {accept_help}, .help = "which damaged JPEGs to accept"},
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "WHAT=N,...", .topic = "bad-input",
	 .keys = {limit_help}, .help = "change what is too large, such as pixels=200M,memory=2G"},
	{0}};
/* clang-format on */

const struct source source_images = {
	SOURCE_NAMED("images"), .positionals = positionals, .options = options, .settle = image_recipe_settle,
	.scan = scan,
};
