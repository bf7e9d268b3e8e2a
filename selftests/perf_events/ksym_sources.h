/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What makes kernel text: one entry of ksym_sources[] each, to make some of it
 * and to let it go again.
 *
 *   name       for the output
 *   pattern    the names of its text, as of fnmatch()
 *   all        it is reported to events of attr.ksymbol_all only
 *   ends       how its text ends: GOES after unmake(), before make() returns
 *              (AT_ONCE), or perhaps never (STAYS), since the kernel keeps some
 *              for the next time
 *   make       0; -errno; or -ENOTSUP with the reason in m->why
 *   unmake     undoes make(), also one that failed
 */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_SOURCES_H
#define SELFTESTS_PERF_EVENTS_KSYM_SOURCES_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "bpf_raw.h"
#include "btf_lookup.h"
#include "ksym_env.h"
#include "tcp_ops.h"

#define MADE_FDS	64
#define NR_SAME		4	/* of most sources at a time */
#define ENOTSUPP_KERNEL	524	/* ENOTSUPP, which is in no uapi header */
#define NR_KPROBES	40	/* enough for more than one page of detours */
#define TRACEFS		"/sys/kernel/tracing"

enum ksym_ends { GOES, AT_ONCE, STAYS };

struct made {
	int want;		/* texts that make() makes, at least */
	int fds[MADE_FDS], nr_fds;
	pid_t child;
	struct tcp_ops ops;
	char dirs[NR_SAME][128];
	char why[384];
};

struct ksym_source {
	const char *name, *pattern;
	bool all;
	enum ksym_ends ends;
	int (*make)(struct made *m);
	void (*unmake)(struct made *m);
};

static inline void made__init(struct made *m)
{
	memset(m, 0, sizeof(*m));
	m->child = -1;
	tcp_ops__init(&m->ops);
}

/* Return: 0, and then @fd belongs to @m; @fd if it is a negative error. */
static inline int made__fd(struct made *m, int fd)
{
	if (fd < 0)
		return fd;
	if (m->nr_fds == MADE_FDS) {
		close(fd);
		return -ENOSPC;
	}
	m->fds[m->nr_fds++] = fd;
	return 0;
}

/* Links come after the programs they hold, and go before them. */
static inline void unmake_fds(struct made *m)
{
	while (m->nr_fds)
		close(m->fds[--m->nr_fds]);
}

#define WHY(m, ...) \
	(snprintf((m)->why, sizeof((m)->why), __VA_ARGS__), -ENOTSUP)

/* eBPF programs */

static inline int make_progs(struct made *m)
{
	int i, err = 0;

	m->want = NR_SAME;
	for (i = 0; i < m->want && !err; i++)
		err = made__fd(m, bpf_raw_load_filter("ksym_prog"));
	return err;
}

static inline int make_subprogs(struct made *m)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_CALL_SUBPROG(2),
		BPF_RAW_CALL_SUBPROG(3),
		BPF_RAW_EXIT(),
		BPF_RAW_MOV_IMM(BPF_REG_0, 1),
		BPF_RAW_EXIT(),
		BPF_RAW_MOV_IMM(BPF_REG_0, 2),
		BPF_RAW_EXIT(),
	};
	int i, err = 0;

	m->want = 2 * NR_SAME;
	for (i = 0; i < NR_SAME && !err; i++)
		err = made__fd(m, bpf_raw_load_named(BPF_PROG_TYPE_SOCKET_FILTER,
						     "ksym_main", insns, 7));
	return err;
}

/* Return: the BTF id of what vmlinux calls @name, or -errno. */
static inline int vmlinux_id(const char *name, __u32 kind)
{
	struct btf_lookup btf;
	int id = btf_lookup__open(&btf, BTF_VMLINUX);

	if (!id)
		id = btf_lookup__find(&btf, name, kind, NULL);
	btf_lookup__close(&btf);
	return id;
}

