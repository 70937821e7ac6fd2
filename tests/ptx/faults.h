/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - a text of PTX with one line changed, for ten kinds of faults, and whether the
 * cases of its kernel show it
 *
 * Places are found by what a line does, not by its number, so a text of another compiler has them
 * too.  A fault is caught if the text is refused, a check of the interpreter fails, or the output
 * is another one.
 */
#ifndef TESTS_PTX_FAULTS_H
#define TESTS_PTX_FAULTS_H

#include "tests/ptx/scenes.h"

#define FAULT_LINE    256
#define FAULT_SCENES  24u /* that a fault has to hide from, of each kernel */
#define FAULT_KERNELS 24u

enum fault_kind {
	BARRIER,
	BOUND,
	ALIGNMENT,
	ADDRESS,
	ROUNDING,
	TABLE,
	PREDICATE,
	WIDTH,
	INTEGER,
	SHUFFLE,
	FAULT_KINDS
};
static const char *const fault_names[] = {"barrier", "bound",	  "alignment", "address", "rounding",
					  "table",   "predicate", "width",     "integer", "shuffle"};
static unsigned faults_planted[FAULT_KINDS], faults_caught[FAULT_KINDS];

/* ---- one line ---- */

static const struct {
	enum fault_kind kind;
	const char *in, *from, *to; /* in: what else the line has */
} fault_rules[] = {
	{BARRIER, "", "bar.sync 0;", ""},
	{BOUND, "", "min.u32", "max.u32"},
	{ROUNDING, "", ".rzi.", ".rni."},
	{ROUNDING, "", "0d3FE0000000000000", "0d0000000000000000"},
	{ROUNDING, "mov", " 2097152;", " 0;"},
	{ROUNDING, "", ".rn.f64 ", ".rz.f64 "},
	{PREDICATE, "", "@%", "@!%"},
	{PREDICATE, "", "@!%", "@%"},
	{WIDTH, "ld.", ".u32 ", ".u16 "},
	{WIDTH, "st.", ".u32 ", ".u16 "},
	{WIDTH, "ld.shared", ".u16 ", ".u8 "},
	{WIDTH, "st.", ".u16 ", ".u8 "},
	{WIDTH, "ld.param", ".u64 ", ".u32 "},
	{INTEGER, "", "xor.b64", "or.b64"},
	{INTEGER, "", "mul.hi.u64", "mul.lo.u64"},
};

