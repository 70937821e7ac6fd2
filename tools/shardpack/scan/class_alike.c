/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_alike.c - class names that people cannot tell apart
 *
 * Two names are alike if they are the same text once blanks and characters that are not shown are
 * gone, accented letters are taken apart, and letters are small.  The letters that are known are
 * those of the Latin, Greek (with one accent), Cyrillic and Armenian scripts, Vietnamese, kana,
 * Hangul, and those of Arabic and Devanagari that have two encodings.  Letters of different scripts
 * that look the same are not compared, nor are polytonic Greek and the forms that NFKC changes.
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "shard.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/plan.h"

#define NAMED_MOST 3			     /* pairs that a warning names; an alphabet has 26 */
#define FOLDED_MAX (4 * SHARD_KEY_BYTES_MAX) /* characters: a letter with two marks is three of them */

/* What is not looked at. */
enum {
	FOLD_BLANKS = 1, /* at either end; several are one; and what is not shown */
	FOLD_FORM = 2,	 /* whether a letter with an accent is one character or two */
	FOLD_CASE = 4,
	FOLD_ALL = 7,
};

/* Each mark, with the letters that have it, and what they are without it. */
/* clang-format off */
static const struct {
	uint32_t mark;
	const char *pairs;
} composed[] = {
	{0x300, "ÀAÈEÌIÒOÙUàaèeìiòoùuǛÜǜüǸNǹnЀЕЍИѐеѝиḔĒḕēṐŌṑōẀWẁwẦÂầâẰĂằăỀÊềêỒÔồôỜƠờơỪƯừưỲYỳy"},
	{0x301, "ÁAÉEÍIÓOÚUÝYáaéeíióoúuýyĆCćcĹLĺlŃNńnŔRŕrŚSśsŹZźzǗÜǘüǴGǵgǺÅǻåǼÆǽæǾØǿø̈́̈΅¨ΆΑΈΕ"
		"ΉΗΊΙΌΟΎΥΏΩΐϊάαέεήηίιΰϋόούυώωϓϒЃГЌКѓгќкḈÇḉçḖĒḗēḮÏḯïḰKḱkḾMḿmṌÕṍõṒŌṓōṔPṕpṸŨṹũẂW"
		"ẃwẤÂấâẮĂắăẾÊếêỐÔốôỚƠớơỨƯứư"},
	{0x302, "ÂAÊEÎIÔOÛUâaêeîiôoûuĈCĉcĜGĝgĤHĥhĴJĵjŜSŝsŴWŵwŶYŷyẐZẑzẬẠậạỆẸệẹỘỌộọ"},
	{0x303, "ÃAÑNÕOãañnõoĨIĩiŨUũuṼVṽvẪÂẫâẴĂẵăẼEẽeỄÊễêỖÔỗôỠƠỡơỮƯữưỸYỹy"},
	{0x304, "ĀAāaĒEēeĪIīiŌOōoŪUūuǕÜǖüǞÄǟäǠȦǡȧǢÆǣæǬǪǭǫȪÖȫöȬÕȭõȰȮȱȯȲYȳyӢИӣиӮУӯуḠGḡgḸḶḹḷṜṚṝṛ"},
	{0x306, "ĂAăaĔEĕeĞGğgĬIĭiŎOŏoŬUŭuЎУЙИйиўуӁЖӂжӐАӑаӖЕӗеḜȨḝȩẶẠặạ"},
	{0x307, "ĊCċcĖEėeĠGġgİIŻZżzȦAȧaȮOȯoḂBḃbḊDḋdḞFḟfḢHḣhṀMṁmṄNṅnṖPṗpṘRṙrṠSṡsṤŚṥśṦŠṧšṨṢṩṣṪT"
		"ṫtẆWẇwẊXẋxẎYẏyẛſ"},
	{0x308, "ÄAËEÏIÖOÜUäaëeïiöoüuÿyŸYΪΙΫΥϊιϋυϔϒЁЕЇІёеїіӒАӓаӚӘӛәӜЖӝжӞЗӟзӤИӥиӦОӧоӪӨӫөӬЭӭэӰУ"
		"ӱуӴЧӵчӸЫӹыḦHḧhṎÕṏõṺŪṻūẄWẅwẌXẍxẗt"},
	{0x309, "ẢAảaẨÂẩâẲĂẳăẺEẻeỂÊểêỈIỉiỎOỏoỔÔổôỞƠởơỦUủuỬƯửưỶYỷy"},
	{0x30a, "ÅAåaŮUůuẘwẙy"},
	{0x30b, "ŐOőoŰUűuӲУӳу"},
	{0x30c, "ČCčcĎDďdĚEěeĽLľlŇNňnŘRřrŠSšsŤTťtŽZžzǍAǎaǏIǐiǑOǒoǓUǔuǙÜǚüǦGǧgǨKǩkǮƷǯʒǰjȞHȟh"},
	{0x30f, "ȀAȁaȄEȅeȈIȉiȌOȍoȐRȑrȔUȕuѶѴѷѵ"},
	{0x311, "ȂAȃaȆEȇeȊIȋiȎOȏoȒRȓrȖUȗu"},
	{0x31b, "ƠOơoƯUưu"},
	{0x323, "ḄBḅbḌDḍdḤHḥhḲKḳkḶLḷlṂMṃmṆNṇnṚRṛrṢSṣsṬTṭtṾVṿvẈWẉwẒZẓzẠAạaẸEẹeỊIịiỌOọoỢƠợơỤUụu"
		"ỰƯựưỴYỵy"},
	{0x324, "ṲUṳu"},
	{0x325, "ḀAḁa"},
	{0x326, "ȘSșsȚTțt"},
	{0x327, "ÇCçcĢGģgĶKķkĻLļlŅNņnŖRŗrŞSşsŢTţtȨEȩeḐDḑdḨHḩh"},
	{0x328, "ĄAąaĘEęeĮIįiŲUųuǪOǫo"},
	{0x32d, "ḒDḓdḘEḙeḼLḽlṊNṋnṰTṱtṶUṷu"},
	{0x32e, "ḪHḫh"},
	{0x330, "ḚEḛeḬIḭiṴUṵu"},
	{0x331, "ḆBḇbḎDḏdḴKḵkḺLḻlṈNṉnṞRṟrṮTṯtẔZẕzẖh"},
	{0x653, "آا"},
	{0x654, "أاؤوئيۀەۂہۓے"},
	{0x655, "إا"},
	{0x93c, "ऩनऱरऴळक़कख़खग़गज़जड़डढ़ढफ़फय़य"},
	{0x3099, "がかぎきぐくげけごこざさじしずすぜせぞそだたぢちづつでてどとばはびひぶふべへぼほゔうゞゝガカギキグクゲケゴコザサジシズスゼセゾソダタヂチヅツデテドトバハ"
		"ビヒブフベヘボホヴウヷワヸヰヹヱヺヲヾヽ"},
	{0x309a, "ぱはぴひぷふぺへぽほパハピヒプフペヘポホ"},
};

