/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_read.c - from the text of PTX to instructions, with an error for all that is not known
 *
 * One line is one statement, as libshard/gpu/make_ptx.sh leaves them.  Registers of an opcode must
 * be as wide as its types; those of loads, stores and conversions may be wider, as in PTX.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

#define LINE_BYTES    2048 /* the bytes of a constant stand on one line */
#define CLASSES	      8u
#define REGISTERS_CAP 4096u
#define LABELS_CAP    1024u
#define CODE_CAP      16384u

struct class
{ /* of registers, as .reg declares them */
	char prefix[8];
	uint32_t first, count;
};
struct label {
	char name[32];
	uint32_t at;
};

struct reader {
	struct ptx_program *program;
	struct ptx_kernel *kernel;
	bool inside;
	uint32_t line, class_count, label_count, goal_count;
	struct class class[CLASSES];
	struct label label[LABELS_CAP], goal[LABELS_CAP]; /* goal.at: the instruction that goes there */
	char shared[64], parameter[80], constant[64];
	char *error;
	jmp_buf out;
};

static const char *const specials[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%ctaid.y", "%nctaid.x", "%nctaid.y"};
#define SPECIALS (sizeof(specials) / sizeof(specials[0]))

__attribute__((noreturn, format(printf, 2, 3))) static void fail(struct reader *r, const char *fmt, ...)
{
	int used = snprintf(r->error, PTX_ERROR_BYTES, "line %u: ", (unsigned)r->line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error + used, PTX_ERROR_BYTES - (size_t)used, fmt, ap);
	va_end(ap);
	longjmp(r->out, 1);
}

/* ---- words ---- */

/* Cut s at commas that are in no brackets; returns how many parts there are. */
static unsigned cut(struct reader *r, char *s, char *part[PTX_PARTS + 1])
{
	unsigned count = 0, depth = 0;

	while (*s == ' ')
		s++;
	if (*s)
		part[count++] = s;
	for (; *s; s++) {
		depth += *s == '{' || *s == '[';
		depth -= *s == '}' || *s == ']';
		if (*s != ',' || depth)
			continue;
		*s = 0;
		if (count > PTX_PARTS)
			fail(r, "more than %d operands", PTX_PARTS + 1);
		part[count++] = s + 1 + strspn(s + 1, " ");
	}
	return count;
}

static struct ptx_type type_of(struct reader *r, const char *s)
{
	struct ptx_type type = {s[0], (uint8_t)atoi(s + 1)};

	if (!strcmp(s, "pred"))
		return (struct ptx_type){'p', 1};
	if (!strchr("usbf", s[0]) || !ptx_is_word("8 16 32 64", s + 1))
		fail(r, "unknown type '%s'", s);
	return type;
}

/* ---- operands ---- */

static bool find_register(const struct reader *r, const char *s, uint16_t *number)
{
	size_t name = strcspn(s, "0123456789");
	char *end;
	unsigned long n = strtoul(s + name, &end, 10);

	for (size_t i = 0; i < SPECIALS; i++)
		if (!strcmp(s, specials[i])) {
			*number = (uint16_t)i;
			return true;
		}
	for (uint32_t i = 0; i < r->class_count; i++)
		if (strlen(r->class[i].prefix) == name && !memcmp(s, r->class[i].prefix, name) && !*end &&
		    end != s + name && n < r->class[i].count) {
			*number = (uint16_t)(r->class[i].first + n);
			return true;
		}
	return false;
}

static struct ptx_operand operand(struct reader *r, const char *s)
{
	struct ptx_operand o = {false, 0, 0};
	char *end;

	if (find_register(r, s, &o.number)) {
		o.is_register = true;
		return o;
	}
	if (!strcmp(s, r->shared) || !strcmp(s, r->parameter) || !strcmp(s, r->constant))
		return o; /* at 0 of its space */
	if (!strncmp(s, "0d", 2) || !strncmp(s, "0D", 2))
		o.value = strtoull(s + 2, &end, 16);
	else
		o.value = s[0] == '-' ? (uint64_t)strtoll(s, &end, 0) : strtoull(s, &end, 0);
	if (end == s || *end)
		fail(r, "unknown operand '%s'", s);
	return o;
}

/* `wider` lets a register be wider than bits. */
static struct ptx_operand sized(struct reader *r, const char *s, unsigned bits, bool wider)
{
	struct ptx_operand o = operand(r, s);
	unsigned have = o.is_register ? r->kernel->register_bits[o.number] : bits;

	if (have < bits || (have > bits && !wider))
		fail(r, "'%s' has %u bits, and %u are asked for", s, have, bits);
	return o;
}

static struct ptx_operand result(struct reader *r, const char *s, unsigned bits, bool wider)
{
	struct ptx_operand o = sized(r, s, bits, wider);

	if (!o.is_register || o.number < SPECIALS)
		fail(r, "'%s' cannot be written", s);
	return o;
}

static void parts(struct reader *r, struct ptx_instruction *i, char *s, unsigned bits, bool wider, bool written)
{
	char *part[PTX_PARTS + 1];
	size_t end = strlen(s);

	if (s[0] == '{' && s[end - 1] == '}') {
		s[end - 1] = 0;
		s++;
	}
	i->count = (uint8_t)cut(r, s, part);
	if (!i->count || i->count > PTX_PARTS)
		fail(r, "%u registers between braces", i->count);
	for (unsigned k = 0; k < i->count; k++)
		i->part[k] = written ? result(r, part[k], bits, wider) : sized(r, part[k], bits, wider);
}

static void address(struct reader *r, struct ptx_instruction *i, char *s)
{
	char *end = s + strlen(s) - 1, *plus = strchr(s, '+');

	if (s[0] != '[' || *end != ']')
		fail(r, "'%s' is no address", s);
	*end = 0;
	if (plus) {
		*plus = 0;
		i->offset = strtoll(plus + 1, &plus, 0);
		if (*plus)
			fail(r, "'%s' is no offset", plus);
	}
	i->address = operand(r, s + 1);
}

/* ---- instructions ---- */

/* ld and st: .space .nc .v2 .type */
static void read_move(struct reader *r, struct ptx_instruction *i, char *op, char **part, unsigned count)
{
	unsigned vector = 1;
	char *word, *rest = NULL, whole[LINE_BYTES];

	snprintf(whole, sizeof(whole), "%s", op);
	i->kind = !strcmp(strtok_r(op, ".", &rest), "ld") ? PTX_LOAD : PTX_STORE;
	while ((word = strtok_r(NULL, ".", &rest)))
		if (!strcmp(word, "shared"))
			i->space = PTX_SHARED;
		else if (!strcmp(word, "param") && i->kind == PTX_LOAD)
			i->space = PTX_PARAMETER;
		else if (!strcmp(word, "const") && i->kind == PTX_LOAD)
			i->space = PTX_CONSTANT;
		else if (!strcmp(word, "v2") || !strcmp(word, "v4"))
			vector = (unsigned)word[1] - '0';
		else if (strlen(word) < 4 && strchr("usbf", word[0]) && ptx_is_word("8 16 32 64", word + 1))
			i->type = type_of(r, word);
		else if (strcmp(word, "global") && (strcmp(word, "nc") || i->kind == PTX_STORE))
			fail(r, "unknown opcode '%s'", whole);
	if (!i->type.bits || count != 2 || vector * i->type.bits > 128)
		fail(r, "'%s' with %u operands is not known", whole, count);
	address(r, i, part[i->kind == PTX_LOAD]);
	parts(r, i, part[i->kind == PTX_STORE], i->type.bits, true, i->kind == PTX_LOAD);
	if (i->count != vector)
		fail(r, "'%s' with %u registers", whole, i->count);
}

static unsigned role_bits(const struct ptx_instruction *i, char role)
{
	return role == 'u' ? 32 : role == 'p' ? 1 : role == 'f' ? i->from.bits : i->type.bits * (role == 'w' ? 2u : 1u);
}

static void read_compute(struct reader *r, struct ptx_instruction *i, char *op, char **part, unsigned count)
{
	const struct ptx_op *o = ptx_find_op(op);
	char *last = strrchr(op, '.');
	bool converts;

	if (!o)
		fail(r, "unknown opcode '%s'", op);
	converts = o->roles[1] == 'f';
	i->type = type_of(r, last + 1);
	if (converts) {
		i->from = i->type;
		*last = 0;
		i->type = type_of(r, strrchr(op, '.') + 1);
	}
	i->roles = o->roles;
	i->compute = o->compute;
	i->is_quotient = ptx_is_word("div rem", o->name);
	i->is_fraction = (i->type.kind == 'f' || i->from.kind == 'f') && !ptx_is_word("mov selp", o->name);
	if (!strcmp(o->name, "mov") && count == 2 && (part[0][0] == '{' || part[1][0] == '{')) {
		bool unpacks = part[0][0] == '{';
		unsigned each = i->type.bits / (unsigned)(strchr(strchr(part[!unpacks], ',') + 1, ',') ? 4 : 2);

		i->kind = unpacks ? PTX_UNPACK : PTX_PACK;
		parts(r, i, part[!unpacks], each, false, unpacks);
		i->to = unpacks ? sized(r, part[1], i->type.bits, false) : result(r, part[0], i->type.bits, false);
		return;
	}
	if (count != strlen(o->roles))
		fail(r, "'%s' with %u operands", o->name, count);
	i->to = result(r, part[0], role_bits(i, o->roles[0]), converts);
	i->count = (uint8_t)(count - 1);
	for (unsigned k = 0; k < i->count; k++)
		i->part[k] = sized(r, part[k + 1], role_bits(i, o->roles[k + 1]), converts);
}

/* shfl.sync.bfly.b32 result|valid, value, lanes, bounds, mask */
static void read_shuffle(struct reader *r, struct ptx_instruction *i, char **part, unsigned count)
{
	char *valid = count ? strchr(part[0], '|') : NULL;

	if (count != 5 || !valid)
		fail(r, "'shfl' with %u operands is not known", count);
	if (i->guard >= 0)
		fail(r, "'shfl' under a predicate");
	*valid++ = 0;
	i->kind = PTX_SHUFFLE;
	i->to = result(r, part[0], 32, false);
	i->valid = result(r, valid, 1, false);
	i->count = PTX_PARTS;
	for (unsigned k = 0; k < PTX_PARTS; k++)
		i->part[k] = sized(r, part[k + 1], 32, false);
}

static char *guard(struct reader *r, struct ptx_instruction *i, char *s)
{
	char *end = s + strcspn(s, " ");

	i->guard = -1;
	if (s[0] != '@' || !*end)
		return s;
	*end = 0;
	i->guard_not = s[1] == '!';
	i->guard = result(r, s + 1 + i->guard_not, 1, false).number;
	return end + 1;
}

static void note(struct reader *r, struct label *list, uint32_t *count, const char *name, uint32_t at)
{
	if (*count == LABELS_CAP)
		fail(r, "more than %u labels or branches", LABELS_CAP);
	list[*count].at = at;
	snprintf(list[(*count)++].name, sizeof(list->name), "%s", name);
}

static void read_instruction(struct reader *r, char *s)
{
	struct ptx_instruction *i = &r->kernel->code[r->kernel->count++];
	char *part[PTX_PARTS + 1], *rest;
	unsigned count;

	if (r->kernel->count == CODE_CAP)
		fail(r, "more than %u instructions", CODE_CAP - 1);
	s = guard(r, i, s);
	i->line = r->line;
	rest = s + strcspn(s, " ");
	if (*rest)
		*rest++ = 0;
	count = cut(r, rest, part);
	if (!strcmp(s, "ret") && !count) {
		i->kind = PTX_RETURN;
	} else if (!strcmp(s, "bar.sync") && count == 1 && !strcmp(part[0], "0")) {
		if (i->guard >= 0)
			fail(r, "'bar.sync' under a predicate");
		i->kind = PTX_BARRIER;
	} else if ((!strcmp(s, "bra") || !strcmp(s, "bra.uni")) && count == 1) {
		i->kind = PTX_BRANCH;
		note(r, r->goal, &r->goal_count, part[0], r->kernel->count - 1);
	} else if (!strcmp(s, "shfl.sync.bfly.b32")) {
		read_shuffle(r, i, part, count);
	} else if (!strncmp(s, "ld.", 3) || !strncmp(s, "st.", 3)) {
		read_move(r, i, s, part, count);
	} else {
		read_compute(r, i, s, part, count);
	}
}

/* ---- kernels ---- */

static void begin_kernel(struct reader *r, const char *name)
{
	struct ptx_program *p = r->program;
	struct ptx_kernel *k = r->kernel = &p->kernel[p->kernel_count];

	if (p->kernel_count == sizeof(p->kernel) / sizeof(p->kernel[0]))
		fail(r, "more than %u kernels", p->kernel_count);
	p->kernel_count++;
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->code = calloc(CODE_CAP, sizeof(*k->code));
	k->register_bits = calloc(REGISTERS_CAP, 1);
	memset(k->register_bits, 32, SPECIALS);
	k->register_count = SPECIALS;
	r->class_count = r->label_count = r->goal_count = 0;
	r->parameter[0] = 0;
}

static void end_kernel(struct reader *r)
{
	struct ptx_kernel *k = r->kernel;
	uint32_t end = r->line;

	k->code[k->count++] = (struct ptx_instruction){.kind = PTX_RETURN, .guard = -1, .line = r->line};
	for (uint32_t g = 0; g < r->goal_count; g++) {
		uint32_t l = 0;

		while (l < r->label_count && strcmp(r->label[l].name, r->goal[g].name))
			l++;
		r->line = k->code[r->goal[g].at].line;
		if (l == r->label_count)
			fail(r, "there is no label '%s'", r->goal[g].name);
		k->code[r->goal[g].at].target = r->label[l].at;
	}
	r->line = end;
	if (!k->threads_most)
		fail(r, "%s has no .maxntid", k->name);
	r->kernel = NULL;
	r->inside = false;
}

static void read_registers(struct reader *r, const char *type, const char *prefix, unsigned count)
{
	struct class *c = &r->class[r->class_count];

	if (r->class_count++ == CLASSES || count > REGISTERS_CAP - r->kernel->register_count)
		fail(r, "too many registers");
	snprintf(c->prefix, sizeof(c->prefix), "%s", prefix);
	c->first = r->kernel->register_count;
	c->count = count;
	memset(r->kernel->register_bits + c->first, type_of(r, type).bits, count);
	r->kernel->register_count += count;
}

/* .const .align 8 .b8 name[count] = {byte, ...} */
static void read_constant(struct reader *r, const char *name, unsigned count, const char *s)
{
	char *end;

	if (r->constant[0] || count > PTX_CONSTANT_BYTES)
		fail(r, "more than one constant, or one of more than %u bytes", PTX_CONSTANT_BYTES);
	snprintf(r->constant, sizeof(r->constant), "%s", name);
	r->program->constant_bytes = count;
	for (unsigned k = 0; k < count; k++, s = end) {
		unsigned long byte = strtoul(s + 1, &end, 10);

		if (*s != (k ? ',' : '{') || end == s + 1 || byte > 255)
			fail(r, "byte %u of '%s' is not known", k, name);
		r->program->constant[k] = (uint8_t)byte;
	}
	if (strcmp(s, "}"))
		fail(r, "'%s' has more than %u bytes", name, count);
}

/* A line between kernels, or before the body of one. */
static void read_outside(struct reader *r, char *s)
{
	char name[64];
	unsigned n;

	if (sscanf(s, ".visible .entry %63[^(](", name) == 1 && !r->kernel)
		begin_kernel(r, name);
	else if (r->kernel && sscanf(s, ".param .align %*u .b8 %63[^[][%u]", name, &n) == 2 && !r->parameter[0]) {
		snprintf(r->parameter, sizeof(r->parameter), "%s", name);
		r->kernel->parameter_bytes = n;
	} else if (r->kernel && sscanf(s, ".maxntid %u, 1, 1", &n) == 1)
		r->kernel->threads_most = n;
	else if (!r->kernel && sscanf(s, ".extern .shared .align 16 .b8 %63[^[][]", name) == 1)
		snprintf(r->shared, sizeof(r->shared), "%s", name);
	else if (!r->kernel && sscanf(s, ".const .align 8 .b8 %63[^[][%u] = {", name, &n) == 2 && strchr(s, '{'))
		read_constant(r, name, n, strchr(s, '{'));
	else if (r->kernel && !strcmp(s, "{"))
		r->inside = true;
	else if (strcmp(s, ")") && strncmp(s, ".version ", 9) && strncmp(s, ".target ", 8) &&
		 strcmp(s, ".address_size 64"))
		fail(r, "unknown statement '%s'", s);
}

static void read_line(struct reader *r, char *s)
{
	char type[16], prefix[8];
	size_t end = strlen(s);
	unsigned n;

	if (end && s[end - 1] == ';')
		s[--end] = 0;
	if (!end || !strncmp(s, "//", 2))
		return;
	if (!r->inside) {
		read_outside(r, s);
	} else if (!strcmp(s, "}")) {
		end_kernel(r);
	} else if (sscanf(s, ".reg .%15s %7[^<]<%u>", type, prefix, &n) == 3) {
		read_registers(r, type, prefix, n);
	} else if (s[0] == '$' && s[end - 1] == ':') {
		s[end - 1] = 0;
		note(r, r->label, &r->label_count, s, r->kernel->count);
	} else if (strncmp(s, ".pragma ", 8)) {
		read_instruction(r, s);
	}
}

static void read_text(struct reader *r, const char *text)
{
	char line[LINE_BYTES];

	while (*text) {
		size_t bytes = strcspn(text, "\n");

		r->line++;
		if (bytes >= sizeof(line))
			fail(r, "longer than %d bytes", LINE_BYTES - 1);
		memcpy(line, text, bytes);
		line[bytes] = 0;
		read_line(r, line);
		text += bytes + (text[bytes] == '\n');
	}
	if (r->kernel || !r->program->kernel_count)
		fail(r, "the text ends %s a kernel", r->kernel ? "within" : "without");
}

struct ptx_program *ptx_read(const char *text, char error[PTX_ERROR_BYTES])
{
	struct reader *r = calloc(1, sizeof(*r));
	struct ptx_program *volatile p = calloc(1, sizeof(*p));

	r->program = p;
	r->error = error;
	if (!setjmp(r->out)) {
		read_text(r, text);
		p->line_count = r->line;
		p->touched = calloc(r->line + 1, 1);
	} else {
		ptx_free(p);
		p = NULL;
	}
	free(r);
	return p;
}
