// SPDX-License-Identifier: GPL-2.0
/*
 * Does a program on a uprobe keep its stack while another task runs it on the same CPU?
 * The first task, of SCHED_OTHER, waits in the program. The second one, of SCHED_FIFO,
 * preempts it there if the kernel lets it, and runs the whole program.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include "test_progs.h"
#include "../../../include/linux/filter.h"
#include "uprobe_priv_stack.skel.h"

static noinline void probed(void)
{
	asm volatile ("");
}

static void *first_task(void *arg)
{
	struct uprobe_priv_stack *skel = arg;

	skel->bss->first = syscall(SYS_gettid);
	probed();
	return NULL;
}

static volatile bool ready, may_preempt;

static void *second_task(void *arg)
{
	struct sched_param fifo = { .sched_priority = 1 };
	struct uprobe_priv_stack *skel = arg;
	int i;

	may_preempt = !sched_setscheduler(0, SCHED_FIFO, &fifo);
	ready = true;
	for (i = 0; i < 10000 && !*(volatile int *)&skel->bss->waiting; i++)
		usleep(1000);
	probed();
	return NULL;
}

/* Both tasks on one CPU of those that this one may use */
static int one_cpu(pthread_attr_t *attr)
{
	cpu_set_t may, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(may), &may))
		return -errno;
	for (cpu = 0; !CPU_ISSET(cpu, &may); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return -pthread_attr_setaffinity_np(attr, sizeof(one), &one);
}

static void run_both(struct uprobe_priv_stack *skel)
{
	pthread_t first, second;
	pthread_attr_t attr;

	ready = false;
	pthread_attr_init(&attr);
	if (!ASSERT_OK(one_cpu(&attr), "one_cpu") ||
	    !ASSERT_OK(pthread_create(&second, &attr, second_task, skel), "second_task"))
		goto destroy;
	while (!ready)
		usleep(1000);
	if (ASSERT_OK(pthread_create(&first, &attr, first_task, skel), "first_task"))
		pthread_join(first, NULL);
	pthread_join(second, NULL);
destroy:
	pthread_attr_destroy(&attr);
}

static struct bpf_link *attach(struct bpf_program *prog)
{
	unsigned long offset = get_uprobe_offset(&probed);
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = &offset, .cnt = 1);

	if (strstr(bpf_program__section_name(prog), "multi"))
		return bpf_program__attach_uprobe_multi(prog, -1, "/proc/self/exe", NULL, &opts);
	return bpf_program__attach_uprobe(prog, false, -1, "/proc/self/exe", offset);
}

/* A bpf_instance_prep_fn: a prologue of one instruction that has no effect */
static int add_nop(const struct bpf_program *prog, __u32 idx, const struct bpf_insn *insns,
		   size_t insn_cnt, struct bpf_instance_code *code, void *ctx)
{
	struct bpf_insn *buf = ctx;

	buf[0] = BPF_MOV64_REG(BPF_REG_1, BPF_REG_1);
	memcpy(buf + 1, insns, insn_cnt * sizeof(*insns));
	code->insns = buf;
	code->insn_cnt = 1 + insn_cnt;
	code->prologue_cnt = 1;
	return 0;
}

/* The program of this name, or an instance of it */
static struct bpf_program *find(struct bpf_object *obj, const char *name, bool instance)
{
	static struct bpf_insn buf[4096];
	LIBBPF_OPTS(bpf_instances_opts, opts, .prep = add_nop, .ctx = buf);
	struct bpf_program *prog = bpf_object__find_program_by_name(obj, name);
	struct bpf_instances *set;

	if (!instance)
		return prog;
	if (!ASSERT_OK(bpf_object__prepare(obj), "prepare"))
		return NULL;
	set = bpf_program__instantiate(prog, 1, &opts);
	if (!ASSERT_OK_PTR(set, "instantiate"))
		return NULL;
	return bpf_instances__program(set, 0);
}

/* Where private stacks were supported, which kernels had more than 512 bytes in */
static bool may_be_deep(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

static void test_program(const char *name, bool instance)
{
	struct uprobe_priv_stack *skel = uprobe_priv_stack__open();
	struct bpf_program *prog;
	struct bpf_link *link;
	int key = 0, target, err;

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	if (strstr(name, "deep") && !may_be_deep()) {
		test__skip();
		goto destroy;
	}
	bpf_program__set_autoload(skel->progs.single_deep_sleepable, strstr(name, "deep"));
	prog = find(skel->obj, name, instance);
	if (!prog)
		goto destroy;
	if (!ASSERT_OK(uprobe_priv_stack__load(skel), "load"))
		goto destroy;
	target = bpf_program__fd(skel->progs.single);
	err = bpf_map_update_elem(bpf_map__fd(skel->maps.targets), &key, &target, 0);
	if (!strcmp(name, "tail_call") && !ASSERT_OK(err, "targets"))
		goto destroy;
	link = attach(prog);
	if (!ASSERT_OK_PTR(link, "attach"))
		goto destroy;
	run_both(skel);
	bpf_link__destroy(link);
	ASSERT_EQ(skel->bss->runs, 2, "runs");
	ASSERT_EQ(skel->bss->wrong, 0, "wrong");
	/* otherwise the second task need not run before the first one is through */
	if (strstr(name, "sleepable") && skel->bss->preemptible && may_preempt)
		ASSERT_EQ(skel->bss->overlapped, 1, "overlapped");
destroy:
	uprobe_priv_stack__destroy(skel);
}

void test_uprobe_stack_too_deep(void)
{
	struct uprobe_priv_stack *skel = uprobe_priv_stack__open();

	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.single_too_deep_sleepable, true);
	ASSERT_EQ(uprobe_priv_stack__load(skel), -EACCES, "load");
	uprobe_priv_stack__destroy(skel);
}

/* Programs that tail call it keep some of the same stack. */
void test_uprobe_stack_deep_target(void)
{
	struct uprobe_priv_stack *skel = uprobe_priv_stack__open();
	int key = 0, fd, target;

	if (!may_be_deep()) {
		test__skip();
		goto destroy;
	}
	if (!ASSERT_OK_PTR(skel, "open"))
		return;
	bpf_program__set_autoload(skel->progs.single_deep_sleepable, true);
	if (!ASSERT_OK(uprobe_priv_stack__load(skel), "load"))
		goto destroy;
	fd = bpf_map__fd(skel->maps.other_targets);
	target = bpf_program__fd(skel->progs.single_deep_sleepable);
	ASSERT_EQ(bpf_map_update_elem(fd, &key, &target, 0), -EINVAL, "deep target");
	target = bpf_program__fd(skel->progs.single_sleepable);
	ASSERT_OK(bpf_map_update_elem(fd, &key, &target, 0), "target");
destroy:
	uprobe_priv_stack__destroy(skel);
}

void serial_test_uprobe_priv_stack(void)
{
	static const char * const names[] = {
		"single", "single_sleepable", "single_deep_sleepable", "multi",
		"multi_sleepable", "tail_call",
	};
	char name[64];
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "%s%s", names[i / 2], i % 2 ? "_instance" : "");
		if (test__start_subtest(name))
			test_program(names[i / 2], i % 2);
	}
}