/* Capital letters: from the first to the last, how far apart, and how far on the small one is. */
static const struct {
	uint32_t first, last, every, distance;
} capitals[] = {
	{'A', 'Z', 1, 32}, {0xc0, 0xd6, 1, 32}, {0xd8, 0xde, 1, 32}, {0x100, 0x136, 2, 1}, {0x139, 0x147, 2, 1},
	{0x14a, 0x176, 2, 1}, {0x179, 0x17d, 2, 1}, {0x391, 0x3a9, 1, 32}, {0x3c2, 0x3c2, 1, 1},
	{0x3d8, 0x3ee, 2, 1}, {0x400, 0x40f, 1, 80}, {0x410, 0x42f, 1, 32}, {0x460, 0x480, 2, 1},
	{0x48a, 0x4be, 2, 1}, {0x4c1, 0x4cd, 2, 1}, {0x4d0, 0x52e, 2, 1}, {0x531, 0x556, 1, 48},
	{0x1e00, 0x1e94, 2, 1}, {0x1ea0, 0x1efe, 2, 1},
};
/* clang-format on */

#define PACKED_AS_TWO ", and are packed as two; if they are one, give them one name"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- characters ---- */

static bool is_blank(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Beside what a terminal hides: variation selectors, and what joins letters. */
static bool is_unseen(uint32_t c)
{
	return c < ' ' || c == 0x7f || c == 0xad || c == 0x34f || (c >= 0xfe00 && c <= 0xfe0f) ||
	       (c >= 0xe0100 && c <= 0xe01ef) || (c >= 0x80 && utf8_is_hidden(c));
}

static bool is_mark(uint32_t c)
{
	for (size_t i = 0; i < COUNT(composed); i++)
		if (composed[i].mark == c)
			return true;
	return false;
}

static uint32_t small(uint32_t c)
{
	for (size_t i = 0; i < COUNT(capitals); i++)
		if (c >= capitals[i].first && c <= capitals[i].last && (c - capitals[i].first) % capitals[i].every == 0)
			return c + capitals[i].distance;
	return c;
}

/* The letter without its last mark, and that; false if it has none. */
static bool take_apart(uint32_t c, uint32_t *letter, uint32_t *mark)
{
	for (size_t i = 0; c >= 0x80 && i < COUNT(composed); i++)
		for (const char *at = composed[i].pairs; *at;) {
			uint32_t whole;

			at += utf8_character(at, 4, &whole);
			at += utf8_character(at, 4, letter);
			*mark = composed[i].mark;
			if (whole == c)
				return true;
		}
	return false;
}

static size_t add_letter(uint32_t c, unsigned what, uint32_t *out)
{
	uint32_t letter, mark;
	size_t n = 0;

	if (c == 0x2126 || c == 0x212a || c == 0x212b) /* the signs of ohm, kelvin and angstrom */
		c = c == 0x2126 ? 0x3a9 : c == 0x212a ? 'K' : 0xc5;
	if (c >= 0xac00 && c < 0xac00 + 19 * 21 * 28) {
		/* a syllable of Hangul: its first sound, its vowel, and perhaps its last sound */
		uint32_t number = c - 0xac00, last = number % 28;

		out[0] = 0x1100 + number / (21 * 28);
		out[1] = 0x1161 + number % (21 * 28) / 28;
		out[2] = 0x11a7 + last;
		return last ? 3 : 2;
	}
	if (take_apart(c, &letter, &mark)) {
		n = add_letter(letter, what, out);
		out[n++] = mark;
		return n;
	}
	out[0] = what & FOLD_CASE ? small(c) : c;
	return 1;
}

/* Marks of one letter, in one order. */
static void sort_marks(uint32_t *c, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k && is_mark(c[k]) && is_mark(c[k - 1]) && c[k - 1] > c[k]; k--) {
			uint32_t later = c[k - 1];

			c[k - 1] = c[k];
			c[k] = later;
		}
}

