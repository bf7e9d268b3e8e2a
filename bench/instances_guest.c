// SPDX-License-Identifier: GPL-2.0
/*
 * For bench/instances: what one program at N points costs, for each way to give it its
 * arguments. Prints "NAME NUMBER" lines.
 *
 *	instances_guest cost FILE.bpf.o	  load, memory, and what a hit takes
 *	instances_guest stop FILE.bpf.o	  milliseconds to attach and to detach all
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "instances_bench.h"

#define HIT_FUNC "__x64_sys_getppid"
#define NR_HITS 2000
#define FUNCS "/sys/kernel/tracing/available_filter_functions"
#define BLACKLIST "/sys/kernel/debug/kprobes/blacklist"

enum way { PER_POINT, PER_LAYOUT, SPEC_HIT, SPEC_ARG, BY_HAND, NR_WAYS, EMPTY = NR_WAYS };

static const char *const names[] = {
	"per_point", "per_layout", "spec_hit", "spec_arg", "by_hand", "empty",
};

/* What is loaded, and the programs in it. */
struct loaded {
	struct bpf_object *obj;
	int nr_progs;
	struct bpf_program *progs[MAX_POINTS];
};

static void die(const char *what)
{
	fprintf(stderr, "instances_guest: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int nr_layouts(int nr_points)
{
	return (nr_points + POINTS_PER_LAYOUT - 1) / POINTS_PER_LAYOUT;
}

#define INSN(code_, dst, src, off_, imm_) \
	((struct bpf_insn){ .code = (code_), .dst_reg = (dst), .src_reg = (src), \
			    .off = (off_), .imm = (imm_) })
#define MOV_REG(dst, src)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define MOV_IMM(dst, imm)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define ADD_IMM(dst, imm)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm)
#define OR_REG(dst, src)	INSN(BPF_ALU64 | BPF_OR | BPF_X, dst, src, 0, 0)
#define LOAD(dst, src, off)	INSN(BPF_LDX | BPF_MEM | BPF_DW, dst, src, off, 0)
#define CALL(func)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, func)

/* Fetch the arguments of a layout to r3 to r5, and whether one could not be read to r2. */
static int make_prologue(struct bpf_insn *insns, int layout)
{
	struct bpf_insn *i = insns;
	int arg;

	*i++ = MOV_REG(BPF_REG_6, BPF_REG_1);
	*i++ = LOAD(BPF_REG_8, BPF_REG_6, reg_off_of(layout, 0));
	*i++ = MOV_IMM(BPF_REG_7, 0);
	for (arg = 1; arg < NR_ARGS; arg++) {
		*i++ = MOV_REG(BPF_REG_1, BPF_REG_10);
		*i++ = ADD_IMM(BPF_REG_1, -8 * arg);
		*i++ = MOV_IMM(BPF_REG_2, 8);
		*i++ = LOAD(BPF_REG_3, BPF_REG_6, reg_off_of(layout, arg));
		*i++ = ADD_IMM(BPF_REG_3, val_off_of(layout, arg));
		*i++ = CALL(BPF_FUNC_probe_read_kernel);
		*i++ = OR_REG(BPF_REG_7, BPF_REG_0);
	}
	*i++ = MOV_REG(BPF_REG_1, BPF_REG_6);
	*i++ = MOV_REG(BPF_REG_2, BPF_REG_7);
	*i++ = MOV_REG(BPF_REG_3, BPF_REG_8);
	*i++ = LOAD(BPF_REG_4, BPF_REG_10, -8);
	*i++ = LOAD(BPF_REG_5, BPF_REG_10, -16);
	return i - insns;
}

/* A bpf_instance_prep_fn. @ctx tells how many instances a layout has. */
static int prep(const struct bpf_program *prog, __u32 idx, const struct bpf_insn *insns,
		size_t insn_cnt, struct bpf_instance_code *code, void *ctx)
{
	static struct bpf_insn buf[4096];

	(void)prog;
	code->prologue_cnt = make_prologue(buf, idx / *(int *)ctx);
	memcpy(buf + code->prologue_cnt, insns, insn_cnt * sizeof(*buf));
	code->insns = buf;
	code->insn_cnt = code->prologue_cnt + insn_cnt;
	return 0;
}

static void fill_layouts(struct bpf_object *obj, int nr)
{
	int fd = bpf_object__find_map_fd_by_name(obj, "layouts"), arg;
	__u32 i;

	for (i = 0; i < (__u32)nr; i++) {
		struct layout layout = {};

		for (arg = 0; arg < NR_ARGS; arg++) {
			layout.args[arg].kind = arg ? ARG_REG_DEREF : ARG_REG;
			layout.args[arg].reg_off = reg_off_of(i, arg);
			layout.args[arg].val_off = val_off_of(i, arg);
		}
		if (bpf_map_update_elem(fd, &i, &layout, 0))
			die("layouts");
	}
}

/* Instances of the program called @name. */
static void instantiate(struct loaded *l, const char *name, int nr, int nr_per_layout)
{
	LIBBPF_OPTS(bpf_instances_opts, opts,
		.prep = prep,
		.ctx = &nr_per_layout,
	);
	struct bpf_program *prog = bpf_object__find_program_by_name(l->obj, name);
	struct bpf_instances *set = bpf_program__instantiate(prog, nr, &opts);

	if (!set)
		die("bpf_program__instantiate");
	bpf_program__set_autoload(prog, false);
	for (l->nr_progs = 0; l->nr_progs < nr; l->nr_progs++)
		l->progs[l->nr_progs] = bpf_instances__program(set, l->nr_progs);
}

static void use(struct loaded *l, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(l->obj, name);

	if (!prog)
		die(name);
	bpf_program__set_autoload(prog, true);
	l->progs[l->nr_progs++] = prog;
}

/*
 * Load for @way at @nr points, with events of perf or multi links, and return the
 * nanoseconds between prepare and the end of the load.
 */
static long long load(struct loaded *l, const char *file, enum way way, int nr, bool events)
{
	bool by_prologue = way == PER_POINT || way == PER_LAYOUT;
	const char *name = events ? "instance_event" : "instance";
	struct bpf_program *prog;
	char hand[16];
	long long t;
	int i;

	l->nr_progs = 0;
	l->obj = bpf_object__open_file(file, NULL);
	if (!l->obj)
		die(file);
	bpf_object__for_each_program(prog, l->obj)
		bpf_program__set_autoload(prog, by_prologue &&
					  !strcmp(bpf_program__name(prog), name));
	if (way == SPEC_HIT || way == SPEC_ARG || way == EMPTY)
		use(l, names[way]);
	for (i = 0; way == BY_HAND && i < nr_layouts(nr); i++) {
		snprintf(hand, sizeof(hand), "hand_%d", i);
		use(l, hand);
	}
	if (bpf_object__prepare(l->obj))
		die("prepare");

	t = now();
	if (way == PER_POINT)
		instantiate(l, name, nr, POINTS_PER_LAYOUT);
	else if (way == PER_LAYOUT)
		instantiate(l, name, nr_layouts(nr), 1);
	else if (way == SPEC_HIT || way == SPEC_ARG)
		fill_layouts(l->obj, nr_layouts(nr));
	if (bpf_object__load(l->obj))
		die("load");
	return now() - t;
}

/* A number that a line of /proc/self/fdinfo has after "KEY:" */
static long long fdinfo(int fd, const char *key)
{
	char path[64], line[256];
	long long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = atoll(line + strlen(key) + 1);
	}
	fclose(f);
	if (value < 0)
		die(key);
	return value;
}

static struct bpf_prog_info info_of(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		die("bpf_prog_info");
	return info;
}

static void print_load(const struct loaded *l, enum way way, int nr, long long t)
{
	long long memory = 0, verified = 0;
	int i;

	for (i = 0; i < l->nr_progs; i++) {
		struct bpf_prog_info info = info_of(l->progs[i]);

		verified += info.verified_insns;
		memory += info.jited_prog_len + fdinfo(bpf_program__fd(l->progs[i]), "memlock");
	}
	/* what stands for programs there */
	if (way == SPEC_HIT || way == SPEC_ARG)
		memory += fdinfo(bpf_object__find_map_fd_by_name(l->obj, "layouts"), "memlock");
	printf("%s_%d_load %lld\n", names[way], nr, t);
	printf("%s_%d_memory %lld\n", names[way], nr, memory);
	printf("%s_%d_verified %lld\n", names[way], nr, verified);
}

/*
 * The points are functions that are alone in having their name, and where kprobes may be.
 * The first is HIT_FUNC, the others come from the middle of the alphabet.
 */
static char *funcs[MAX_POINTS];
static char *all_funcs[200000];
static int nr_funcs;

static int compare(const void *a, const void *b)
{
	return strcmp(*(char **)a, *(char **)b);
}

/* Add the names in column @column of a file to the list. */
static void add_names(const char *path, int column)
{
	char line[512], *name;
	FILE *f = fopen(path, "r");
	int i;

	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f) && nr_funcs < 200000) {
		name = strtok(line, " \t\n");
		for (i = 0; i < column && name; i++)
			name = strtok(NULL, " \t\n");
		/* what begins so is called all the time */
		if (!name || strchr(name, '.') || *name == '_' || !strncmp(name, "bpf", 3) ||
		    !strncmp(name, "rcu", 3) || !strncmp(name, "trace", 5))
			continue;
		all_funcs[nr_funcs++] = strdup(name);
	}
	fclose(f);
}

