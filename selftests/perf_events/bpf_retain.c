// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_prog_info of unloaded programs: attr.bpf_retain and PERF_EVENT_IOC_BPF_PROG_FD.
 *
 * A program that uses all parts of bpf_prog_info is read while it is loaded and
 * after it was unloaded: both must be equal. The other tests are about the limits:
 * nothing is retained without an event that asks for it, beyond the budget, or when
 * the last event is closed, and nothing is shown without the capabilities for it. No
 * one pays for what others retain: neither the cgroup of the loader, with its memory,
 * nor other users, with their place in the budget.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/bpf_info.h"
#include "lib/ksym_ring.h"
#include "lib/retained.h"
#include "lib/test_env.h"

#define KPTR_RESTRICT	"/proc/sys/kernel/kptr_restrict"
#define JIT_HARDEN	"/proc/sys/net/core/bpf_jit_harden"
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		1000

#define MAX_UNLOADED	512

static bool throws;	/* does the verifier add a function to the program? */

/*
 * The programs that a test and its children have unloaded. On a busy machine it may
 * take seconds until they are retained, in another order than they were unloaded.
 */
static struct {
	__u32 nr;
	__u32 ids[MAX_UNLOADED];
} *unloaded;

/* Close @prog, the last reference, and note its id for wait_for_unloaded(). */
static void unload(int *prog)
{
	__u32 id = id_of(*prog);

	if (id && unloaded->nr < MAX_UNLOADED)
		unloaded->ids[unloaded->nr++] = id;
	close_fd(prog);
}

/*
 * Wait until all programs have ended, the last one first: those before it are then
 * evicted before anyone asks for them. Return: how many are retained, or -errno.
 */
static int wait_for_unloaded(int event)
{
	int fd, kept = 0;
	__u32 i;

	for (i = unloaded->nr; i-- > 0; ) {
		fd = ended_prog(event, unloaded->ids[i]);
		if (fd < 0 && fd != -ENOENT)
			return fd;
		kept += fd >= 0;
		close_fd(&fd);
	}
	return kept;
}

/* Load a program, read its bpf_prog_info, and unload it. Return: 0 or -errno. */
static int read_and_unload(struct info_copy *c)
{
	int prog = info_prog__load(&throws), err = prog;

	if (prog >= 0)
		err = info_copy__read(c, prog, throws);
	unload(&prog);
	return err;
}

FIXTURE(retain) {
	int event;
	long budget, kptr_restrict, jit_harden;
};

FIXTURE_SETUP(retain)
{
	const char *reason = skip_reason();

	self->event = -1;
	self->budget = -1;
	unloaded = mmap(NULL, sizeof(*unloaded), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, unloaded);
	self->kptr_restrict = read_number(KPTR_RESTRICT);
	self->jit_harden = read_number(JIT_HARDEN);
	if (reason)
		SKIP(return, "%s", reason);
	self->event = open_retain_event(true);
	ASSERT_LE(0, self->event)
		TH_LOG("an event with attr.bpf_retain: %s", strerror(-self->event));
	self->budget = read_number(BUDGET);
	ASSERT_LE(0, self->budget);
}

FIXTURE_TEARDOWN(retain)
{
	if (self->budget >= 0)
		write_number(BUDGET, self->budget);
	write_number(KPTR_RESTRICT, self->kptr_restrict);
	write_number(JIT_HARDEN, self->jit_harden);

	/* The next test counts its own programs only. */
	if (self->event < 0)
		self->event = open_retain_event(true);
	wait_for_unloaded(self->event);
	close_fd(&self->event);
}

/*
 * Compare bpf_prog_info of a program from before and after it was unloaded, except
 * the translated instructions, which are not retained. Return: where they differ,
 * or NULL.
 */