/* The verifier adds a callback of its own to a program that can throw. */
static inline int make_exception_callback(struct made *m)
{
	int id = vmlinux_id("bpf_throw", BTF_KIND_FUNC);
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_1, 0),
		BPF_RAW_CALL_KFUNC(id),
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};
	int i, err = 0;

	if (id < 0)
		return WHY(m, "no kfunc bpf_throw() in " BTF_VMLINUX);
	m->want = NR_SAME;
	for (i = 0; i < NR_SAME && !err; i++)
		err = made__fd(m, bpf_raw_load_named(BPF_PROG_TYPE_SCHED_CLS,
						     "ksym_throw", insns, 4));
	return err == -ENOTSUPP_KERNEL ?
	       WHY(m, "no BPF exceptions: x86-64 needs CONFIG_UNWINDER_ORC") : err;
}

/* What BPF makes beside programs */

static inline int make_trampolines(struct made *m)
{
	static const char *const funcs[] = { "bpf_fentry_test1", "bpf_fentry_test2" };
	int i, id, err = 0;

	m->want = 2;
	for (i = 0; i < m->want && !err; i++) {
		id = vmlinux_id(funcs[i], BTF_KIND_FUNC);
		if (id < 0)
			return WHY(m, "no function %s: needs CONFIG_NET", funcs[i]);
		err = made__fd(m, bpf_raw_load_return0(BPF_PROG_TYPE_TRACING,
						       BPF_TRACE_FEXIT, id));
		if (!err)
			err = made__fd(m, bpf_raw_link(m->fds[m->nr_fds - 1],
						       BPF_TRACE_FEXIT));
	}
	return err;
}

/* A program that runs more than once is put into the dispatcher of XDP. */
static inline int make_dispatcher(struct made *m)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_0, XDP_PASS),
		BPF_RAW_EXIT(),
	};
	char packet[64] = "";
	union bpf_attr run = {
		.test = {
			.data_in = (unsigned long)packet,
			.data_size_in = sizeof(packet),
			.repeat = 2,
		},
	};
	int err;

	m->want = 1;
	err = made__fd(m, bpf_raw_load_named(BPF_PROG_TYPE_XDP, "ksym_xdp",
					     insns, 2));
	if (err)
		return err;
	run.test.prog_fd = m->fds[0];
	return bpf_raw(BPF_PROG_TEST_RUN, &run);
}

static inline int make_struct_ops(struct made *m)
{
	int err = tcp_ops__create(&m->ops, 0);

	m->want = NR_MEMBERS;
	if (err == -ENOENT)
		return WHY(m, "no struct_ops " OPS ": needs CONFIG_INET");
	return err ?: tcp_ops__register(&m->ops);
}

static inline void unmake_struct_ops(struct made *m)
{
	tcp_ops__close(&m->ops);
}

/* The trampoline lives for as long as the test run. */
static inline int make_dummy_struct_ops(struct made *m)
{
	int id = vmlinux_id("bpf_dummy_ops", BTF_KIND_STRUCT), err;
	__u32 state = 0;
	__u64 args[1] = { (unsigned long)&state };
	union bpf_attr run = {
		.test = {
			.ctx_in = (unsigned long)args,
			.ctx_size_in = sizeof(args),
		},
	};

	if (id < 0)
		return WHY(m, "no struct bpf_dummy_ops: needs CONFIG_NET");
	m->want = 1;
	err = made__fd(m, bpf_raw_load_return0(BPF_PROG_TYPE_STRUCT_OPS, 0, id));
	if (err)
		return err;
	run.test.prog_fd = m->fds[0];
	return bpf_raw(BPF_PROG_TEST_RUN, &run);
}

/* Classic BPF */

