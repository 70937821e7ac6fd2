/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_proof.c - does a mixture keep its promises, as real loaders deliver it?
 *
 * Real loaders of all ranks deliver real batches.  Where a row belongs follows from its rank alone:
 * rank q of R has the positions that are q mod R.  Every row is compared with the bytes of the
 * record that it names, which were read in another way.  Of the table of all positions then must be
 * true:
 *
 *   - each position came, with the same record in every world;
 *   - in each block of each lane, each component has its weight;
 *   - in all blocks together, each record of a component came k times or k + 1 times, where k is
 *     how often the component's records would fit: so each pass had each of them once.
 *
 * None of that uses the order itself.
 */
#include "tools/shardcat/prove/prove.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/cat_dataset.h"

#define BYTES_MAX (SHARD_MIX_WEIGHTS_MAX * UINT64_C(1024)) /* of a file; a line has two paths at most */
#define BLANK	  " \t\r"
#define NOBODY	  UINT16_MAX

/*
 * ---- the file: a line `WEIGHT DIR [SELECTION]` for each source ----
 *
 * Words are separated by spaces or tabs.  Empty lines and lines that begin with # are left out.
 * Paths are those of the folder that the command runs in.
 */

struct mix_file {
	const char *path;
	char *text;
	uint32_t count;			 /* of sources */
	struct shard_mix_source *source; /* [count] */
	struct input **of;		 /* [count] the dataset of each, which other sources may share */
	struct input *input;		 /* [input_count] */
	uint32_t input_count;
	struct shard_mix *mix;
};

static int read_text(struct mix_file *f)
{
	FILE *in = fopen(f->path, "re");
	size_t bytes;

	if (!in)
		return fail(EXIT_IO, "%s: %s", f->path, strerror(errno));
	f->text = xmalloc(BYTES_MAX + 1, 1);
	bytes = fread(f->text, 1, BYTES_MAX + 1, in);
	if (ferror(in)) {
		int os_code = errno;

		fclose(in);
		errno = os_code;
		return fail(EXIT_IO, "%s: %s", f->path, strerror(os_code));
	}
	fclose(in);
	if (utf8_is_utf16(f->text, bytes))
		return fail(EXIT_USAGE, "%s: " UTF8_UTF16, f->path);
	if (bytes > BYTES_MAX || memchr(f->text, 0, bytes))
		return fail(
			EXIT_USAGE,
			"%s: is not a list of sources, which has a line `WEIGHT DIR [SELECTION]` for each, and at most "
			"%" PRIu64 " bytes",
			f->path, BYTES_MAX);
	f->text[bytes] = 0;
	return EXIT_DONE;
}

static int parse_line(struct mix_file *f, char *line, unsigned number)
{
	char *rest = NULL, *end, *weight = strtok_r(line, BLANK, &rest), *dir, *selection;
	struct shard_mix_source *s = &f->source[f->count];
	struct shard_selection *chosen;
	unsigned long value;
	struct input *in;
	uint32_t i = 0;
	int rc = EXIT_DONE;

	if (!weight || *weight == '#')
		return EXIT_DONE;
	dir = strtok_r(NULL, BLANK, &rest);
	selection = strtok_r(NULL, BLANK, &rest);
	value = strtoul(weight, &end, 10);
	if (*weight < '1' || *weight > '9' || *end || value > SHARD_MIX_WEIGHTS_MAX || !dir ||
	    strtok_r(NULL, BLANK, &rest))
		return fail(EXIT_USAGE,
			    "%s, line %u: must be `WEIGHT DIR [SELECTION]`, with a weight of 1 to %d, such as: 3 train",
			    f->path, number, SHARD_MIX_WEIGHTS_MAX);
	if (f->count == SHARD_MIX_WEIGHTS_MAX)
		return fail(EXIT_USAGE, "%s, line %u: a mixture has at most %d sources", f->path, number,
			    SHARD_MIX_WEIGHTS_MAX);
	while (i < f->input_count && strcmp(f->input[i].path, dir))
		i++;
	in = &f->input[i];
	if (i == f->input_count) { /* each dataset is opened once */
		rc = input_open_dataset(in, dir);
		f->input_count += !rc;
	}
	if (!rc)
		rc = input_selection(in, selection, &chosen);
	if (rc)
		return rc;
	f->of[f->count++] = in;
	*s = (struct shard_mix_source){.ds = in->dataset, .selection = chosen, .weight = (uint32_t)value};
	return EXIT_DONE;
}