static const char *differ(const struct info_copy *lived, const struct info_copy *ended)
{
	struct bpf_prog_info info = lived->info;

	if (ended->info.xlated_prog_len)
		return "xlated_prog_len";
	info.xlated_prog_len = 0;

	/* Buffers of the caller, or 0 for what the caller may not see */
	info.jited_prog_insns = ended->info.jited_prog_insns;
	info.jited_ksyms = ended->info.jited_ksyms;
	info.jited_func_lens = ended->info.jited_func_lens;
	info.prog_tags = ended->info.prog_tags;
	info.func_info = ended->info.func_info;
	info.line_info = ended->info.line_info;
	info.jited_line_info = ended->info.jited_line_info;
	info.map_ids = ended->info.map_ids;

	if (memcmp(&info, &ended->info, sizeof(info)))
		return "the numbers";
	if (memcmp(lived->code, ended->code, sizeof(ended->code)))
		return "the code";
	if (memcmp(lived->ksyms, ended->ksyms, sizeof(ended->ksyms)) ||
	    memcmp(lived->lens, ended->lens, sizeof(ended->lens)) ||
	    memcmp(lived->tags, ended->tags, sizeof(ended->tags)))
		return "addresses, lengths or tags of functions";
	if (memcmp(lived->funcs, ended->funcs, sizeof(ended->funcs)))
		return "the types of functions";
	if (memcmp(lived->lines, ended->lines, sizeof(ended->lines)) ||
	    memcmp(lived->jited_lines, ended->jited_lines, sizeof(ended->jited_lines)))
		return "the lines";
	return memcmp(lived->maps, ended->maps, sizeof(ended->maps)) ? "the maps" : NULL;
}

static void expect_same(struct __test_metadata *_metadata, const struct info_copy *lived,
			const struct info_copy *ended)
{
	const char *where = differ(lived, ended);

	EXPECT_EQ(NULL, where) TH_LOG("different: %s", where);
}

TEST_F_TIMEOUT(retain, told_as_before, TEST_S)
{
	struct info_copy lived, ended;
	int fd, btf_fd;

	ASSERT_EQ(0, read_and_unload(&lived));
	ASSERT_EQ(2 + throws, lived.info.nr_jited_ksyms);
	ASSERT_EQ(2, lived.info.nr_func_info);
	ASSERT_EQ(4, lived.info.nr_jited_line_info);
	ASSERT_EQ(1, lived.info.nr_map_ids);
	ASSERT_NE(0, lived.info.btf_id);
	ASSERT_LT(0, lived.info.xlated_prog_len);
	ASSERT_NE(0, lived.code[0]);

	fd = ended_prog(self->event, lived.info.id);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(-fd));
	ASSERT_EQ(0, info_copy__read(&ended, fd, throws));
	expect_same(_metadata, &lived, &ended);

	btf_fd = bpf_btf_get_fd_by_id(ended.info.btf_id);
	EXPECT_LE(0, btf_fd) TH_LOG("BTF: %s", strerror(-btf_fd));
	close_fd(&btf_fd);

	/* The file outlives the event. */
	close_fd(&self->event);
	memset(&ended, 0, sizeof(ended));
	EXPECT_EQ(0, info_copy__read(&ended, fd, throws));
	expect_same(_metadata, &lived, &ended);

	/* It cannot be run. */
	EXPECT_EQ(-EINVAL, bpf_prog_test_run_opts(fd, NULL));
	close_fd(&fd);
}

/* Wait for the UNLOAD record of the program @id. Return: its flags, or -ETIMEDOUT. */
static int unload_flags(struct ksym_rings *rings, __u32 id)
{
	__u64 end = now_ms() + WAIT_MS, now = 0;
	size_t i;

	while (now < end && !ksym_rings__drain(rings)) {
		for (i = 0; i < rings->nr_recs; i++)
			if (rings->recs[i].type == PERF_RECORD_BPF_EVENT &&
			    rings->recs[i].k.ksym_type == PERF_BPF_EVENT_PROG_UNLOAD &&
			    rings->recs[i].k.addr == id)
				return rings->recs[i].k.flags;
		now = now_ms();
		if (now < end)
			poll(rings->fds, rings->nr, end - now);
	}
	return -ETIMEDOUT;
}

/* The UNLOAD record has a flag for programs that are retained. */
TEST_F_TIMEOUT(retain, record_says_so, TEST_S)
{
	struct perf_event_attr attr = retain_attr(false);
	struct info_copy c;
	struct ksym_rings rings;

	ASSERT_EQ(0, ksym_rings__open(&rings, &attr));
	ASSERT_EQ(0, read_and_unload(&c));
	EXPECT_EQ(PERF_BPF_EVENT_F_RETAINED, unload_flags(&rings, c.info.id));
	ksym_rings__close(&rings);
}

