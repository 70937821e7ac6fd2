/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_coco.c - JSON in pieces, the runs and outlines of COCO, and what a plan says of them
 *
 * The pictures of outlines and their runs are those of pycocotools 2.0.11, frozen here.  At random
 * the same is tests/twin/coco.py's to do.
 */
#include "tests/test.h"
#include "tools/common/text.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

/* ---- outlines and runs ---- */

static const struct {
	const char *story;
	uint32_t width, height;
	const char *outlines, *counts, *picture;
} frozen[] = {
	{"a triangle", 12, 8, "[[1,1,10,1,1,7]]", "962O1O100O1O100Oh0",
	 "............"
	 ".########..."
	 ".#######...."
	 ".#####......"
	 ".####......."
	 ".##........."
	 ".#.........."
	 "............"},
	{"fractions, and an edge that leans", 12, 8, "[[1.3,0.7,10.6,2.2,8.9,6.4,2.51,5.49]]", "a0441O0001O00000O?",
	 "............"
	 "..####......"
	 "..########.."
	 "..########.."
	 "..########.."
	 "...######..."
	 "............"
	 "............"},
	{"a star that crosses itself", 12, 8, "[[6,0,9,8,0,3,12,3,3,8]]", ";17001KO10N1101OO11O10M130NO10405",
	 "............"
	 ".....##....."
	 ".....##....."
	 ".####..####."
	 "...#....#..."
	 "....#..#...."
	 "....####...."
	 "...#....#..."},
	{"partly outside, on every side", 12, 8, "[[-4,3,6,-5,16,4,5.5,13]]", "071a2",
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 ".###########"},
	{"a point that is there twice, and closed", 12, 8, "[[2,2,2,2,9,3,7,7,2,2]]", "j0171O100O00Ng0",
	 "............"
	 "............"
	 "...###......"
	 "....#####..."
	 ".....###...."
	 "......##...."
	 "............"
	 "............"},
	{"two outlines, which overlap", 12, 8, "[[0,0,6,0,6,5,0,5],[4,3,11.5,3,11.5,8,4,8]]", "053000000;0E0000000000",
	 "######......"
	 "######......"
	 "######......"
	 "############"
	 "############"
	 "....########"
	 "....########"
	 "....########"},
	{"thinner than a pixel", 12, 8, "[[1,4,11,4.2,11,4.3,1,4.1]]", "P3",
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"},
	{"wholly outside", 12, 8, "[[20,1,30,1,30,7]]", "P3",
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"
	 "............"},
	{"all of the picture", 12, 8, "[[0,0,12,0,12,8,0,8]]", "0P3",
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"
	 "############"},
	{"one column", 1, 8, "[[0,1,1,1,1,6.5,0,6.5]]", "161",
	 "."
	 "#"
	 "#"
	 "#"
	 "#"
	 "#"
	 "#"
	 "."},
};

#define PIXELS_MAX 128

/* The objects of one text, as '#' on '.'; false if it is refused. */
static bool draw(struct coco_shapes *s, const char *text, uint32_t width, uint32_t height, char out[PIXELS_MAX])
{
	CHECK(width * height < PIXELS_MAX);
	coco_shapes_clear(s);
	if (!coco_shapes_add(s, text, strlen(text), width, height, '#'))
		return false;
	memset(out, '.', PIXELS_MAX);
	coco_shapes_paint(s, &(struct rle_picture){out, width, height, 1});
	out[width * height] = '\0';
	return true;
}

TEST(outlines_are_drawn_as_pycocotools_draws_them)
{
	struct coco_shapes s = {.count = 0};
	char got[PIXELS_MAX], runs[PIXELS_MAX];

	for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
		STORY("%s", frozen[i].story);
		CHECK(draw(&s, frozen[i].outlines, frozen[i].width, frozen[i].height, got));
		CHECK_STR(got, frozen[i].picture);
		snprintf(runs, sizeof(runs), "{\"size\": [%u,%u], \"counts\": \"%s\"}", frozen[i].height,
			 frozen[i].width, frozen[i].counts);
		CHECK(draw(&s, runs, frozen[i].width, frozen[i].height, got));
		CHECK_STR(got, frozen[i].picture);
	}
	coco_shapes_free(&s);
}

TEST(runs_may_be_numbers_and_escapes_are_undone)
{
	struct coco_shapes s = {.count = 0};
	char got[PIXELS_MAX];

	CHECK(draw(&s, "{\"counts\":[1,2,3],\"size\":[2,3]}", 3, 2, got)); /* down the columns */
	CHECK_STR(got, ".#.#..");
	CHECK(draw(&s, "{\"counts\":[0,6],\"size\":[2,3],\"more\":{}}", 3, 2, got));
	CHECK_STR(got, "######");
	CHECK(draw(&s, "{\"co\\u0075nts\":\"\\u0031\\u0032\\u0033\",\"size\":[2,3]}", 3, 2, got));
	CHECK_STR(got, ".#.#..");
	/* 44 pixels are "\\1", whose backslash JSON doubles */
	CHECK(draw(&s, "{\"counts\":\"\\\\1\",\"size\":[4,11]}", 11, 4, got));
	CHECK(!strchr(got, '#'));
	coco_shapes_free(&s);
}

