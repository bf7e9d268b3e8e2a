// SPDX-License-Identifier: GPL-2.0
/*
 * Functions for probe events with BTF arguments: names that probe-sample-b has too,
 * with other or the same arguments, and arguments that are hard to find.
 */
#include <linux/fs.h>

#include "probe-sample.h"

/* probe-sample-b has a structure of this name with other members. */
struct sample_point {
	int x;
	int y;
};

struct sample_bits {
	unsigned int	lead:3;
	int		negative:5;
	unsigned int	byte:8;
	unsigned int	tail:11;
};

struct sample_pair {
	unsigned long	first;
	unsigned long	second;
};

struct sample_big {
	unsigned long	words[5];
};

static noinline __noipa int sample_shared(int count, const char *name, struct sample_point *point)
{
	return count + name[0] + point->x;
}

static noinline __noipa int sample_same(unsigned int value, struct sample_point *point)
{
	return value + point->y;
}

static noinline __noipa int sample_only_a(unsigned char small, struct sample_bits *bits)
{
	return small + bits->negative;
}

/* As in the core kernel (fs/proc/self.c), so that BTF has one prototype for both. */
static noinline __noipa const char *proc_self_get_link(struct dentry *dentry,
						       struct inode *inode,
						       struct delayed_call *done)
{
	return done ? NULL : (const char *)inode;
}

static noinline __noipa int sample_traced(int value)
{
	return value;
}

static noinline __noipa int sample_aliased(struct sample_point *point)
{
	return point->x;
}

/* BTF does not know this name. */
static int __used sample_alias(struct sample_point *point) __alias(sample_aliased);

enum sample_signed {
	SAMPLE_MINUS = -1,
};

enum sample_unsigned {
	SAMPLE_TOP_BIT = 0x80000000U,
};

static noinline __noipa int sample_enums(enum sample_signed sign, enum sample_unsigned top)
{
	return sign == SAMPLE_MINUS && top == SAMPLE_TOP_BIT;
}

static noinline __noipa int sample_pair(int before, struct sample_pair pair, int after)
{
	return before + pair.second + after;
}

static noinline __noipa int sample_big(int before, struct sample_big big, int after)
{
	return before + big.words[4] + after;
}

/* Passed on the stack, as its member is not aligned. */
struct sample_packed {
	u8	lead;
	u32	value;
} __packed;

static noinline __noipa int sample_packed(int before, struct sample_packed packed, int after)
{
	return before + packed.value + after;
}

static noinline __noipa struct sample_big sample_returns(int first, short second)
{
	return (struct sample_big){ .words = { first, second } };
}

#ifdef __SIZEOF_INT128__
static noinline __noipa int sample_wide(int before, __int128 wide, int after)
{
	return before + (int)wide + after;
}
#endif

struct sample_table {
	short			grid[2][3];
	struct sample_point	points[3];
	struct sample_point	*more;
	const char		*names[2];
	char			tail[] __aligned(8);	/* has one more point */
};

static noinline __noipa struct sample_table *sample_table(struct sample_table *table)
{
	return table;
}

static noinline __noipa int sample_many(int a, int b, int c, int d, int e, struct sample_pair f,
					int g, struct sample_pair h)
{
	return a + b + c + d + e + f.second + g + h.second;
}

/* Inlined, with its arguments elsewhere each time. The last one is not used. */
static __always_inline int sample_inlined(int number, struct sample_point *point, long unused)
{
	return sample_same(number, point) + point->x;
}

static noinline __noipa int sample_inlines(int number, struct sample_point *point)
{
	return sample_inlined(number, point, number * 12345L);
}

static noinline __noipa int sample_inlines_twice(struct sample_point *points)
{
	return sample_inlined(40000, &points[0], 200) + sample_inlined(-40000, &points[1], -200);
}

static void sample_run_tables(void)
{
	struct sample_point more[] = { { .x = 71, .y = 72 }, { .x = 73, .y = 74 } };
	struct sample_pair pair = { .first = 25, .second = 26 };
	struct {
		struct sample_table table;
		struct sample_point last;
	} all = {
		.table = {
			.grid = { { 81, 82, 83 }, { 84, 85, -86 } },
			.points = { { .x = 61, .y = 62 }, {}, { .x = 65, .y = 66 } },
			.more = more,
			.names = { "first", "second" },
		},
		.last = { .x = 75, .y = 76 },
	};

	sample_table(&all.table);
	sample_many(91, 92, 93, 94, 95, pair, 97, pair);
	sample_inlines(-5, &more[1]);
	sample_inlines_twice(more);
}

static void sample_run(void)
{
	struct sample_bits bits = { .lead = 5, .negative = -6, .byte = 77, .tail = 1234 };
	struct sample_pair pair = { .first = 21, .second = 22 };
	struct sample_big big = { .words = { 31, 32, 33, 34, 35 } };
	struct sample_packed packed = { .lead = 51, .value = 52 };
	struct sample_point point = { .x = 1, .y = 2 };

	sample_shared(-3, "from_a", &point);
	sample_same(101, &point);
	sample_only_a(200, &bits);
	proc_self_get_link(NULL, NULL, NULL);
	sample_traced(21);
	sample_aliased(&point);
	sample_enums(SAMPLE_MINUS, SAMPLE_TOP_BIT);
	sample_pair(11, pair, 12);
	sample_big(13, big, 14);
	sample_packed(53, packed, 54);
	sample_run_tables();
	sample_returns(15, -16);
#ifdef __SIZEOF_INT128__
	sample_wide(17, 18, 19);
#endif
}

MODULE_DESCRIPTION("Sample of functions for probe events, first of two");