TEST_F_TIMEOUT(retain, nothing_that_lives, TEST_S)
{
	struct info_copy c;
	int prog = info_prog__load(&throws);

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, info_copy__read(&c, prog, false));
	EXPECT_EQ(-ENOENT, ended_prog(self->event, c.info.id));
	EXPECT_EQ(-ENOENT, ended_prog(self->event, 0));
	EXPECT_EQ(-ENOENT, ended_prog(self->event, -1));
	unload(&prog);
}

/* An event without attr.bpf_retain, and one that was opened too late. */
TEST_F_TIMEOUT(retain, nothing_unasked, TEST_S)
{
	int plain = open_retain_event(false), late;
	struct info_copy c;

	ASSERT_LE(0, plain);
	EXPECT_EQ(-EINVAL, ended_prog(plain, 1));
	EXPECT_EQ(-ENOENT, fdinfo_number(plain, "bpf_retained"));
	close_fd(&plain);

	close_fd(&self->event);
	ASSERT_EQ(0, read_and_unload(&c));
	late = open_retain_event(true);
	ASSERT_LE(0, late);
	EXPECT_EQ(-ENOENT, ended_prog(late, c.info.id));
	close_fd(&late);
}

/* O_NONBLOCK: -EAGAIN until the program is retained. */
TEST_F_TIMEOUT(retain, without_waiting, TEST_S)
{
	__u64 end = now_ms() + WAIT_MS;
	struct info_copy c;
	int fd = -EAGAIN;

	ASSERT_EQ(0, fcntl(self->event, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, read_and_unload(&c));
	while (fd == -EAGAIN && now_ms() < end) {
		fd = ended_prog(self->event, c.info.id);
		sched_yield();
	}
	EXPECT_LE(0, fd) TH_LOG("%s", strerror(-fd));
	close_fd(&fd);
}

/* Load and unload @nr programs, and wait until all have ended. Return: 0 or -errno. */
static int unload_programs(int event, int nr)
{
	struct info_copy c;
	int err = 0;

	while (!err && nr--)
		err = read_and_unload(&c);
	err = err ?: wait_for_unloaded(event);
	return err < 0 ? err : 0;
}

TEST_F_TIMEOUT(retain, budget, TEST_S)
{
	long long evicted = fdinfo_number(self->event, "bpf_retain_evicted");
	long long lost = fdinfo_number(self->event, "bpf_retain_lost");

	ASSERT_LE(0, evicted);
	ASSERT_EQ(0, write_number(BUDGET, 64));
	ASSERT_EQ(0, unload_programs(self->event, 100));
	EXPECT_GE(64 << 10, fdinfo_number(self->event, "bpf_retained_bytes"));
	EXPECT_LT(0, fdinfo_number(self->event, "bpf_retained"));
	EXPECT_LT(evicted, fdinfo_number(self->event, "bpf_retain_evicted"));
	EXPECT_EQ(lost, fdinfo_number(self->event, "bpf_retain_lost"));

	/* A smaller budget takes effect at once. */
	ASSERT_EQ(0, write_number(BUDGET, 0));
	EXPECT_EQ(0, fdinfo_number(self->event, "bpf_retained"));
	EXPECT_EQ(0, fdinfo_number(self->event, "bpf_retained_bytes"));
	ASSERT_EQ(0, unload_programs(self->event, 1));
	EXPECT_EQ(0, fdinfo_number(self->event, "bpf_retained"));
}

#define NR_LARGE	4000	/* instructions, about 28 KB of code */
#define TYPES_SIZE	(40 << 10)

/* Load a program of @nr instructions, with the types of @btf unless that is 0. */
static int load_large(int nr, int btf)
{
	static struct bpf_insn insns[NR_LARGE];
	const struct bpf_func_info func = { 0, 3 };
	int i;

	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_btf_fd = btf, .func_info = &func,
		    .func_info_cnt = !!btf, .func_info_rec_size = sizeof(func));

	insns[0] = BPF_MOV64_IMM(BPF_REG_0, 0);
	for (i = 1; i < nr - 1; i++)
		insns[i] = BPF_ALU64_IMM(BPF_ADD, BPF_REG_0, i);
	insns[nr - 1] = BPF_EXIT_INSN();
	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", insns, nr, &opts);
}

/* A program that exceeds the budget alone does not evict others. */
TEST_F_TIMEOUT(retain, too_large, TEST_S)
{
	long long kept;
	int prog;

	ASSERT_EQ(0, write_number(BUDGET, 8));
	ASSERT_EQ(0, unload_programs(self->event, 2));
	kept = fdinfo_number(self->event, "bpf_retained");
	EXPECT_LT(0, kept);
	prog = load_large(NR_LARGE, 0);
	ASSERT_LE(0, prog);
	unload(&prog);
	ASSERT_EQ(0, unload_programs(self->event, 1));
	EXPECT_LE(kept, fdinfo_number(self->event, "bpf_retained"));
}

