/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_ops.c - what each computing opcode of PTX does, from the manual of PTX ISA 6.3
 *
 * An operand is extended to 64 bits as its type says, so most of this is the same for all types.
 * A result is cut to its register.  Roles, first that of the result: t is the opcode's type, w
 * twice as wide, u a u32, p a predicate, f the type that a conversion comes from.  Fractions are
 * doubles, and each result is rounded to nearest: other modes, fused operations and floats are
 * not known here.
 */
#include <string.h>

#include "tests/ptx/ptx.h"

#define OP(name_, expression_)                                                    \
	static uint64_t name_(const struct ptx_instruction *i, const uint64_t *v) \
	{                                                                         \
		(void)i;                                                          \
		(void)v;                                                          \
		return (uint64_t)(expression_);                                   \
	}
#define IS_SIGNED      (i->type.kind == 's')
#define COMPARE(sign_) (IS_SIGNED ? (int64_t)v[0] sign_(int64_t) v[1] : v[0] sign_ v[1])

uint64_t ptx_extend(uint64_t v, struct ptx_type type)
{
	unsigned up = 64u - type.bits;

	return type.kind == 's' ? (uint64_t)((int64_t)(v << up) >> up) : v & ptx_mask(type.bits);
}

static double real(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static uint64_t bits_of(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

/* ---- integers ---- */

OP(add, v[0] + v[1])
OP(sub, v[0] - v[1])
OP(mul, v[0] * v[1])
OP(mul_hi, v[0] * v[1] >> 32)
OP(mul_hi_64, (unsigned __int128)v[0] * v[1] >> 64)
OP(mad, v[0] * v[1] + v[2])
OP(neg, 0 - v[0])
OP(and, v[0] & v[1])
OP(or, v[0] | v[1])
OP(xor, v[0] ^ v[1])
OP(not, ~v[0])
OP(move, v[0])
OP(select, v[2] ? v[0] : v[1])
OP(least, COMPARE(<) ? v[0] : v[1])
OP(most, COMPARE(>) ? v[0] : v[1])
OP(shift_left, v[1] >= i->type.bits ? 0 : v[0] << v[1])
OP(equal, v[0] == v[1])
OP(not_equal, v[0] != v[1])
OP(less, COMPARE(<))
OP(less_or_equal, COMPARE(<=))
OP(greater, COMPARE(>))
OP(greater_or_equal, COMPARE(>=))
OP(not_predicate, !v[0])

static uint64_t shift_right(const struct ptx_instruction *i, const uint64_t *v)
{
	uint64_t by = v[1] < i->type.bits ? v[1] : i->type.bits;

	if (IS_SIGNED)
		return (uint64_t)((int64_t)v[0] >> (by < 63 ? by : 63));
	return by < 64 ? v[0] >> by : 0;
}

/* A divisor of zero never comes here. */
static uint64_t quotient(const struct ptx_instruction *i, const uint64_t *v)
{
	if (IS_SIGNED)
		return v[1] == UINT64_MAX ? 0 - v[0] : (uint64_t)((int64_t)v[0] / (int64_t)v[1]);
	return v[0] / v[1];
}

static uint64_t remainder_of(const struct ptx_instruction *i, const uint64_t *v)
{
	return v[0] - quotient(i, v) * v[1];
}

static uint64_t insert(const struct ptx_instruction *i, const uint64_t *v)
{
	uint64_t at = v[2] & 255, bits = v[3] & 255, mask;

	(void)i;
	if (at > 63)
		return v[1];
	mask = ptx_mask((unsigned)bits) << at;
	return (v[1] & ~mask) | (v[0] << at & mask);
}

static uint64_t extract(const struct ptx_instruction *i, const uint64_t *v)
{
	uint64_t at = v[1] & 255, bits = v[2] & 255;

	return at >= i->type.bits ? 0 : v[0] >> at & ptx_mask((unsigned)bits);
}

/* Four bytes of eight, each chosen by four bits; the highest of them says: its sign only. */
static uint64_t permute(const struct ptx_instruction *i, const uint64_t *v)
{
	uint64_t both = v[1] << 32 | v[0], out = 0;

	(void)i;
	for (unsigned k = 0; k < 4; k++) {
		uint64_t choice = v[2] >> 4 * k & 15, byte = both >> 8 * (choice & 7) & 255;

		out |= (choice & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * k;
	}
	return out;
}

/* ---- fractions ---- */

OP(real_add, bits_of(real(v[0]) + real(v[1])))
OP(real_sub, bits_of(real(v[0]) - real(v[1])))
OP(real_mul, bits_of(real(v[0]) * real(v[1])))
OP(real_div, bits_of(real(v[0]) / real(v[1])))
OP(real_rcp, bits_of(1.0 / real(v[0])))
OP(real_neg, v[0] ^ UINT64_C(1) << 63)
OP(real_abs, v[0] & ptx_mask(63))
OP(real_eq, real(v[0]) == real(v[1]))
OP(real_ne, real(v[0]) < real(v[1]) || real(v[0]) > real(v[1]))
OP(real_lt, real(v[0]) < real(v[1]))
OP(real_le, real(v[0]) <= real(v[1]))
OP(real_gt, real(v[0]) > real(v[1]))
OP(real_ge, real(v[0]) >= real(v[1]))
OP(real_ltu, !(real(v[0]) >= real(v[1])))
OP(real_leu, !(real(v[0]) > real(v[1])))
OP(real_gtu, !(real(v[0]) <= real(v[1])))
OP(real_geu, !(real(v[0]) < real(v[1])))
OP(real_of, bits_of(i->from.kind == 's' ? (double)(int64_t)v[0] : (double)v[0]))

/* Toward zero, or to nearest; beyond the type's range its end; 0 for no number. */
static uint64_t whole(const struct ptx_instruction *i, double d)
{
	double high = (double)ptx_mask(i->type.bits - (unsigned)IS_SIGNED), low = IS_SIGNED ? -high - 1 : 0;

	if (d != d)
		return 0;
	return d < low	  ? (uint64_t)(int64_t)low
	       : d > high ? ptx_mask(i->type.bits - (unsigned)IS_SIGNED)
	       : d < 0	  ? (uint64_t)(int64_t)d
			  : (uint64_t)d;
}

OP(toward_zero, whole(i, real(v[0])))

static uint64_t to_nearest(const struct ptx_instruction *i, const uint64_t *v)
{
	double d = real(v[0]), shift = 6755399441055744.0; /* 1.5 x 2^52: there doubles are integers */
	volatile double moved = d + shift;

	return whole(i, moved - shift);
}

/* clang-format off */
#define WHOLE "u16 s16 u32 s32 u64 s64"
#define LONG  "u32 s32 u64 s64"
static const struct ptx_op ops[] = {
	{"add", WHOLE, "ttt", add},
	{"sub", WHOLE, "ttt", sub},
	{"mul.lo", WHOLE, "ttt", mul},
	{"mul.hi", "u32 s32", "ttt", mul_hi},
	{"mul.hi", "u64", "ttt", mul_hi_64},
	{"mul.wide", "u16 s16 u32 s32", "wtt", mul},
	{"mad.lo", WHOLE, "tttt", mad},
	{"mad.wide", "u16 s16 u32 s32", "wttw", mad},
	{"div", WHOLE, "ttt", quotient},
	{"rem", WHOLE, "ttt", remainder_of},
	{"neg", "s16 s32 s64", "tt", neg},
	{"min", WHOLE, "ttt", least},
	{"max", WHOLE, "ttt", most},
	{"and", "pred b16 b32 b64", "ttt", and},
	{"or", "pred b16 b32 b64", "ttt", or},
	{"xor", "pred b16 b32 b64", "ttt", xor},
	{"not", "b16 b32 b64", "tt", not},
	{"not", "pred", "tt", not_predicate},
	{"shl", "b16 b32 b64", "ttu", shift_left},
	{"shr", "b16 b32 b64 " WHOLE, "ttu", shift_right},
	{"bfi", "b32 b64", "tttuu", insert},
	{"bfe", "u32 u64", "ttuu", extract},
	{"prmt", "b32", "tttt", permute},
	{"selp", "b16 b32 b64 f64 " WHOLE, "tttp", select},
	{"mov", "pred b16 b32 b64 f64 " WHOLE, "tt", move},
	{"cvta.to.global", "u64", "tt", move},
	{"cvt", "u16.u32 u16.u64 u32.u16 u32.u64 u64.u16 u64.u32 u32.u8 u16.u8 u64.u8 u8.u16 u8.u32 u8.u64 "
		"s16.s32 s16.s64 s32.s16 s32.s64 s64.s16 s64.s32 s32.s8 s16.s8 s64.s8", "tf", move},
	{"setp.eq", "b16 b32 b64 " WHOLE, "ptt", equal},
	{"setp.ne", "b16 b32 b64 " WHOLE, "ptt", not_equal},
	{"setp.lt", WHOLE, "ptt", less},
	{"setp.le", WHOLE, "ptt", less_or_equal},
	{"setp.gt", WHOLE, "ptt", greater},
	{"setp.ge", WHOLE, "ptt", greater_or_equal},
	{"add", "rn.f64", "ttt", real_add},
	{"sub", "rn.f64", "ttt", real_sub},
	{"mul", "rn.f64", "ttt", real_mul},
	{"div", "rn.f64", "ttt", real_div},
	{"rcp", "rn.f64", "tt", real_rcp},
	{"neg", "f64", "tt", real_neg},
	{"abs", "f64", "tt", real_abs},
	{"setp.eq", "f64", "ptt", real_eq},
	{"setp.ne", "f64", "ptt", real_ne},
	{"setp.lt", "f64", "ptt", real_lt},
	{"setp.le", "f64", "ptt", real_le},
	{"setp.gt", "f64", "ptt", real_gt},
	{"setp.ge", "f64", "ptt", real_ge},
	{"setp.ltu", "f64", "ptt", real_ltu},
	{"setp.leu", "f64", "ptt", real_leu},
	{"setp.gtu", "f64", "ptt", real_gtu},
	{"setp.geu", "f64", "ptt", real_geu},
	{"cvt.rn", "f64.u16 f64.s16 f64.u32 f64.s32 f64.u64 f64.s64", "tf", real_of},
	{"cvt.rzi", "u16.f64 s16.f64 u32.f64 s32.f64", "tf", toward_zero},
	{"cvt.rni", "u16.f64 s16.f64 u32.f64 s32.f64", "tf", to_nearest},
	{NULL, NULL, NULL, NULL},
};
/* clang-format on */

bool ptx_is_word(const char *list, const char *word)
{
	size_t bytes = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += bytes)
		if ((at == list || at[-1] == ' ') && (at[bytes] == ' ' || !at[bytes]))
			return true;
	return false;
}

const struct ptx_op *ptx_find_op(const char *op)
{
	for (const struct ptx_op *o = ops; o->name; o++) {
		size_t bytes = strlen(o->name);

		if (!strncmp(op, o->name, bytes) && op[bytes] == '.' && ptx_is_word(o->types, op + bytes + 1))
			return o;
	}
	return NULL;
}
