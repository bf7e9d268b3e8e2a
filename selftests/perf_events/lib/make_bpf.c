// SPDX-License-Identifier: GPL-2.0
/* Create text that has BPF symbols, see made.h */
#include <errno.h>

#include "bpf_load.h"
#include "made.h"

int make_progs(struct made *m)
{
	int i, err = 0;

	m->want = NR_SAME;
	for (i = 0; i < m->want && !err; i++)
		err = made__fd(m, load_filter("ksym_prog"));
	return err;
}

int make_subprogs(struct made *m)
{
	const struct bpf_insn insns[] = {
		BPF_CALL_REL(2),
		BPF_CALL_REL(3),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 2),
		BPF_EXIT_INSN(),
	};
	int i, err = 0;

	m->want = 2 * NR_SAME;
	for (i = 0; i < NR_SAME && !err; i++)
		err = made__fd(m, bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "ksym_main", "GPL",
						insns, ARRAY_SIZE(insns), NULL));
	return err;
}

int make_exception_callback(struct made *m)
{
	int id = vmlinux_btf_id("bpf_throw", BTF_KIND_FUNC);
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_1, 0),
		BPF_CALL_KFUNC(id),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int i, err = 0;

	if (id < 0)
		return made__unsupported(m, "no kfunc bpf_throw() in the kernel's BTF");
	m->want = NR_SAME;
	for (i = 0; i < NR_SAME && !err; i++)
		err = made__fd(m, bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "ksym_throw", "GPL",
						insns, ARRAY_SIZE(insns), NULL));
	return err == -ENOTSUPP_KERNEL ? made__unsupported(m,
	       "no BPF exceptions: x86-64 needs CONFIG_UNWINDER_ORC") : err;
}

int make_trampolines(struct made *m)
{
	static const char *const funcs[] = { "bpf_fentry_test1", "bpf_fentry_test2" };
	int i, id, err = 0;

	m->want = 2;
	for (i = 0; i < m->want && !err; i++) {
		id = vmlinux_btf_id(funcs[i], BTF_KIND_FUNC);
		if (id < 0)
			return made__unsupported(m, "no function %s: needs CONFIG_NET",
						 funcs[i]);
		err = made__fd(m, load_return(BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT, id, 0));
		err = err ?: made__fd(m, bpf_link_create(m->fds[m->nr_fds - 1], 0,
							 BPF_TRACE_FEXIT, NULL));
	}
	return err;
}

int make_dispatcher(struct made *m)
{
	int err;

	m->want = 1;
	err = made__fd(m, load_return(BPF_PROG_TYPE_XDP, 0, 0, XDP_PASS));
	return err ?: run_on_packet(m->fds[0], 2);
}

int make_struct_ops(struct made *m)
{
	int err = tcp_ops__create(&m->ops, 0);

	m->want = NR_MEMBERS;
	if (err == -ENOENT)
		return made__unsupported(m, "no struct_ops " OPS ": needs CONFIG_INET");
	return err ?: tcp_ops__register(&m->ops);
}

void unmake_struct_ops(struct made *m)
{
	tcp_ops__close(&m->ops);
}

int make_dummy_struct_ops(struct made *m)
{
	int id = vmlinux_btf_id("bpf_dummy_ops", BTF_KIND_STRUCT), err;
	__u32 state = 0;
	__u64 args[1] = { (unsigned long)&state };

	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (id < 0)
		return made__unsupported(m, "no struct bpf_dummy_ops: needs CONFIG_NET");
	m->want = 1;
	err = made__fd(m, load_return(BPF_PROG_TYPE_STRUCT_OPS, 0, id, 0));
	return err ?: bpf_prog_test_run_opts(m->fds[0], &opts);
}