/* The UNLOAD record of such a program does not have the flag. */
TEST_F_TIMEOUT(retain, record_of_too_large, TEST_S)
{
	struct perf_event_attr attr = retain_attr(false);
	struct ksym_rings rings;
	int prog;
	__u32 id;

	ASSERT_EQ(0, write_number(BUDGET, 8));
	ASSERT_EQ(0, ksym_rings__open(&rings, &attr));
	prog = load_large(NR_LARGE, 0);
	ASSERT_LE(0, prog);
	id = id_of(prog);
	unload(&prog);
	EXPECT_EQ(0, unload_flags(&rings, id));
	ksym_rings__close(&rings);
}

/* Nor is one retained that would fit without the types it shares with a retained program. */
TEST_F_TIMEOUT(retain, too_large_with_types, TEST_S)
{
	static char long_string[TYPES_SIZE];
	struct prog_btf btf;
	long long kept;
	int prog;

	memset(long_string, 'x', sizeof(long_string) - 1);
	btf = load_btf("main", "sub", "file", long_string);
	ASSERT_LE(0, btf.fd);
	ASSERT_EQ(0, write_number(BUDGET, 64));
	prog = load_large(2, btf.fd);
	ASSERT_LE(0, prog);
	unload(&prog);
	ASSERT_EQ(0, unload_programs(self->event, 1));
	kept = wait_for_unloaded(self->event);
	EXPECT_EQ(2, kept);
	EXPECT_LT(TYPES_SIZE, fdinfo_number(self->event, "bpf_retained_bytes"));

	prog = load_large(NR_LARGE, btf.fd);
	ASSERT_LE(0, prog);
	unload(&prog);
	ASSERT_EQ(0, unload_programs(self->event, 1));
	EXPECT_LE(kept, fdinfo_number(self->event, "bpf_retained"));
	close_fd(&btf.fd);
}

/* A file that is open stays valid, and programs that were asked for are not evicted ones. */
TEST_F_TIMEOUT(retain, asked_is_not_lost, TEST_S)
{
	long long evicted = fdinfo_number(self->event, "bpf_retain_evicted");
	struct info_copy lived, ended;
	int fd;

	ASSERT_EQ(0, read_and_unload(&lived));
	fd = ended_prog(self->event, lived.info.id);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, write_number(BUDGET, 0));
	EXPECT_EQ(evicted, fdinfo_number(self->event, "bpf_retain_evicted"));
	EXPECT_EQ(-ENOENT, ended_prog(self->event, lived.info.id));
	EXPECT_EQ(0, info_copy__read(&ended, fd, throws));
	expect_same(_metadata, &lived, &ended);
	close_fd(&fd);
}

/* Closing the last event frees all that is retained, in any state. */
TEST_F_TIMEOUT(retain, gone_with_the_event, TEST_S)
{
	__u64 end = now_ms() + WAIT_MS;
	int i, fd, pending = 0;
	long long kept = -1;

	for (i = 0; i < 20; i++) {
		struct info_copy c;

		ASSERT_EQ(0, read_and_unload(&c));
		if (i & 1) {
			ASSERT_LE(0, unload_programs(self->event, 1));
		} else {
			ASSERT_EQ(0, fcntl(self->event, F_SETFL, O_NONBLOCK));
			fd = ended_prog(self->event, c.info.id);
			pending += fd == -EAGAIN;
			close_fd(&fd);
		}
		close_fd(&self->event);
		self->event = open_retain_event(true);
		ASSERT_LE(0, self->event);
	}
	EXPECT_LT(0, pending);

	/* Programs that were about to be freed may be retained for the next event. */
	close_fd(&self->event);
	while (kept && now_ms() < end) {
		self->event = open_retain_event(true);
		ASSERT_LE(0, self->event);
		kept = fdinfo_number(self->event, "bpf_retained");
		close_fd(&self->event);
		sched_yield();
	}
	EXPECT_EQ(0, kept);
}

static int set_caps(__u64 caps)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = caps, .permitted = caps },
		{ .effective = caps >> 32, .permitted = caps >> 32 },
	};

	return syscall(__NR_capset, &hdr, data) ? -errno : 0;
}