TEST(the_smaller_object_is_on_top)
{
	static const char large[] = "[[0,0,4,0,4,2,0,2]]", small[] = "[[1,0,3,0,3,1,1,1]]";
	struct coco_shapes s = {.count = 0};
	char got[9] = "........";
	uint16_t wide[8] = {0};

	for (int order = 0; order < 2; order++) {
		coco_shapes_clear(&s);
		CHECK(coco_shapes_add(&s, order ? small : large, sizeof(large) - 1, 4, 2, order ? 's' : 'L'));
		CHECK(coco_shapes_add(&s, order ? large : small, sizeof(large) - 1, 4, 2, order ? 'L' : 's'));
		coco_shapes_paint(&s, &(struct rle_picture){got, 4, 2, 1});
		CHECK_STR(got, "LssLLLLL");
	}
	coco_shapes_clear(&s);
	CHECK(coco_shapes_add(&s, small, sizeof(small) - 1, 4, 2, 'a')); /* of one size: the later one */
	CHECK(coco_shapes_add(&s, small, sizeof(small) - 1, 4, 2, 1203));
	coco_shapes_paint(&s, &(struct rle_picture){wide, 4, 2, 2});
	CHECK_EQ(wide[0], 0);
	CHECK_EQ(wide[1], 1203);
	CHECK_EQ(wide[2], 1203);
	coco_shapes_free(&s);
}

TEST(what_is_no_object_says_why)
{
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{"[]", "has no outline"},
		{"7", "must be an array of outlines, or an object with runs"},
		{"[1,2,3,4,5,6]", "outline 0: byte 1: must be an array"},
		{"[[1,2,3,4]]", "outline 0 has 4 numbers; must be x and y of three points or more"},
		{"[[0,0,1,0,1,1],[1,2,3,4,5,6,7]]", "outline 1 has 7 numbers; must be x and y of three points or more"},
		{"[[1,2,3,\"4\",5,6]]", "outline 0: number 3, \"4\", is not a coordinate of a picture"},
		{"[[1,2,3,1e7,5,6]]", "outline 0: number 3, 1e7, is not a coordinate of a picture"},
		{"{\"size\":[2,3]}", "its runs have no counts"},
		{"{\"counts\":[6]}", "its runs have no size"},
		{"{\"counts\":[6],\"size\":[3,2]}", "its runs are of a picture of 2 x 3, and its image has 3 x 2"},
		{"{\"counts\":[6],\"size\":[2,3,1]}", "size must be two whole numbers, height and width"},
		{"{\"counts\":[6],\"size\":[2]}", "size must be two whole numbers, height and width"},
		{"{\"counts\":[5],\"size\":[2,3]}", "its runs have 5 pixels, and 3 x 2 are 6"},
		{"{\"counts\":[5,2],\"size\":[2,3]}", "its runs have more than 6 pixels, and 3 x 2 are 6"},
		{"{\"counts\":[7,-1],\"size\":[2,3]}", "counts: -1 is not a number of pixels"},
		{"{\"counts\":\"6\",\"counts\":\"6\",\"size\":[2,3]}", "its runs have counts or size twice"},
		{"{\"counts\":\"~\",\"size\":[2,3]}", "its counts are not a text of COCO's compressed runs"},
		{"{\"counts\":\"o\",\"size\":[2,3]}", "its counts are not a text of COCO's compressed runs"},
		{"{\"counts\":\"oooooooo0\",\"size\":[2,3]}", "its counts are not a text of COCO's compressed runs"},
		{"{\"counts\":\"O\",\"size\":[2,3]}",
		 "its counts have a run that is below 0, or longer than any picture"},
		{"{\"counts\":null,\"size\":[2,3]}", "counts must be a text or an array"},
	};
	struct coco_shapes s = {.count = 0};
	char got[PIXELS_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%s", rows[i].text);
		CHECK(!draw(&s, rows[i].text, 3, 2, got));
		CHECK_STR(s.why, rows[i].sentence);
	}
	coco_shapes_free(&s);
}

TEST(an_outline_that_would_take_minutes_is_refused)
{
	struct text text = {0};
	struct coco_shapes s = {.count = 0};

	text_format(&text, "[[0,0");
	for (int i = 0; i < 100; i++)
		text_format(&text, ",-1000000,3,1000000,2");
	text_format(&text, "]]");
	CHECK(!coco_shapes_add(&s, text.data, text.bytes, 3, 2, 1));
	CHECK_STR(s.why, "the outlines of its image are too long");
	text_free(&text);
	coco_shapes_free(&s);
}