static void read_funcs(void)
{
	char **all = all_funcs;
	int i, nr = 0;

	add_names(FUNCS, 0);
	/* names that are there twice are left out, as those of two functions are */
	add_names(BLACKLIST, 1);
	add_names(BLACKLIST, 1);
	qsort(all, nr_funcs, sizeof(all[0]), compare);
	funcs[nr++] = HIT_FUNC;
	for (i = nr_funcs / 3; i < nr_funcs - 1 && nr < MAX_POINTS; i++) {
		if (strcmp(all[i], all[i - 1]) && strcmp(all[i], all[i + 1]))
			funcs[nr++] = all[i];
	}
	if (nr < MAX_POINTS)
		die("too few functions");
}

/* One link for all points of a program, which are @nr from @first on. */
static struct bpf_link *attach_multi(struct bpf_program *prog, int first, int nr, enum way way)
{
	static __u64 cookies[MAX_POINTS];
	LIBBPF_OPTS(bpf_kprobe_multi_opts, opts,
		.syms = (const char **)funcs + first,
		.cookies = cookies,
		.cnt = nr,
	);
	struct bpf_link *link;
	int i;

	for (i = 0; i < nr; i++) {
		cookies[i] = first + i;
		if (way == SPEC_HIT || way == SPEC_ARG)
			cookies[i] |= (__u64)((first + i) / POINTS_PER_LAYOUT) << 32;
	}
	link = bpf_program__attach_kprobe_multi_opts(prog, NULL, &opts);
	if (!link)
		die("kprobe.multi");
	return link;
}