/* Return: 0, or which step failed */
static int become(int uid, __u64 caps)
{
	if (!uid)
		return 0;
	return setgroups(0, NULL) || prctl(PR_SET_KEEPCAPS, 1) || setresgid(uid, uid, uid) ||
	       setresuid(uid, uid, uid) || set_caps(caps) ? 1 : 0;
}

static int exit_status(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
	       WEXITSTATUS(status) : 99;
}

/* No address, code and lines, as in bpf_prog_info of a loaded program without CAP_BPF. */
static int sees_nothing(int file)
{
	struct info_copy c;

	if (info_copy__read(&c, file, true))
		return 10;
	if (info_copy__has_address(&c) || c.info.jited_prog_len || c.info.nr_line_info)
		return 11;
	return strcmp(c.info.name, INFO_PROG_NAME) ? 12 : 0;
}

/* The same as root, which opened the file */
static int sees_all(int file)
{
	struct info_copy c;

	if (info_copy__read(&c, file, true))
		return 20;
	if (!info_copy__has_address(&c) || !c.code[0] || c.info.nr_line_info != 4)
		return 21;
	return strcmp(c.info.name, INFO_PROG_NAME) ? 22 : 0;
}

/* Exit status of a child that becomes @uid with @caps: 0, or which step failed. */
static int try_as(int uid, __u64 caps, int event, __u32 id, int file, int (*look)(int file))
{
	pid_t pid = fork();

	if (pid)
		return exit_status(pid);
	if (become(uid, caps))
		_exit(1);
	if (open_retain_event(true) != -EACCES)
		_exit(2);
	if (ended_prog(event, id) != -EPERM)
		_exit(3);
	_exit(look(file));
}

#define CAP(name)	(1ULL << CAP_##name)

/* One user unloads so many programs that the budget is exceeded several times. */
TEST_F_TIMEOUT(retain, a_share_for_each_user, TEST_S)
{
	long long evicted = fdinfo_number(self->event, "bpf_retain_evicted");
	struct info_copy c;
	pid_t pid;
	__u32 id;
	int fd;

	ASSERT_EQ(0, write_number(BUDGET, 64));
	ASSERT_EQ(0, read_and_unload(&c));
	id = c.info.id;
	fd = ended_prog(self->event, id);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(-fd));
	close_fd(&fd);

	pid = fork();
	if (!pid) {
		if (become(NOBODY, CAP(BPF) | CAP(PERFMON) | CAP(NET_ADMIN)))
			_exit(1);
		for (int i = 0; i < 200; i++)
			if (read_and_unload(&c))
				_exit(2);
		_exit(0);
	}
	ASSERT_EQ(0, exit_status(pid));
	EXPECT_LT(0, wait_for_unloaded(self->event));
	EXPECT_LT(evicted, fdinfo_number(self->event, "bpf_retain_evicted"));
	fd = ended_prog(self->event, id);
	EXPECT_LE(0, fd) TH_LOG("root's program: %s", strerror(-fd));
	close_fd(&fd);
}

#define GROUP_LINES	4000
#define GROUP_LOADS	120
#define GROUP_MAX	(8L << 20)

/*
 * Load and unload programs in the cgroup @group, beside a child whose inherited event
 * asks to retain them, too. Return: exit status of the process that loads.
 */
