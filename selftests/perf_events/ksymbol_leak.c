// SPDX-License-Identifier: GPL-2.0
/*
 * Which users get kernel addresses in records?
 *
 * For each value of kernel.kptr_restrict and kernel.perf_event_paranoid, a child
 * becomes TEST_UID and opens events on itself, and on CPU 0 if the kernel permits
 * it. The child loads BPF programs and classic BPF filters, and root loads
 * programs and trampolines. kernel.unprivileged_bpf_disabled is set to 0 if
 * possible.
 *
 * At paranoid 2 or more the child may not profile the kernel: no 64-bit word of any record
 * may be a kernel address. Its event on itself must open all the same, as an
 * unprivileged `perf record` sets the same bits. At paranoid 1 or less it may
 * profile the kernel, and must get the symbols of its own programs; at 0 or less
 * also those of root's on CPU 0, and a snapshot, which has the text of all tasks.
 *
 * Like the addresses in samples, this does not depend on kptr_restrict.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "lib/bpf_event.h"
#include "lib/ksym_play.h"
#include "lib/ksym_ring.h"
#include "lib/made.h"
#include "lib/sample_ring.h"
#include "lib/test_env.h"

#define TEST_UID	1000
#if defined(__x86_64__) || defined(__aarch64__)
#define KERNEL_ADDR_MIN	0xffff800000000000ULL
#else
#define KERNEL_ADDR_MIN	0ULL	/* not known */
#endif
#define KERNEL_ADDR_MAX	0xfffffffffffff000ULL

static const char *const sysctls[] = {
	"/proc/sys/kernel/kptr_restrict",
	"/proc/sys/kernel/perf_event_paranoid",
	"/proc/sys/kernel/unprivileged_bpf_disabled",
};

enum { KPTR, PARANOID, NO_UNPRIV_BPF, NR_SYSCTLS };

FIXTURE(leak) {
	long saved[NR_SYSCTLS];
};

FIXTURE_VARIANT(leak) {
	int kptr, paranoid;
};

FIXTURE_VARIANT_ADD(leak, kptr0_paranoid_minus1) { .kptr = 0, .paranoid = -1 };
FIXTURE_VARIANT_ADD(leak, kptr0_paranoid0) { .kptr = 0, .paranoid = 0 };
FIXTURE_VARIANT_ADD(leak, kptr0_paranoid1) { .kptr = 0, .paranoid = 1 };
FIXTURE_VARIANT_ADD(leak, kptr0_paranoid2) { .kptr = 0, .paranoid = 2 };
FIXTURE_VARIANT_ADD(leak, kptr0_paranoid3) { .kptr = 0, .paranoid = 3 };
FIXTURE_VARIANT_ADD(leak, kptr1_paranoid_minus1) { .kptr = 1, .paranoid = -1 };
FIXTURE_VARIANT_ADD(leak, kptr1_paranoid0) { .kptr = 1, .paranoid = 0 };
FIXTURE_VARIANT_ADD(leak, kptr1_paranoid1) { .kptr = 1, .paranoid = 1 };
FIXTURE_VARIANT_ADD(leak, kptr1_paranoid2) { .kptr = 1, .paranoid = 2 };
FIXTURE_VARIANT_ADD(leak, kptr1_paranoid3) { .kptr = 1, .paranoid = 3 };
FIXTURE_VARIANT_ADD(leak, kptr2_paranoid_minus1) { .kptr = 2, .paranoid = -1 };
FIXTURE_VARIANT_ADD(leak, kptr2_paranoid0) { .kptr = 2, .paranoid = 0 };
FIXTURE_VARIANT_ADD(leak, kptr2_paranoid1) { .kptr = 2, .paranoid = 1 };
FIXTURE_VARIANT_ADD(leak, kptr2_paranoid2) { .kptr = 2, .paranoid = 2 };
FIXTURE_VARIANT_ADD(leak, kptr2_paranoid3) { .kptr = 2, .paranoid = 3 };