/* The characters of a name, into `out` of FOLDED_MAX, without what is not looked at; how many. */
static size_t fold(const char *name, unsigned what, uint32_t *out)
{
	size_t bytes = strlen(name), n = 0;
	bool blank = false;

	for (size_t at = 0, length; at < bytes; at += length) {
		uint32_t c = 0;

		length = utf8_character(name + at, bytes - at, &c); /* never 0: it is the name of a class */
		if (!length)
			break;
		if (what & FOLD_BLANKS && is_blank(c)) {
			blank = n > 0;
			continue;
		}
		if (what & FOLD_BLANKS && is_unseen(c))
			continue;
		if (blank)
			out[n++] = ' ';
		blank = false;
		if (what & (FOLD_FORM | FOLD_CASE))
			n += add_letter(c, what, out + n);
		else
			out[n++] = c;
	}
	if (what & (FOLD_FORM | FOLD_CASE))
		sort_marks(out, n);
	return n;
}

/* ---- names ---- */

struct folded {
	uint64_t at; /* in the text, in bytes */
	uint32_t bytes, class_idx;
};

struct alike {
	const struct plan *plan;
	struct scan *scan;
	struct text text; /* folded names, one behind the other */
	struct folded *name;
	uint64_t *inputs; /* of each class; NULL: not known */
	uint64_t pair_count;
	struct text pairs;  /* the first of them */
	const char *differ; /* in what all pairs do */
	bool strict;
};