TEST(outlines_that_would_take_minutes_together_are_refused)
{
	struct coco_shapes s = {.count = 0};
	struct text text = {0};

	text_format(&text, "[[0,0");
	for (int i = 0; i < 3; i++)
		text_format(&text, ",-1000000,-1000000,1000000,1000000");
	text_format(&text, "]]");
	CHECK(coco_shapes_add(&s, text.data, text.bytes, 3, 2, 1));
	for (int i = 0; i < 2 && !s.why[0]; i++)
		coco_shapes_add(&s, text.data, text.bytes, 3, 2, 1);
	CHECK_STR(s.why, "the outlines of its image are too long");
	coco_shapes_clear(&s);
	CHECK(coco_shapes_add(&s, "[[0,0,2,0,2,2]]", 15, 3, 2, 1));
	text_free(&text);
	coco_shapes_free(&s);
}

TEST(objects_that_would_take_minutes_to_paint_are_refused)
{
	static const char whole[] = "{\"counts\":[0,16777216],\"size\":[4096,4096]}";
	struct coco_shapes s = {.count = 0};

	for (int i = 0; i < 64; i++)
		CHECK(coco_shapes_add(&s, whole, strlen(whole), 4096, 4096, 1));
	CHECK(!coco_shapes_add(&s, whole, strlen(whole), 4096, 4096, 1));
	CHECK_STR(s.why, "the objects of its image have 1090519040 pixels or more, and all of it has 16777216");
	coco_shapes_clear(&s);
	CHECK(coco_shapes_add(&s, whole, strlen(whole), 4096, 4096, 1));
	coco_shapes_free(&s);
}

/* ---- JSON ---- */