FIXTURE_SETUP(leak)
{
	const char *reason;
	int i;

	memset(self, 0, sizeof(*self));
	if (!KERNEL_ADDR_MIN)
		SKIP(return, "add the kernel's addresses of this architecture here");
	if (geteuid())
		SKIP(return, "needs root");
	for (i = 0; i < NR_SYSCTLS; i++)
		self->saved[i] = read_number(sysctls[i]);
	write_number(sysctls[KPTR], 0);
	reason = skip_reason();
	if (reason)
		SKIP(return, "%s", reason);
	ASSERT_EQ(0, write_number(sysctls[KPTR], variant->kptr));
	ASSERT_EQ(0, write_number(sysctls[PARANOID], variant->paranoid));
	/* Once it is 1, it stays 1 until the next boot. */
	if (write_number(sysctls[NO_UNPRIV_BPF], 0))
		TH_LOG("unprivileged_bpf_disabled stays %ld",
		       self->saved[NO_UNPRIV_BPF]);
}

FIXTURE_TEARDOWN(leak)
{
	int i;

	for (i = 0; i < NR_SYSCTLS; i++)
		if (self->saved[i] != -ENOENT)
			write_number(sysctls[i], self->saved[i]);
}

/* The child's events, whose records are searched word by word */
struct spy {
	int nr;
	struct ring rings[16];
	long words;
	__u64 seen;		/* the first kernel address, 0 if none */
	__u32 seen_type;
};

static int spy__open(struct spy *spy, struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct ring *ring = &spy->rings[spy->nr];
	int err = ring__open_on(ring, attr, pid, cpu);

	if (err)
		ring__close(ring);
	else
		spy->nr++;
	return err;
}

static void spy__check_word(struct spy *spy, __u32 type, __u64 word)
{
	spy->words++;
	if (word < KERNEL_ADDR_MIN || word >= KERNEL_ADDR_MAX || spy->seen)
		return;
	spy->seen = word;
	spy->seen_type = type;
}

/* The ring buffers have room for all records, so data_tail is not written. */
static void spy__read(struct spy *spy)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct perf_event_header *hdr;
	__u64 pos, head, off;
	char *data;
	int i;

	for (i = 0; i < spy->nr; i++) {
		data = (char *)spy->rings[i].page + page;
		head = __atomic_load_n(&spy->rings[i].page->data_head, __ATOMIC_ACQUIRE);
		for (pos = 0; pos < head; pos += hdr->size) {
			hdr = (void *)(data + pos);
			for (off = sizeof(*hdr); off < hdr->size; off += 8)
				spy__check_word(spy, hdr->type,
						*(__u64 *)(data + pos + off));
		}
	}
}

/* The child's results, in memory that it shares with the test. */
struct verdict {
	int self_err;		/* of an event as perf record opens it */
	int prog_err;
	int task_snapshot_err;	/* of an event with ksymbol_all on itself, on CPU 0 */
	int opened;
	long words;
	__u64 seen;
	__u32 seen_type;
};

/* Open an event as perf record does, then all others that the kernel permits. */
static void child_open(struct spy *spy, struct verdict *v)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.ksymbol = 1,
		.bpf_event = 1,
		.sample_id_all = 1,
	};
	int bits;

	v->self_err = spy__open(spy, &attr, 0, -1);
	for (bits = 0; bits < 8; bits++) {
		attr.exclude_kernel = bits & 1;
		attr.ksymbol_all = !!(bits & 2);
		attr.mmap = attr.ksymbol_all;
		attr.mmap2 = attr.ksymbol_all;
		attr.text_poke = !(bits & 1);
		spy__open(spy, &attr, bits & 4 ? -1 : 0, bits & 4 ? 0 : -1);
	}
	v->opened = spy->nr;
}

/* Ask for a snapshot: it is refused, or its records have no address either. */
static void child_snapshot(struct spy *spy)
{
	struct perf_event_ksym_snapshot snap;
	int i;

	for (i = 0; i < spy->nr; i++) {
		memset(&snap, 0, sizeof(snap));
		ioctl(spy->rings[i].event, PERF_EVENT_IOC_KSYM_SNAPSHOT, &snap);
	}
}