static int compare_folded(const void *a, const void *b, void *context)
{
	const struct alike *l = context;
	const struct folded *x = a, *y = b;
	uint32_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
	int order = memcmp(l->text.data + x->at, l->text.data + y->at, least);

	if (order || x->bytes != y->bytes)
		return order ? order : x->bytes < y->bytes ? -1 : 1;
	return x->class_idx < y->class_idx ? -1 : x->class_idx > y->class_idx;
}

static bool are_same(const char *a, const char *b, unsigned what)
{
	uint32_t x[FOLDED_MAX], y[FOLDED_MAX];
	size_t n = fold(a, what, x);

	return n == fold(b, what, y) && !memcmp(x, y, n * sizeof(*x));
}

#define DIFFER_IN_SEVERAL "blanks, case or the encoding of letters"

/* *all: only code points show the difference. */
static const char *difference(const char *a, const char *b, bool *all)
{
	*all = false;
	if (are_same(a, b, FOLD_BLANKS))
		return "blanks or characters that are not shown";
	*all = are_same(a, b, FOLD_FORM);
	if (*all)
		return "the encoding of letters with accents (NFC and NFD)";
	if (are_same(a, b, FOLD_CASE))
		return "upper and lower case";
	*all = true;
	return DIFFER_IN_SEVERAL;
}

/* A name such that its difference from another one can be seen; and how many inputs it has. */
static void show(const struct alike *l, uint32_t class_idx, const char *name, bool all, struct text *out)
{
	size_t bytes = strlen(name), length;
	char count[HUMAN_CHARS];

	text_add(out, "'", 1);
	for (size_t at = 0; at < bytes; at += length) {
		uint32_t c = 0;

		length = utf8_character(name + at, bytes - at, &c);
		if (!length)
			break;
		if (c >= 0x80 && (all || is_blank(c) || is_unseen(c)))
			text_format(out, c > 0xffff ? "\\U%08" PRIx32 : "\\u%04" PRIx32, c);
		else
			text_add(out, name + at, length);
	}
	text_add(out, "'", 1);
	if (l->inputs)
		text_format(out, " (%s image%s)", human_count(count, l->inputs[class_idx]),
			    l->inputs[class_idx] == 1 ? "" : "s");
}

/* One pair: refuse it, or keep a line for the report. */
static int tell_pair(struct alike *l, uint32_t first, uint32_t second)
{
	char a[SHARD_KEY_BYTES_MAX + 1], b[SHARD_KEY_BYTES_MAX + 1];
	struct text pair = {0}, *lines = &l->scan->warnings;
	const char *differ;
	bool all;
	int rc = EXIT_DONE;

	plan_class_name(l->plan, first, a);
	plan_class_name(l->plan, second, b);
	differ = difference(a, b, &all);
	show(l, first, a, all, &pair);
	text_add(&pair, " and ", 5);
	show(l, second, b, all, &pair);
	if (l->strict)
		rc = fail(EXIT_BAD, "classes %s differ only in %s; give them one name, or leave out --strict-classes",
			  pair.data, differ);
	if (rc == EXIT_DONE) {
		text_format(lines, "classes %s differ only in %s" PACKED_AS_TWO "\n", pair.data, differ);
		if (l->pair_count < NAMED_MOST)
			text_format(&l->pairs, "%s%s", l->pair_count ? ", " : "", pair.data);
		l->differ = l->pair_count && strcmp(l->differ, differ) != 0 ? DIFFER_IN_SEVERAL : differ;
		l->pair_count++;
	}
	text_free(&pair);
	return rc;
}

