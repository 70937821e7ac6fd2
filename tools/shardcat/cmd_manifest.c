/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_manifest.c - shardcat manifest: the manifest as it is, as JSON, or as sums
 *
 * Opens no shard.
 */
#include <inttypes.h>
#include <stdio.h>

#include "shard_inspect.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

struct manifest_options {
	const char *path;
	bool json, sums;
};

/* Each shard as an object, or, if `j` is NULL, as a line for sha256sum. */
static int print_shards(const struct input *in, struct json_out *j)
{
	char sha256[HEX_CHARS], root[HEX_CHARS];
	struct shard_dataset_info info;
	struct shard_entry entry;
	struct shard_error err;

	shard_dataset_info(in->dataset, &info);
	for (uint64_t i = 0; i < info.shard_count && !ferror(stdout); i++) {
		int rc = shard_dataset_entry(in->dataset, i, &entry, &err);

		if (rc)
			return fail_of_library(&err);
		hex_text(sha256, entry.sha256, sizeof(entry.sha256));
		if (!j) {
			/* The name needs no escape: M12 leaves nothing in it that sha256sum or a terminal mistakes. */
			printf("%s  %.*s\n", sha256, (int)entry.file_name_bytes, entry.file);
			continue;
		}
		json_out_object_line(j, NULL);
		json_out_string_bytes(j, "file", entry.file, entry.file_name_bytes);
		json_out_u64(j, "bytes", entry.file_bytes);
		json_out_u64(j, "record_count", entry.record_count);
		json_out_u64(j, "first_record", entry.first_record);
		json_out_string(j, "root", root_text(root, entry.root));
		json_out_string(j, "sha256", sha256);
		json_out_end(j);
	}
	return EXIT_DONE;
}

static int print_document(struct input *in)
{
	struct shard_dataset_info info;
	struct json_out j;
	char hex[HEX_CHARS];
	const char *name;
	int rc, shards_rc;

	shard_dataset_info(in->dataset, &info);
	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	json_out_u64(&j, "version", 1); /* the only one that the library opens */
	json_out_string(&j, "id", info.id);
	json_out_u64(&j, "record_count", info.record_count);
	json_out_u64(&j, "shard_count", info.shard_count);
	if (info.has_plan_digest)
		json_out_string(&j, "plan_digest", hex_text(hex, info.plan_digest, sizeof(info.plan_digest)));
	else
		json_out_null(&j, "plan_digest");
	json_out_string(&j, "order", describe_order(info.order));
	if (info.order == SHARD_ORDER_SHUFFLE)
		json_out_u64(&j, "seed", info.seed);
	describe_schema_json(&j, in->schema);
	json_out_array(&j, "class_names");
	for (uint64_t i = 0; (name = shard_dataset_class_name(in->dataset, i)); i++)
		json_out_string(&j, NULL, name);
	json_out_end(&j);
	rc = describe_moments_json(&j, in);
	json_out_array(&j, "shards");
	shards_rc = print_shards(in, &j);
	json_out_end(&j);
	json_out_end(&j);
	json_out_finish(&j);
	return rc ? rc : shards_rc;
}

static int run(const struct cli_args *args)
{
	const struct manifest_options *o = args->options;
	struct shard_view text;
	struct input in;
	int rc;

	if (o->json && o->sums)
		return cli_misuse(args, "--json and --sha256sums exclude each other");
	rc = input_open_dataset(&in, o->path);
	if (!rc && o->json) {
		rc = print_document(&in);
	} else if (!rc && o->sums) {
		rc = print_shards(&in, NULL);
	} else if (!rc) {
		shard_dataset_manifest(in.dataset, &text); /* M5: nothing but printable ASCII */
		fwrite(text.data, 1, text.bytes, stdout);
	}
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {ONLY_DIR(struct manifest_options), {0}};

static const struct cli_option options[] = {
	AS_JSON(struct manifest_options, "print one JSON document"),
	{.name = "sha256sums",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct manifest_options, sums),
	 .help = "print only the SHA-256 of each shard, for 'sha256sum -c'"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_manifest = {
	.name = "manifest",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct manifest_options),
	.run = run,
};