/* A snapshot has the text of all tasks. Return: 0 or -errno. */
static int child_task_snapshot(struct spy *spy)
{
	struct perf_event_ksym_snapshot snap = { .cursor = 0 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.ksymbol_all = 1,
	};
	int err = spy__open(spy, &attr, 0, 0);

	return err ?: event_ioctl(spy->rings[spy->nr - 1].event,
				  PERF_EVENT_IOC_KSYM_SNAPSHOT, (long)&snap);
}

static int child_load(void)
{
	int i, err = 0, fd;

	for (i = 0; i < 3 && err >= 0; i++) {
		fd = load_filter("");
		err = fd;
		close_fd(&fd);
	}
	return err < 0 ? err : 0;
}

/* Write a byte to @said when all is loaded; after a byte from @go read the records. */
static void child_run(struct verdict *v, int said, int go)
{
	struct spy spy = { .nr = 0 };
	struct made filters;
	char c = 0;

	made__init(&filters);
	if (setgroups(0, NULL) || setresgid(TEST_UID, TEST_UID, TEST_UID) ||
	    setresuid(TEST_UID, TEST_UID, TEST_UID))
		_exit(1);
	/* setresuid() clears this, and perf_event_open() on itself needs it. */
	prctl(PR_SET_DUMPABLE, 1);
	child_open(&spy, v);
	v->prog_err = child_load();
	make_socket_filters(&filters);
	unmake_fds(&filters);
	child_snapshot(&spy);
	v->task_snapshot_err = child_task_snapshot(&spy);
	if (write(said, &c, 1) != 1 || read(go, &c, 1) != 1)
		_exit(1);
	spy__read(&spy);
	v->words = spy.words;
	v->seen = spy.seen;
	v->seen_type = spy.seen_type;
	_exit(0);
}

TEST_F_TIMEOUT(leak, uid_1000, TEST_S)
{
	int said[2], go[2], status;
	struct verdict *v;
	struct made made;
	char c = 0;
	pid_t pid;

	v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, v);
	ASSERT_EQ(0, pipe(said));
	ASSERT_EQ(0, pipe(go));
	/* The child's events of a CPU are those of CPU 0. */
	ASSERT_EQ(0, run_on_cpu(0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		child_run(v, said[1], go[0]);
	close(said[1]);
	ASSERT_EQ(1, read(said[0], &c, 1));

	made__init(&made);
	EXPECT_EQ(0, make_progs(&made));
	EXPECT_EQ(0, make_trampolines(&made));
	unmake_fds(&made);
	ASSERT_EQ(1, write(go[1], &c, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	/* At 3, some distributions' kernels refuse all events of such a user. */
	if (variant->paranoid < 3 || v->self_err != -EACCES)
		EXPECT_EQ(0, v->self_err)
			TH_LOG("an event on itself: %s", strerror(-v->self_err));
	EXPECT_EQ(variant->paranoid > 1 ? -EACCES : -ENXIO, v->task_snapshot_err)
		TH_LOG("ksymbol_all, and a snapshot, for an event on itself: %s",
		       strerror(-v->task_snapshot_err));
	if (variant->paranoid > 1) {
		EXPECT_EQ(0, v->seen)
			TH_LOG("a record of type %u has 0x%llx", v->seen_type, v->seen);
	} else if (variant->paranoid < 1 || !v->prog_err) {
		EXPECT_NE(0, v->seen);
	}
	TH_LOG("%d events, %ld words of records%s%s", v->opened, v->words,
	       v->prog_err ? ", no program of its own: " : "",
	       v->prog_err ? strerror(-v->prog_err) : "");
}

/* A user who may sample the kernel gets its symbols. */
TEST_F_TIMEOUT(leak, root, TEST_S)
{
	struct ksym_rings rings;
	struct made made;

	ASSERT_LE(0, ksym_rings__open_all(&rings));
	made__init(&made);
	EXPECT_EQ(0, make_progs(&made));
	unmake_fds(&made);
	ASSERT_EQ(0, ksym_rings__drain(&rings));
	EXPECT_NE(NULL, ksym_rings__find(&rings, "bpf_prog_", 0, false));
	ksym_rings__close(&rings);
}

TEST_HARNESS_MAIN