/* What a hit takes: of the first point, the only one that is attached. */
static void print_hit(const struct loaded *l, enum way way, int nr)
{
	struct bpf_link *link = attach_multi(l->progs[0], 0, 1, way);
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), i;
	struct bpf_prog_info info;
	__u64 sum = 0;
	__u32 key = 0;

	for (i = 0; i < NR_HITS; i++)
		syscall(SYS_getppid, 1, 2);
	info = info_of(l->progs[0]);
	close(stats);
	bpf_link__destroy(link);
	bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(l->obj, "sums"), &key, &sum);
	/* a pointer that is not NULL, and what is passed above, in the other order */
	if (info.run_cnt != NR_HITS || sum != (way == EMPTY ? 0 : (1 + 2 + 1) * NR_HITS)) {
		fprintf(stderr, "instances_guest: %s: %llu hits, sum %llu\n", names[way],
			(unsigned long long)info.run_cnt, (unsigned long long)sum);
		exit(1);
	}
	printf("%s_%d_hit %llu\n", names[way], nr,
	       (unsigned long long)(info.run_time_ns / info.run_cnt));
}

static void print_cost(const char *file, enum way way, int nr)
{
	static struct loaded l;
	long long t = load(&l, file, way, nr, false);

	if (way != EMPTY)
		print_load(&l, way, nr, t);
	print_hit(&l, way, nr);
	bpf_object__close(l.obj);
}

/* Attach at all points, each by an event of its own or by a link for each program. */
static void print_stop(const char *file, enum way way, int nr, bool events)
{
	static struct bpf_link *links[MAX_POINTS];
	LIBBPF_OPTS(bpf_kprobe_opts, opts);
	static struct loaded l;
	int i, nr_here, first = 0;
	long long t;

	load(&l, file, way, nr, events);
	t = now();
	for (i = 0; i < l.nr_progs; i++, first += nr_here) {
		nr_here = nr - first < POINTS_PER_LAYOUT ? nr - first : POINTS_PER_LAYOUT;
		if (way == SPEC_HIT || way == SPEC_ARG)
			nr_here = nr;
		else if (way == PER_POINT)
			nr_here = 1;
		opts.bpf_cookie = first;
		links[i] = events ?
			bpf_program__attach_kprobe_opts(l.progs[i], funcs[first], &opts) :
			attach_multi(l.progs[i], first, nr_here, way);
		if (!links[i])
			die(funcs[first]);
	}
	printf("%s%s_%d_attach %lld\n", names[way], events ? "_events" : "", nr,
	       (now() - t) / 1000);
	t = now();
	for (i = 0; i < l.nr_progs; i++)
		bpf_link__destroy(links[i]);
	bpf_object__close(l.obj);
	printf("%s%s_%d_stop %lld\n", names[way], events ? "_events" : "", nr,
	       (now() - t) / 1000);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rlimit files = { .rlim_cur = 8 * MAX_POINTS, .rlim_max = 8 * MAX_POINTS };
	enum way way;
	int nr;

	if (argc != 3) {
		fprintf(stderr, "usage: %s cost|stop FILE.bpf.o\n", argv[0]);
		return 2;
	}
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	read_funcs();
	for (nr = 1; nr <= MAX_POINTS; nr *= 10) {
		for (way = 0; way < NR_WAYS; way++) {
			if (!strcmp(argv[1], "cost"))
				print_cost(argv[2], way, nr);
			else
				print_stop(argv[2], way, nr, false);
		}
		if (!strcmp(argv[1], "cost"))
			print_cost(argv[2], EMPTY, nr);
		if (strcmp(argv[1], "cost"))
			print_stop(argv[2], PER_POINT, nr, true);
	}
	return 0;
}