static int unload_in_group(const char *group)
{
	pid_t pid = fork(), child;
	int i, prog;

	if (pid)
		return exit_status(pid);
	if (write_file(group, "cgroup.procs", "0"))
		_exit(1);
	child = fork();
	if (child < 0)
		_exit(3);
	if (!child)
		pause();
	for (i = 0; i < GROUP_LOADS; i++) {
		prog = info_prog__load_lines(GROUP_LINES);
		if (prog < 0)
			break;
		unload(&prog);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(i < GROUP_LOADS ? 2 : 0);
}

/* Two cgroups: of who loads, with a limit, and of who profiles */
struct groups {
	char root[32], loader[64], listener[64];
};

static int make_groups(struct groups *g)
{
	char max[32];

	snprintf(g->loader, sizeof(g->loader), "%s/loader", g->root);
	snprintf(g->listener, sizeof(g->listener), "%s/listener", g->root);
	snprintf(max, sizeof(max), "%ld", GROUP_MAX);
	if (write_file(g->root, "cgroup.subtree_control", "+memory"))
		return -ENODEV;
	if (mkdir(g->loader, 0700) || mkdir(g->listener, 0700))
		return -errno;
	return write_file(g->loader, "memory.max", max);
}

static void remove_groups(struct groups *g)
{
	rmdir(g->loader);
	rmdir(g->listener);
	umount(g->root);
	rmdir(g->root);
}

/* An event of this task and its children. Return: the event or -errno. */
static int open_inherited_event(void)
{
	struct perf_event_attr attr = retain_attr(true);

	attr.inherit = 1;
	return open_own_event(&attr);
}

/* Open an event as a task of @g's listener. Return: the event or -errno. */
static int open_in_listener(struct groups *g)
{
	int event, err = write_file(g->listener, "cgroup.procs", "0");

	if (err)
		return err;
	event = open_retain_event(true);
	err = write_file(g->root, "cgroup.procs", "0");
	return err ?: event;
}

static long charged_to(const char *group)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/memory.current", group);
	return read_number(path);
}

/*
 * The line info of all is larger than the limit of the loader's cgroup. Without a
 * listener, nothing of it stays. The programs are long: the verifier of a debug kernel
 * takes a second for each.
 */
TEST_F_TIMEOUT(retain, at_the_listeners_expense, 4 * TEST_S)
{
	struct groups g = { .root = "/tmp/bpf_retain_XXXXXX" };
	long loader = -1, listener = -1, bytes = -1, alone = -1;
	int err, kept = -1, status = -1, status_alone = -1, inherited;

	ASSERT_EQ(0, write_number(BUDGET, 64 << 10));
	ASSERT_NE(NULL, mkdtemp(g.root));
	if (mount("none", g.root, "cgroup2", 0, NULL)) {
		rmdir(g.root);
		SKIP(return, "cgroup2 cannot be mounted: needs CONFIG_CGROUPS");
	}
	err = make_groups(&g);
	if (!err) {
		close_fd(&self->event);
		status_alone = unload_in_group(g.loader);
		alone = charged_to(g.loader);
		unloaded->nr = 0;
		inherited = open_inherited_event();
		self->event = open_in_listener(&g);
		status = unload_in_group(g.loader);
		kept = wait_for_unloaded(self->event);
		bytes = fdinfo_number(self->event, "bpf_retained_bytes");
		loader = charged_to(g.loader);
		listener = charged_to(g.listener);
		close_fd(&inherited);
	}
	remove_groups(&g);
	if (err)
		SKIP(return, "no memory controller: needs CONFIG_MEMCG: %s", strerror(-err));
	EXPECT_EQ(0, status_alone);
	EXPECT_EQ(0, status);
	EXPECT_EQ(GROUP_LOADS, kept);
	EXPECT_GT(GROUP_MAX / 4, loader);
	EXPECT_LT(bytes / 2, listener);
	TH_LOG("%ld bytes retained, %ld charged to the loader's cgroup, %ld to the listener's",
	       bytes, loader, listener);
	TH_LOG("%ld charged to the loader's cgroup when there was no listener", alone);
}

TEST_F_TIMEOUT(retain, for_who_may, TEST_S)
{
	struct info_copy c;
	__u32 id;
	int fd;

	ASSERT_EQ(0, read_and_unload(&c));
	id = c.info.id;
	fd = ended_prog(self->event, id);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, try_as(NOBODY, 0, self->event, id, fd, sees_nothing));
	EXPECT_EQ(0, try_as(NOBODY, CAP(PERFMON), self->event, id, fd, sees_nothing));
	EXPECT_EQ(0, try_as(NOBODY, CAP(PERFMON) | CAP(BPF), self->event, id, fd, sees_all));
	close_fd(&fd);
}

enum { SEES_NO_ADDRESS, SEES_ADDRESSES, FAILED };

/*
 * Compare what a child that becomes @uid with @caps can read of its own program
 * before and after that is unloaded. Return: SEES_... or FAILED and more.
 */
static int sees_alike(int uid, __u64 caps, int event)
{
	struct info_copy lived, ended;
	pid_t pid = fork();
	int fd;

	if (pid)
		return exit_status(pid);
	if (become(uid, caps) || read_and_unload(&lived))
		_exit(FAILED);
	fd = ended_prog(event, lived.info.id);
	if (fd < 0)
		_exit(FAILED + 1);
	if (info_copy__read(&ended, fd, throws) || differ(&lived, &ended))
		_exit(FAILED + 2);
	if (info_copy__has_address(&ended) != !!ended.code[0])
		_exit(FAILED + 3);
	_exit(ended.code[0] ? SEES_ADDRESSES : SEES_NO_ADDRESS);
}