TEST(values_are_those_of_json_and_no_others)
{
	static const struct {
		const char *text, *why; /* NULL: it is one */
	} rows[] = {
		{"{}", NULL},
		{" [ 1 , -0.5e+3 , true,false,null,\"\\u00e9\\n\\/\" , {\"a\":[]} ] ", NULL},
		{"", "byte 0: the document ends where a value must be"},
		{"[1,]", "byte 3: not a number of JSON"},
		{"[1 2]", "byte 3: must be a comma, or the end of the array or object"},
		{"[1", "byte 2: the document ends within an array or object"},
		{"{\"a\" 1}", "byte 5: must be a colon, behind the key"},
		{"{a:1}", "byte 1: must be a key, which is a string"},
		{"{\"a\":1,}", "byte 7: must be a key, which is a string"},
		{"[01]", "byte 2: a number with a leading zero"},
		{"[1.]", "byte 3: not a number of JSON"},
		{"[+1]", "byte 1: not a number of JSON"},
		{"[NaN]", "byte 1: not a number of JSON"},
		{"[nul]", "byte 4: not a value of JSON"},
		{"[\"\\x\"]", "byte 3: not an escape of JSON"},
		{"[\"\\u12g4\"]", "byte 6: not an escape of JSON"},
		{"[\"a\nb\"]", "byte 3: a control character in a string"},
		{"[\"a", "byte 3: the document ends within a string"},
		{"[1] 2", "byte 4: something follows the end of the document"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_scan s;
		bool ok;

		STORY("%s", rows[i].text);
		json_scan_text(&s, rows[i].text, strlen(rows[i].text));
		ok = json_scan_skip(&s) && json_scan_ends(&s);
		CHECK_EQ(ok, !rows[i].why);
		CHECK_STR(s.why, rows[i].why ? rows[i].why : "");
	}
}

TEST(nesting_has_a_limit)
{
	char deep[1000];
	struct json_scan s;

	memset(deep, '[', sizeof(deep));
	json_scan_text(&s, deep, sizeof(deep));
	CHECK(!json_scan_skip(&s));
	CHECK(strstr(s.why, "more than 256 levels"));
}

static const char *document; /* of read_slowly() */
static uint64_t calls;

static bool read_slowly(void *context, uint64_t offset, void *out, size_t bytes)
{
	(void)context;
	memcpy(out, document + offset, bytes);
	calls++;
	return true;
}

/* Texts of every length up to a few windows, of which each lies on an edge at some time. */
TEST(values_that_cross_a_window_are_whole)
{
	struct text text = {0};
	struct json_range value;
	struct json_scan s;
	bool first = true;
	uint64_t count = 0;

	text_format(&text, "[");
	for (int i = 0; i < 3000; i++)
		text_format(&text, "%s{\"k%d\":\"%0*d\"}", i ? " , " : "", i, i == 1500 ? 3000000 : 900, i);
	text_format(&text, "]");
	document = text.data;
	json_scan_start(&s, text.bytes, read_slowly, NULL);
	while (json_scan_element(&s, &first) == JSON_ITEM) {
		char want[32];

		CHECK(json_scan_take(&s, &value));
		CHECK(!memcmp(value.text, document + value.offset, value.bytes));
		snprintf(want, sizeof(want), "{\"k%" PRIu64 "\":\"0", count++);
		CHECK(!memcmp(value.text, want, strlen(want)) && value.text[value.bytes - 1] == '}');
	}
	CHECK(json_scan_ends(&s));
	CHECK_EQ(count, 3000);
	CHECK(calls > 3);
	json_scan_free(&s);
	text_free(&text);
}

TEST(strings_lose_their_escapes)
{
	static const struct {
		const char *text, *want; /* NULL: none */
	} rows[] = {
		{"\"\"", ""},
		{"\"a\\\\b\\\"\\n\"", "a\\b\"\n"},
		{"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\"\\ud83d\"", NULL},
		{"\"\\ude00\"", NULL},
		{"\"\\ud83d\\u0041\"", NULL},
		{"12", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_range r = {.text = rows[i].text, .bytes = strlen(rows[i].text)};
		char out[64];
		size_t bytes;

		STORY("%s", rows[i].text);
		CHECK_EQ(json_range_string(&r, out, &bytes), rows[i].want != NULL);
		if (rows[i].want)
			CHECK_STR(out, rows[i].want);
	}
}

/* ---- YOLO ---- */

TEST(lines_of_yolo_end_in_any_way)
{
	static const char text[] = "\r\n 3\t.5 0.25  1e-1 .125 \r\n\n0 0 0 1 1";
	struct yolo y = {text, text + sizeof(text) - 1, 0};
	struct yolo_box box;
	char why[YOLO_WHY_BYTES];

	CHECK_EQ(yolo_next(&y, &box, why), YOLO_BOX);
	CHECK_EQ(box.class_idx, 3);
	CHECK_EQ(y.line, 2);
	CHECK(box.number[0] == 0.5f && box.number[1] == 0.25f && box.number[2] == 0.1f && box.number[3] == 0.125f);
	CHECK_EQ(yolo_next(&y, &box, why), YOLO_BOX);
	CHECK_EQ(box.class_idx, 0);
	CHECK_EQ(yolo_next(&y, &box, why), YOLO_END);
}

/* ---- plans ---- */

TEST(tokens_of_objects_are_read_as_they_are_written)
{
	static const char *const bad[] = {"640x@0",  "x480@0",	   "640x480@",	       "640x480@0,", "640x480@0,1",
					  "@0,1,2",  "@0,1,2,3,",  "@0,1,2,x",	       "0x480=00",   "640x480=0",
					  "640x480", "64 x480=00", "@0,1,2,4294967296"};
	struct text text = {0};
	struct field_part part;
	struct field_shape shape;
	struct words c;
	bool wrong;

	field_part_begin_shapes(&text, 640, 480, 7);
	field_part_add_shape(&text, &(struct field_shape){1000, 20, 255});
	field_part_add_shape(&text, &(struct field_shape){2000, 30, 1});
	CHECK_STR(text.data, " 640x480@7,1000,20,255,2000,30,1");
	CHECK(field_part_read(text.data + 1, text.bytes - 1, &part));
	CHECK_EQ(part.kind, FIELD_PART_SHAPES);
	CHECK_EQ(part.width, 640);
	CHECK_EQ(part.height, 480);
	CHECK_EQ(part.file, 7);
	c = words_of(part.text, part.text_bytes);
	CHECK(field_part_next_shape(&c, &shape, &wrong));
	CHECK(shape.offset == 1000 && shape.bytes == 20 && shape.value == 255);
	CHECK(field_part_next_shape(&c, &shape, &wrong));
	CHECK(!field_part_next_shape(&c, &shape, &wrong) && !wrong);
	CHECK(field_part_shapes_fit(&part, 2030, 255));
	CHECK(!field_part_shapes_fit(&part, 2029, 255));
	CHECK(!field_part_shapes_fit(&part, 2030, 254));
	CHECK(field_part_read("@0", 2, &part) && !part.width && field_part_shapes_fit(&part, 0, 255));
	CHECK(field_part_read("2x3=0a", 6, &part) && part.kind == FIELD_PART_VALUE && part.bytes == 1 &&
	      part.height == 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		STORY("%s", bad[i]);
		CHECK(!field_part_read(bad[i], strlen(bad[i]), &part) ||
		      (part.kind == FIELD_PART_SHAPES && !field_part_shapes_fit(&part, 1000, 255)));
	}
	text_free(&text);
}

TEST_MAIN()