/* One warning, however many pairs there are. */
static void warn_of_pairs(const struct alike *l)
{
	char pairs[HUMAN_CHARS], more[HUMAN_CHARS + 40] = "";

	if (l->pair_count > NAMED_MOST) {
		human_count(pairs, l->pair_count - NAMED_MOST);
		snprintf(more, sizeof(more), ", and %s more (--report FILE lists them)", pairs);
	}
	if (l->pair_count == 1)
		warn("classes %s differ only in %s" PACKED_AS_TWO, l->pairs.data, l->differ);
	else if (l->pair_count)
		warn("%s pairs of classes differ only in %s, and are packed as two each; where two are one, give them "
		     "one name: %s%s",
		     human_count(pairs, l->pair_count), l->differ, l->pairs.data, more);
}

/* A class of which nothing is shown; its name says that a label was forgotten. */
static int tell_unseen(struct alike *l, uint32_t class_idx)
{
	char name[SHARD_KEY_BYTES_MAX + 1];
	struct text shown = {0};
	int rc = EXIT_DONE;

	plan_class_name(l->plan, class_idx, name);
	show(l, class_idx, name, true, &shown);
	if (l->strict)
		rc = fail(EXIT_BAD,
			  "the name of class %s has only blanks or characters that are not shown; give it a name, or "
			  "leave out --strict-classes",
			  shown.data);
	else
		scan_warn(l->scan,
			  "the name of class %s has only blanks or characters that are not shown, and is packed as a "
			  "class; if its label was forgotten, write it",
			  shown.data);
	text_free(&shown);
	return rc;
}

static void count_inputs(struct alike *l)
{
	if (l->inputs || !plan_has_labels(l->plan) || !plan_names_inputs(l->plan))
		return;
	l->inputs = xcalloc(l->plan->class_count, sizeof(*l->inputs));
	plan_count_classes(l->plan, l->inputs);
}

/* Alike names stand side by side, the first class in front. */
static int tell_all(struct alike *l)
{
	uint64_t count = l->plan->class_count;
	int rc = EXIT_DONE;

	if (count && !l->name[0].bytes) { /* the shortest is in front */
		count_inputs(l);
		rc = tell_unseen(l, l->name[0].class_idx);
	}
	for (uint64_t i = 0, k; rc == EXIT_DONE && i < count; i = k)
		for (k = i + 1; rc == EXIT_DONE && k < count; k++) {
			const struct folded *a = &l->name[i], *b = &l->name[k];

			if (a->bytes != b->bytes || memcmp(l->text.data + a->at, l->text.data + b->at, a->bytes))
				break;
			count_inputs(l);
			rc = tell_pair(l, a->class_idx, b->class_idx);
		}
	if (rc == EXIT_DONE)
		warn_of_pairs(l);
	return rc;
}

int class_alike_judge(const struct plan *plan, struct scan *scan, bool strict)
{
	struct alike l = {.plan = plan, .scan = scan, .strict = strict};
	char name[SHARD_KEY_BYTES_MAX + 1];
	uint32_t folded[FOLDED_MAX];
	bool plain = true;
	int rc;

	/* Of two that are alike at least one is not plain. */
	for (uint64_t i = 0; plain && i < plan->class_count; i++) {
		plan_class_name(plan, i, name);
		/* most names are nothing but small letters, digits and the like */
		plain = !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.,/:()'")];
	}
	if (plain)
		return EXIT_DONE;
	l.name = xmalloc(plan->class_count, sizeof(*l.name));
	for (uint64_t i = 0; i < plan->class_count; i++) {
		size_t bytes;

		plan_class_name(plan, i, name);
		bytes = fold(name, FOLD_ALL, folded) * sizeof(*folded);
		l.name[i] = (struct folded){l.text.bytes, (uint32_t)bytes, (uint32_t)i};
		text_add(&l.text, folded, bytes);
	}
	qsort_r(l.name, plan->class_count, sizeof(*l.name), compare_folded, &l);
	rc = tell_all(&l);
	text_free(&l.text);
	text_free(&l.pairs);
	free(l.name);
	free(l.inputs);
	return rc;
}