static struct sock_filter cbpf_insns[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x7fffffff, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_fprog cbpf_prog = {
	.len = sizeof(cbpf_insns) / sizeof(*cbpf_insns),
	.filter = cbpf_insns,
};

static inline int make_socket_filters(struct made *m)
{
	int i, err = 0;

	m->want = NR_SAME;
	for (i = 0; i < m->want && !err; i++) {
		err = made__fd(m, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		if (!err && setsockopt(m->fds[i], SOL_SOCKET, SO_ATTACH_FILTER,
				       &cbpf_prog, sizeof(cbpf_prog)))
			err = -errno;
	}
	return err;
}

static inline void seccomp_child(int ready)
{
	int i, err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = errno;
	for (i = 0; i < NR_SAME && !err; i++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &cbpf_prog))
			err = errno;
	if (write(ready, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	for (;;)
		pause();
}

static inline int make_seccomp_filters(struct made *m)
{
	int ready[2], err = EIO;

	m->want = NR_SAME;
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	m->child = fork();
	if (!m->child)
		seccomp_child(ready[1]);
	close(ready[1]);
	if (m->child < 0 || read(ready[0], &err, sizeof(err)) != sizeof(err))
		err = EIO;
	close(ready[0]);
	return err == EINVAL ? WHY(m, "no seccomp filters: needs CONFIG_SECCOMP_FILTER")
			     : -err;
}

static inline void unmake_seccomp_filters(struct made *m)
{
	if (m->child <= 0)
		return;
	kill(m->child, SIGKILL);
	waitpid(m->child, NULL, 0);
	m->child = -1;
}

/* ftrace and kprobes */

static inline int write_file(const char *dir, const char *file, const char *text)
{
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Each instance that traces functions has a trampoline of its own. */
static inline int make_ftrace(struct made *m)
{
	int i, err;

	m->want = 2;
	for (i = 0; i < m->want; i++) {
		snprintf(m->dirs[i], sizeof(m->dirs[i]),
			 TRACEFS "/instances/ksym_%d_%d", getpid(), i);
		if (mkdir(m->dirs[i], 0700)) {
			m->dirs[i][0] = '\0';
			return errno == ENOENT ? WHY(m, "no " TRACEFS "/instances") :
						 -errno;
		}
		err = write_file(m->dirs[i], "set_ftrace_filter", "do_exit");
		err = err ?: write_file(m->dirs[i], "current_tracer", "function");
		if (err == -ENOENT || err == -EINVAL)
			return WHY(m, "no function tracer: needs CONFIG_FUNCTION_TRACER");
		if (err)
			return err;
	}
	return 0;
}

static inline void unmake_ftrace(struct made *m)
{
	int i;

	for (i = 0; i < NR_SAME; i++) {
		if (!m->dirs[i][0])
			continue;
		write_file(m->dirs[i], "current_tracer", "nop");
		rmdir(m->dirs[i]);
		m->dirs[i][0] = '\0';
	}
}

/* Return: an event on byte @off of @func, which never counts, or -errno. */
static inline int kprobe_open(long pmu, const char *func, int off)
{
	struct perf_event_attr attr = {
		.type = pmu,
		.size = sizeof(attr),
		.kprobe_func = (unsigned long)func,
		.probe_offset = off,
		.disabled = 1,
	};
	int fd = syscall(__NR_perf_event_open, &attr, getpid(), -1, -1,
			 PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Behind what ftrace owns of a function, at the first instruction there. */
static inline int kprobe_open_inside(long pmu, const char *func)
{
	int off, fd = -ENOENT;

	for (off = 9; off >= 5 && fd < 0; off -= 4)
		fd = kprobe_open(pmu, func, off);
	return fd;
}

static inline int make_kprobes(struct made *m)
{
	char line[256], name[128];
	long pmu = read_number(KPROBE_PMU);
	FILE *f;
	int fd;

	m->want = 1;
	if (pmu < 0)
		return WHY(m, "no " KPROBE_PMU ": needs CONFIG_KPROBE_EVENTS");
	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return -errno;
	while (m->nr_fds < NR_KPROBES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x T %127s", name) != 1 ||
		    strncmp(name, "__x64_sys_", 10))
			continue;
		fd = kprobe_open_inside(pmu, name);
		if (fd >= 0)
			made__fd(m, fd);
	}
	fclose(f);
	return m->nr_fds < NR_KPROBES ?
	       WHY(m, "%d kprobes inside of functions could be set", m->nr_fds) : 0;
}

/* Modules */

/*
 * Load @name, which @config builds as @dir/@name.ko. KSYMBOL_MODULES in the
 * environment is a directory with the modules, where they are not installed.
 */
static inline int load_module(struct made *m, const char *dir, const char *name,
			      const char *config, const char *args)
{
	const char *all = getenv("KSYMBOL_MODULES");
	char path[256];
	struct utsname uts;
	int fd, err = 0;

	if (access("/proc/modules", F_OK))
		return WHY(m, "no modules: needs CONFIG_MODULES");
	uname(&uts);
	if (all)
		snprintf(path, sizeof(path), "%s/%s.ko", all, name);
	else
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/%s.ko",
			 uts.release, dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return WHY(m, "no %s: needs %s=m, or KSYMBOL_MODULES=directory with it",
			   path, config);
	if (syscall(__NR_finit_module, fd, args, 0))
		err = -errno;
	close(fd);
	return err == -EEXIST ? WHY(m, "the module %s is loaded already", name) :
	       err;
}

static inline void unload_module(const char *name)
{
	syscall(__NR_delete_module, name, O_NONBLOCK);
}

/* Its init text may be gone again when make() returns: one range is left. */
static inline int make_module(struct made *m)
{
	m->want = 1;
	return load_module(m, "kernel/drivers/net", "dummy", "CONFIG_DUMMY",
			   "numdummies=0");
}

static inline void unmake_module(struct made *m)
{
	unload_module("dummy");
}

static inline void read_vulnerability(const char *name, char *buf, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/vulnerabilities/%s", name);
	snprintf(buf, size, "no %s", path);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(buf, size, f))
		buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

/*
 * The thunks of vmlinux are made at boot, others with modules; none where
 * retpolines take their place.
 */
static inline int make_its(struct made *m)
{
	char its[128], v2[128];

	read_vulnerability("indirect_target_selection", its, sizeof(its));
	read_vulnerability("spectre_v2", v2, sizeof(v2));
	m->want = 1;
	if (!strstr(its, "Aligned branch"))
		return WHY(m, "no ITS thunks (%s): boot with indirect_target_selection=force",
			   its);
	if (strstr(v2, "etpoline"))
		return WHY(m, "no ITS thunks: retpolines are in their place");
	return 0;
}

static inline void unmake_nothing(struct made *m)
{
}

static const struct ksym_source ksym_sources[] = {
	{ "BPF programs", "bpf_prog_*_ksym_prog", false, GOES,
	  make_progs, unmake_fds },
	{ "BPF subprograms", "bpf_prog_*_F", false, GOES,
	  make_subprogs, unmake_fds },
	{ "BPF exception callbacks", "bpf_prog_*_F", false, GOES,
	  make_exception_callback, unmake_fds },
	{ "BPF trampolines", "bpf_trampoline_*", false, GOES,
	  make_trampolines, unmake_fds },
	{ "BPF dispatcher", "bpf_dispatcher_*", false, STAYS,
	  make_dispatcher, unmake_fds },
	{ "struct_ops", "bpf__" OPS "_*", false, GOES,
	  make_struct_ops, unmake_struct_ops },
	{ "dummy struct_ops", "bpf__bpf_dummy_ops_*", false, AT_ONCE,
	  make_dummy_struct_ops, unmake_fds },
	{ "socket filters", "cbpf_prog_*", true, GOES,
	  make_socket_filters, unmake_fds },
	{ "seccomp filters", "cbpf_prog_*", true, GOES,
	  make_seccomp_filters, unmake_seccomp_filters },
	{ "ftrace trampolines", "ftrace_trampoline", false, GOES,
	  make_ftrace, unmake_ftrace },
	{ "kprobe pages", "kprobe_insn_page", false, STAYS,
	  make_kprobes, unmake_fds },
	{ "optprobe pages", "kprobe_optinsn_page", false, STAYS,
	  make_kprobes, unmake_fds },
	{ "modules", "dummy", true, GOES,
	  make_module, unmake_module },
	{ "ITS thunks", "its_thunks", true, STAYS,
	  make_its, unmake_nothing },
};

#define NR_SOURCES ((int)(sizeof(ksym_sources) / sizeof(*ksym_sources)))

#endif