static inline bool replace(const char *line, const char *from, const char *to, char out[FAULT_LINE])
{
	const char *at = strstr(line, from);

	if (at)
		snprintf(out, FAULT_LINE, "%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
	return at != NULL;
}

/* Bytes of a load or store; 0 for other lines. */
static inline unsigned access_bytes(const char *line)
{
	const char *op = line[0] == '@' ? strchr(line, ' ') + 1 : line, *end = strchr(op, ' '), *type;
	unsigned vector;

	if ((strncmp(op, "ld.", 3) && strncmp(op, "st.", 3)) || !end)
		return 0;
	for (type = end; type[-1] != '.'; type--)
		;
	vector = type - op > 4 && type[-3] == 'v' ? (unsigned)type[-2] - '0' : 1;
	return vector * (unsigned)atoi(type + 1) / 8;
}

/* The address that the line uses, so many bytes further. */
static inline bool move_address(const char *line, unsigned by, char out[FAULT_LINE])
{
	const char *end = strchr(line, ']'), *plus = strchr(line, '+');
	int base = (int)((plus ? plus : end) - line);

	snprintf(out, FAULT_LINE, "%.*s+%d%s", base, line, (plus ? atoi(plus + 1) : 0) + (int)by, end);
	return true;
}

/* A comparison of numbers without a sign, to the greatest one: the bound is gone. */
static inline bool lose_bound(const char *line, char out[FAULT_LINE])
{
	const char *op = strstr(line, "setp.");

	if (!op || (op[5] != 'l' && op[5] != 'g') || op[8] != 'u')
		return false;
	snprintf(out, FAULT_LINE, "%.*s, -1;", (int)(strrchr(line, ',') - line), line);
	return true;
}

/* A thread keeps what it brought. */
static inline bool lose_shuffle(const char *line, char out[FAULT_LINE])
{
	char to[16], value[16];

	if (sscanf(line, "shfl.sync.bfly.b32 %15[^|]|%*[^,], %15[^,],", to, value) != 2)
		return false;
	snprintf(out, FAULT_LINE, "mov.u32 %s, %s;", to, value);
	return true;
}

/* The line with the first fault of that kind that it can have. */
static inline bool plant(enum fault_kind kind, const char *line, uint8_t touched, char out[FAULT_LINE])
{
	unsigned bytes = access_bytes(line);

	if (kind == BOUND && lose_bound(line, out))
		return true;
	if (kind == ALIGNMENT)
		return bytes > 1 && move_address(line, bytes / 2, out);
	if (kind == ADDRESS)
		return bytes && touched != PTX_IN_TABLE && move_address(line, bytes, out);
	if (kind == TABLE)
		return bytes && touched == PTX_IN_TABLE && move_address(line, bytes, out);
	if (kind == SHUFFLE)
		return lose_shuffle(line, out);
	for (size_t i = 0; i < COUNT(fault_rules); i++) {
		/* Numbers that a launch gives are small, so half of their bytes tell as much. */
		if (kind == WIDTH && strstr(line, "ld.param") && !strstr(line, ".u64 "))
			continue;
		if (fault_rules[i].kind == kind && strstr(line, fault_rules[i].in) &&
		    replace(line, fault_rules[i].from, fault_rules[i].to, out))
			return true;
	}
	return false;
}

/* ---- one kernel ---- */

/* Launches of a kernel that together ran all that any launch ran. */
static struct kernel_scenes {
	char name[TRANSFORM_NAME_BYTES];
	uint64_t seed[FAULT_SCENES];
	unsigned count, lines; /* that ran */
} kernel_scenes[FAULT_KERNELS];

static inline struct kernel_scenes *scenes_of(const char *name)
{
	struct kernel_scenes *k = kernel_scenes;

	while (k->name[0] && strcmp(k->name, name))
		k++;
	snprintf(k->name, sizeof(k->name), "%s", name);
	return k;
}

static inline unsigned lines_ran(const struct ptx_program *p, const char *name, unsigned *of)
{
	unsigned ran = 0;

	*of = 0;
	for (uint32_t k = 0; k < p->kernel_count; k++)
		for (uint32_t i = 0; !strcmp(p->kernel[k].name, name) && i < p->kernel[k].count - 1; i++) {
			ran += (p->touched[p->kernel[k].code[i].line] & PTX_RAN) != 0;
			++*of;
		}
	return ran;
}

/* A scene that went well: is it one for faults to hide from? */
static inline void keep_scene(const struct ptx_program *p, const struct scene *s, uint64_t seed)
{
	struct kernel_scenes *k = scenes_of(s->name);
	unsigned of, lines = lines_ran(p, s->name, &of);

	if ((lines > k->lines || k->count < 12) && k->count < FAULT_SCENES)
		k->seed[k->count++] = seed;
	k->lines = lines;
}

struct field_of_faults {
	const char *text;
	uint32_t first, last;	  /* lines of the kernel */
	struct ptx_program *good; /* it has run the scenes, and knows what its lines do */
	const struct kernel_scenes *scenes;
};

static inline const char *line_at(const char *text, uint32_t line)
{
	while (--line)
		text = strchr(text, '\n') + 1;
	return text;
}

static inline void line_copy(const char *at, char out[FAULT_LINE])
{
	snprintf(out, FAULT_LINE, "%.*s", (int)strcspn(at, "\n"), at);
}

/* The error of the first scene that differs, or "" if none does. */
static inline void try_scenes(const struct field_of_faults *f, struct ptx_program *p, char error[PTX_ERROR_BYTES])
{
	bool good = true;

	for (unsigned i = 0; good && i < f->scenes->count; i++) {
		struct scene s;

		scene_open(&s, f->scenes->seed[i]);
		good = scene_run(&s, p, error);
		scene_close(&s);
	}
	if (good)
		error[0] = 0;
}

static inline bool is_caught(const struct field_of_faults *f, uint32_t line, const char *changed)
{
	const char *at = line_at(f->text, line), *end = at + strcspn(at, "\n");
	size_t room = strlen(f->text) + FAULT_LINE;
	char *text = malloc(room), error[PTX_ERROR_BYTES];
	struct ptx_program *p;

	snprintf(text, room, "%.*s%s%s", (int)(at - f->text), f->text, changed, end);
	p = ptx_read(text, error);
	free(text);
	if (p)
		try_scenes(f, p, error);
	ptx_free(p);
	return error[0];
}

/* Up to `most` faults of a kind, evenly over the kernel; all of its barriers and shuffles. */
static inline void plant_kind(const struct field_of_faults *f, enum fault_kind kind, uint32_t most)
{
	uint32_t sites = 0, count, number = 0, caught = 0;
	char line[FAULT_LINE], changed[FAULT_LINE];
	const char *begin = line_at(f->text, f->first);

	for (int pass = 0; pass < 2; pass++) {
		const char *at = begin;

		count = kind == BARRIER || kind == SHUFFLE || sites < most ? sites : most;
		for (uint32_t l = f->first, site = 0; l <= f->last; l++, at = strchr(at, '\n') + 1) {
			line_copy(at, line);
			if (!(f->good->touched[l] & PTX_RAN) ||
			    !plant(kind, line, f->good->touched[l] & ~PTX_RAN, changed))
				continue;
			if (!pass)
				sites++;
			else if (number < count && site++ >= (uint64_t)number * sites / count) {
				number++;
				if (is_caught(f, l, changed))
					caught++;
				else
					printf("not caught in %s: %s: %s as %s\n", f->scenes->name, fault_names[kind],
					       line, changed);
			}
		}
	}
	faults_planted[kind] += number;
	faults_caught[kind] += caught;
	if (number > 2 && !caught)
		test_fail(__FILE__, __LINE__, "%s: no fault of kind %s is caught", f->scenes->name, fault_names[kind]);
}

/*
 * Where a kernel compares an address with the end of the batch, it leaves its fast way, which reads
 * whole words.  Without that bound it reads behind the batch, and each of these faults must show.
 */
static inline unsigned plant_ends(const struct field_of_faults *f)
{
	const char *at = line_at(f->text, f->first);
	char line[FAULT_LINE], changed[FAULT_LINE];
	unsigned planted = 0;

	for (uint32_t l = f->first; l <= f->last; l++, at = strchr(at, '\n') + 1) {
		line_copy(at, line);
		if (!strstr(line, "setp.gt.u64") || !(f->good->touched[l] & PTX_RAN) || !lose_bound(line, changed))
			continue;
		STORY("%s, line %u", f->scenes->name, l);
		CHECK(is_caught(f, l, changed));
		planted++;
	}
	return planted;
}

static inline void plant_all(const char *text, struct ptx_program *good, uint32_t most)
{
	char error[PTX_ERROR_BYTES];

	for (uint32_t k = 0; k < good->kernel_count; k++) {
		const struct ptx_kernel *kernel = &good->kernel[k];
		struct field_of_faults f = {.text = text,
					    .first = kernel->code[0].line,
					    .last = kernel->code[kernel->count - 1].line,
					    .good = good,
					    .scenes = scenes_of(kernel->name)};

		STORY("%s", kernel->name);
		CHECK(f.scenes->count > 0);
		try_scenes(&f, good, error);
		CHECK_STR(error, ""); /* the control: without a fault none is seen */
		for (int kind = 0; kind < FAULT_KINDS; kind++)
			plant_kind(&f, (enum fault_kind)kind, most);
		CHECK(plant_ends(&f) || !strstr(kernel->name, "_crop_"));
	}
}

/*
 * Every missing barrier and shuffle shows.  Of other kinds a few faults change nothing: the slow way round
 * where the fast one is open, or half of the bytes of a number that is small.
 */
static inline void faults_check(unsigned percent)
{
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		STORY("%s", fault_names[kind]);
		printf("%s: %u of %u planted faults caught\n", fault_names[kind], faults_caught[kind],
		       faults_planted[kind]);
		CHECK(faults_planted[kind] > 0);
		CHECK(faults_caught[kind] * 100 >= faults_planted[kind] * percent);
	}
	CHECK_EQ(faults_caught[BARRIER], faults_planted[BARRIER]);
	CHECK_EQ(faults_caught[SHUFFLE], faults_planted[SHUFFLE]);
}

#endif