static int mix_file_open(struct mix_file *f, const char *path)
{
	struct shard_error err;
	char *line, *next;
	unsigned number = 1;
	int rc;

	*f = (struct mix_file){.path = path};
	f->source = xcalloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->source));
	f->of = xcalloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->of));
	f->input = xcalloc(SHARD_MIX_WEIGHTS_MAX, sizeof(*f->input));
	rc = read_text(f);
	for (line = rc ? NULL : f->text + utf8_mark(f->text, strlen(f->text)); !rc && line && *line;
	     line = next, number++) {
		next = line + strcspn(line, "\n");
		next += *next != 0;
		line[strcspn(line, "\n")] = 0;
		rc = parse_line(f, line, number);
	}
	if (!rc && !f->count)
		return fail(EXIT_USAGE, "%s: has no sources; it needs a line `WEIGHT DIR [SELECTION]` for each", path);
	if (rc)
		return rc;
	rc = shard_mix_open(&f->mix, f->source, f->count, NULL, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

static void mix_file_close(struct mix_file *f)
{
	shard_mix_close(f->mix);
	for (uint32_t i = 0; i < f->count; i++)
		shard_selection_close((struct shard_selection *)f->source[i].selection);
	for (uint32_t i = 0; i < f->input_count; i++)
		input_close(&f->input[i]);
	free(f->source);
	free((void *)f->of);
	free(f->input);
	free(f->text);
}

/* ---- what is proven ---- */

struct mix_proof {
	struct shard_loader_options loader;
	struct mix_file file;
	struct fingerprints *prints; /* [input_count] */
	struct progress progress;
	uint32_t lanes, weight_sum;
	uint64_t epoch_records, count; /* positions that are proven: whole blocks */
	uint16_t *component;	       /* [count] what came first at each position; or NOBODY */
	uint64_t *record;	       /* [count] */
	uint8_t *came;		       /* [count] in this world */
	struct tally tally;	       /* findings of this world */
	uint64_t bad_count;
};

/* ---- rows ---- */

static void judge_row(struct mix_proof *p, const struct shard_batch *b, uint32_t row, uint64_t position)
{
	uint32_t component = b->component[row];
	const struct fingerprints *prints;
	const void *rows[SHARD_FIELDS_MAX];
	struct content_hash print;
	const struct input *in;

	if (component >= p->file.count) {
		proof_find(&p->tally, FOREIGN,
			   "position %" PRIu64 " is of component %" PRIu32 ", and there are %" PRIu32, position,
			   component, p->file.count);
		return;
	}
	in = p->file.of[component];
	prints = &p->prints[in - p->file.input];
	for (uint32_t f = 0; f < in->schema->field_count; f++)
		rows[f] = (const char *)b->field[f].data + row * b->field[f].stride;
	print = content_hash(in->schema, rows, NULL);
	if (b->record[row] >= prints->count || memcmp(&prints->of[b->record[row]], &print, sizeof(print)))
		proof_find(&p->tally, MISNAMED,
			   "position %" PRIu64 " names record %" PRIu64 " of %s, which has other bytes", position,
			   b->record[row], in->path);
	if (p->came[position]++)
		proof_find(&p->tally, DUPLICATE, "position %" PRIu64 " came twice", position);
	if (p->component[position] == NOBODY) {
		p->component[position] = (uint16_t)component;
		p->record[position] = b->record[row];
	} else if (p->component[position] != component || p->record[position] != b->record[row]) {
		proof_find(&p->tally, OUT_OF_STEP,
			   "position %" PRIu64 ": record %" PRIu64 " of source %" PRIu32 " came; in another world it "
			   "was record %" PRIu64 " of source %" PRIu32,
			   position, b->record[row], component, p->record[position], p->component[position]);
	}
}

/* One step of all ranks, which begins at `position`. */
static int judge_step(struct mix_proof *p, struct shard_loader *const *loader, uint32_t world, uint32_t batch,
		      uint64_t position)
{
	struct shard_error err;
	int rc = SHARD_OK;

	for (uint32_t q = 0; q < world && !rc; q++) {
		uint64_t own = position + (q + world - position % world) % world;
		uint64_t ends = (uint64_t)world * batch / p->epoch_records + 1; /* that may lie in a step */
		struct shard_batch b;

		do
			rc = shard_loader_next(loader[q], &b, &err);
		while (rc == SHARD_END && ends--);
		if (rc)
			break;
		if (b.epoch * p->epoch_records + b.position != position || b.record_count != batch)
			proof_find(&p->tally, OUT_OF_STEP,
				   "rank %" PRIu32 " delivers %" PRIu32 " rows of position %" PRIu64 "; must be "
				   "%" PRIu32 " of %" PRIu64,
				   q, b.record_count, b.epoch * p->epoch_records + b.position, batch, position);
		for (uint32_t i = 0; i < b.record_count; i++)
			if (own + (uint64_t)i * world < p->count)
				judge_row(p, &b, i, own + (uint64_t)i * world);
		progress_add(&p->progress, b.record_count, 0, 0);
		rc = shard_loader_release(loader[q], &b, &err);
	}
	progress_tick(&p->progress);
	if (rc)
		return rc == SHARD_END
			       ? fail(EXIT_BAD, "%s: too many epochs end at position %" PRIu64, p->file.path, position)
			       : fail_of_library(&err);
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

/* From `*position` on, at least to `to`.  `token` is where, or empty; then it is where to go on. */
static int run_world(struct mix_proof *p, uint32_t world, uint64_t to, uint64_t *position,
		     char token[SHARD_TOKEN_BYTES])
{
	struct shard_loader *loader[PROOF_RANKS_MAX] = {NULL};
	struct shard_loader_options o = p->loader;
	struct shard_error err;
	int rc = EXIT_DONE, status = SHARD_OK;

	o.world = world;
	for (uint32_t q = 0; q < world && !status; q++) {
		o.rank = q;
		status = shard_loader_open(&loader[q], NULL, &o, &err);
		if (!status && *token)
			status = shard_loader_resume(loader[q], token, &err);
	}
	if (status)
		rc = fail_of_library(&err);
	for (; !rc && *position < to; *position += (uint64_t)world * o.batch_records)
		rc = judge_step(p, loader, world, o.batch_records, *position);
	if (!rc)
		shard_loader_token(loader[0], token);
	for (uint32_t q = 0; q < world; q++)
		shard_loader_close(loader[q]);
	return rc;
}

/* ---- what must be true of all positions ---- */

static void check_weights(struct mix_proof *p)
{
	uint32_t *found = xcalloc(p->file.count, sizeof(*found));

	for (uint64_t block = 0; block < p->count / p->lanes / p->weight_sum; block++)
		for (uint64_t lane = 0; lane < p->lanes; lane++) {
			memset(found, 0, p->file.count * sizeof(*found));
			for (uint64_t s = 0; s < p->weight_sum; s++) {
				uint16_t d = p->component[(block * p->weight_sum + s) * p->lanes + lane];

				found[d == NOBODY ? 0 : d] += d != NOBODY;
			}
			for (uint32_t d = 0; d < p->file.count; d++)
				if (found[d] != p->file.source[d].weight)
					proof_find(&p->tally, OUT_OF_STEP,
						   "block %" PRIu64 " of lane %" PRIu64 " has source %" PRIu32
						   " %" PRIu32 " times; its weight is %" PRIu32,
						   block, lane, d, found[d], p->file.source[d].weight);
		}
	free(found);
}

/* Has the source this record?  Asked for all, ascending; *next is a place of its selection. */
static bool is_of(const struct shard_mix_source *s, uint64_t record, uint64_t *next)
{
	uint64_t of;

	if (!s->selection)
		return true;
	if (shard_selection_records(s->selection, *next, 1, &of, NULL) || of != record)
		return false;
	++*next;
	return true;
}

/* Each record of a source came `least` times, or once more; and those of others never. */
static void check_passes(struct mix_proof *p, uint32_t d)
{
	const struct shard_mix_source *s = &p->file.source[d];
	uint64_t records = p->file.of[d]->record_count, n = 1, more = 0, next = 0, all, least;
	uint64_t *times = xcalloc((size_t)records, sizeof(*times));

	(void)shard_mix_component(p->file.mix, d, NULL, &n, NULL); /* each source is one */
	all = p->count / p->weight_sum * s->weight;
	least = all / n;
	for (uint64_t i = 0; i < p->count; i++)
		if (p->component[i] == d && p->record[i] < records)
			times[p->record[i]]++;
	for (uint64_t r = 0; r < records; r++) {
		bool is = is_of(s, r, &next);

		if (is && (times[r] == least || times[r] == least + 1))
			more += times[r] - least;
		else if (is || times[r])
			proof_find(&p->tally, times[r] > least ? DUPLICATE : MISSING,
				   "record %" PRIu64 " of source %" PRIu32 ", %s, came %" PRIu64
				   " times; must be %s%" PRIu64 "%s",
				   r, d, p->file.of[d]->path, times[r],
				   is ? "" : "0, as it is not selected: ", is ? least : 0, is ? " or once more" : "");
	}
	if (more != all % n)
		proof_find(&p->tally, MISSING,
			   "%" PRIu64 " records of source %" PRIu32 " came in its last pass; must be %" PRIu64, more, d,
			   all % n);
	free(times);
}

/* ---- the proof ---- */

static void begin_world(struct mix_proof *p)
{
	p->tally = (struct tally){.epoch = 0};
	memset(p->came, 0, (size_t)p->count);
}

static void end_world(struct mix_proof *p)
{
	uint64_t bad = 0;

	for (uint64_t i = 0; i < p->count; i++)
		if (!p->came[i])
			proof_find(&p->tally, MISSING, "position %" PRIu64 " never came", i);
	check_weights(p);
	for (uint32_t d = 0; d < p->file.count; d++)
		check_passes(p, d);
	for (unsigned k = 0; k < FINDING_KINDS; k++)
		bad += p->tally.found[k];
	p->bad_count += bad > 0;
	if (message_columns())
		progress_abandon(&p->progress);
	if (message_shows(MESSAGE_NORMAL))
		printf("%s: %" PRIu64 " positions, %" PRIu64 " findings\n", p->tally.name, p->count, bad);
	fflush(stdout);
}

static int prove_world(struct mix_proof *p, uint32_t world)
{
	char token[SHARD_TOKEN_BYTES] = "";
	uint64_t position = 0;
	int rc;

	begin_world(p);
	snprintf(p->tally.name, sizeof(p->tally.name), "world %" PRIu32, world);
	rc = run_world(p, world, p->count, &position, token);
	if (!rc)
		end_world(p);
	return rc;
}

/* A part with each world, which goes on where the one before stopped. */
static int prove_resuming(struct mix_proof *p, const uint32_t *worlds, uint32_t world_count)
{
	char token[SHARD_TOKEN_BYTES] = "";
	uint64_t position = 0;
	int rc = EXIT_DONE;

	begin_world(p);
	strcpy(p->tally.name, "resumed from world to world");
	for (uint32_t i = 0; i < world_count && !rc; i++)
		rc = run_world(p, worlds[world_count - 1 - i], p->count / world_count * (i + 1), &position, token);
	if (!rc)
		rc = run_world(p, worlds[0], p->count, &position, token);
	if (!rc)
		end_world(p);
	return rc;
}

/* How far: whole blocks, and the memory for them. */
static int measure(struct mix_proof *p, uint64_t epochs)
{
	struct shard_order_info order;
	struct shard_mix_info info;
	struct shard_loader *l;
	struct shard_error err;
	uint64_t block;
	int rc = shard_loader_open(&l, NULL, &p->loader, &err);

	if (rc)
		return fail_of_library(&err);
	for (uint32_t i = 1; i < p->file.input_count; i++)
		if (p->file.input[i].schema->field_count != p->file.input[0].schema->field_count) {
			shard_loader_close(l);
			return fail(EXIT_USAGE,
				    "%s has other fields than %s, and the proof compares all of them; mix datasets "
				    "with the same fields",
				    p->file.input[i].path, p->file.input[0].path);
		}
	shard_loader_order_info(l, &order);
	shard_loader_close(l);
	shard_mix_info(p->file.mix, &info);
	p->lanes = order.lane_count;
	p->weight_sum = info.weight_sum;
	p->epoch_records = info.epoch_records;
	block = (uint64_t)p->lanes * p->weight_sum;
	p->count = (epochs * info.epoch_records + block - 1) / block * block;
	p->component = xmalloc(p->count, sizeof(*p->component));
	p->record = xmalloc(p->count, sizeof(*p->record));
	p->came = xmalloc(p->count, 1);
	p->prints = xcalloc(p->file.input_count, sizeof(*p->prints));
	memset(p->component, 0xff, (size_t)p->count * sizeof(*p->component));
	return EXIT_DONE;
}

static int prove(struct mix_proof *p, const uint32_t *worlds, uint32_t world_count)
{
	uint64_t records = 0;
	int rc = EXIT_DONE;

	for (uint32_t i = 0; i < p->file.input_count; i++)
		records += p->file.input[i].record_count;
	progress_start(&p->progress, "proving", "records", records + p->count * (world_count + 1));
	for (uint32_t i = 0; i < p->file.input_count && !rc; i++)
		rc = fingerprints_take(&p->prints[i], &p->file.input[i], NULL, &p->progress);
	for (uint32_t i = 0; i < world_count && !rc; i++)
		rc = prove_world(p, worlds[i]);
	if (!rc)
		rc = prove_resuming(p, worlds, world_count);
	progress_abandon(&p->progress);
	if (rc == EXIT_INTERRUPTED)
		return fail(rc, "%s: interrupted", p->file.path);
	if (rc)
		return rc;
	if (p->bad_count)
		return fail(EXIT_BAD, "%s: NOT PROVEN", p->file.path);
	if (message_shows(MESSAGE_NORMAL))
		printf("proven: at each of %" PRIu64 " positions the same record in every world; each of %" PRIu32
		       " sources has its weight in every block, and every record once in each pass, by its bytes\n",
		       p->count, p->file.count);
	return EXIT_DONE;
}

int mix_proof(const char *path, const struct shard_loader_options *options, const uint32_t *worlds,
	      uint32_t world_count, uint64_t epochs)
{
	struct mix_proof p = {.loader = *options};
	int rc = mix_file_open(&p.file, path);

	p.loader.mix = p.file.mix;
	if (!rc)
		rc = measure(&p, epochs);
	if (!rc)
		rc = prove(&p, worlds, world_count);
	for (uint32_t i = 0; p.prints && i < p.file.input_count; i++)
		fingerprints_free(&p.prints[i]);
	free(p.prints);
	free(p.component);
	free(p.record);
	free(p.came);
	mix_file_close(&p.file);
	return rc;
}