/* The sysctls that hide addresses of loaded programs hide them of unloaded ones. */
TEST_F_TIMEOUT(retain, masked_as_before, TEST_S)
{
	bool profilers_see = read_number(PARANOID) <= 1;
	int kptr, harden;

	for (kptr = 0; kptr <= 2; kptr++) {
		for (harden = 0; harden <= 2; harden++) {
			ASSERT_EQ(0, write_number(KPTR_RESTRICT, kptr));
			ASSERT_EQ(0, write_number(JIT_HARDEN, harden));
			EXPECT_EQ(kptr < 2, sees_alike(0, 0, self->event));
			EXPECT_EQ(kptr < 2, sees_alike(NOBODY, CAP(SYS_ADMIN) | CAP(SYSLOG),
						       self->event));
			EXPECT_EQ(!kptr && profilers_see,
				  sees_alike(NOBODY, CAP(SYS_ADMIN), self->event));
		}
	}
}

/* Root of a user namespace has none of the capabilities. */
TEST_F_TIMEOUT(retain, not_in_a_user_namespace, TEST_S)
{
	struct info_copy c;
	pid_t pid;
	int status;

	ASSERT_EQ(0, read_and_unload(&c));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (unshare(CLONE_NEWUSER))
			_exit(errno == EINVAL ? 77 : 1);
		if (open_retain_event(true) != -EACCES)
			_exit(2);
		_exit(ended_prog(self->event, c.info.id) == -EPERM ? 0 : 3);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP(return, "no user namespaces: needs CONFIG_USER_NS");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* An errno that no other check returns */
#define REFUSED		EKEYREJECTED

/* Return: a program that returns -REFUSED from the LSM hook @hook, or -errno. */
static int load_refusal(const char *hook)
{
	int id = vmlinux_btf_id(hook, BTF_KIND_FUNC);

	return id < 0 ? id : load_return(BPF_PROG_TYPE_LSM, BPF_LSM_MAC, id, -REFUSED);
}

/* Return: why @hook cannot refuse on this machine, or NULL after it was tested. */
static const char *expect_refused(struct __test_metadata *_metadata, const char *hook,
				  int event, __u32 id)
{
	int prog = load_refusal(hook), link, asked, fd;
	__u32 own_id = id_of(prog);

	if (prog == -ENOENT || prog == -EINVAL)
		return "needs CONFIG_BPF_LSM";
	EXPECT_LE(0, prog) TH_LOG("%s: %s", hook, strerror(-prog));
	EXPECT_NE(0, own_id);
	link = bpf_link_create(prog, 0, BPF_LSM_MAC, NULL);
	EXPECT_LE(0, link) TH_LOG("%s: %s", hook, strerror(-link));
	/* This calls both hooks, and so shows whether bpf is an active LSM. */
	asked = bpf_prog_get_fd_by_id(own_id);
	fd = ended_prog(event, id);
	close_fd(&link);
	unload(&prog);
	if (asked != -REFUSED) {
		close_fd(&asked);
		close_fd(&fd);
		return "needs bpf in the boot parameter lsm=, or in CONFIG_LSM";
	}
	EXPECT_EQ(-REFUSED, fd) TH_LOG("%s refuses", hook);
	close_fd(&fd);
	return NULL;
}

/* The same two LSM hooks as for BPF_PROG_GET_FD_BY_ID */
TEST_F_TIMEOUT(retain, unless_an_lsm_refuses, TEST_S)
{
	struct info_copy lived, ended;
	const char *reason;
	int fd;

	ASSERT_EQ(0, read_and_unload(&lived));
	reason = expect_refused(_metadata, "bpf_lsm_bpf", self->event, lived.info.id) ?:
		 expect_refused(_metadata, "bpf_lsm_bpf_prog", self->event, lived.info.id);
	if (reason)
		SKIP(return, "%s", reason);

	fd = ended_prog(self->event, lived.info.id);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, info_copy__read(&ended, fd, true));
	expect_same(_metadata, &lived, &ended);
	close_fd(&fd);
}

TEST_HARNESS_MAIN
