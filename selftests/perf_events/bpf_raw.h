/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few bpf() calls the tests of this directory make, without libbpf: programs
 * of two instructions, links, maps, and a program that reads kernel text.
 * A function that returns int returns an fd or 0, or -errno.
 */
#ifndef SELFTESTS_PERF_EVENTS_BPF_RAW_H
#define SELFTESTS_PERF_EVENTS_BPF_RAW_H

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sys/syscall.h>

#define BPF_RAW_INSN(CODE, DST, SRC, OFF, IMM)				\
	((struct bpf_insn){ .code = CODE, .dst_reg = DST, .src_reg = SRC,	\
			    .off = OFF, .imm = IMM })
#define BPF_RAW_MOV_IMM(DST, IMM)					\
	BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_K, DST, 0, 0, IMM)
/* A 64-bit immediate takes two instructions, _LO and then _HI. */
#define BPF_RAW_LD_IMM64_LO(DST, SRC, IMM)				\
	BPF_RAW_INSN(BPF_LD | BPF_DW | BPF_IMM, DST, SRC, 0, (__u32)(IMM))
#define BPF_RAW_LD_IMM64_HI(IMM)					\
	BPF_RAW_INSN(0, 0, 0, 0, (__u64)(IMM) >> 32)
#define BPF_RAW_CALL(HELPER)						\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, HELPER)
#define BPF_RAW_MOV_REG(DST, SRC)					\
	BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_X, DST, SRC, 0, 0)
#define BPF_RAW_CALL_SUBPROG(OFF)					\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, OFF)
#define BPF_RAW_CALL_KFUNC(BTF_ID)					\
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, BTF_ID)
#define BPF_RAW_EXIT()							\
	BPF_RAW_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static inline int bpf_raw(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int ret = syscall(__NR_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* @attr: the caller's prog_type and what belongs to it. */
static inline int bpf_raw_load(union bpf_attr *attr,
			       const struct bpf_insn *insns, __u32 cnt)
{
	attr->insns = (unsigned long)insns;
	attr->insn_cnt = cnt;
	attr->license = (unsigned long)"GPL";
	return bpf_raw(BPF_PROG_LOAD, attr);
}

/* "return @val" for the BTF type @btf_id of vmlinux, a function or a struct. */
static inline int bpf_raw_load_return(enum bpf_prog_type type, __u32 attach,
				      __u32 btf_id, int val)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_0, val),
		BPF_RAW_EXIT(),
	};
	union bpf_attr attr = {
		.prog_type = type,
		.expected_attach_type = attach,
		.attach_btf_id = btf_id,
	};

	return bpf_raw_load(&attr, insns, 2);
}

static inline int bpf_raw_load_return0(enum bpf_prog_type type, __u32 attach,
				       __u32 btf_id)
{
	return bpf_raw_load_return(type, attach, btf_id, 0);
}

/* As bpf_raw_load(), for a program of @type that is called @name. */
static inline int bpf_raw_load_named(enum bpf_prog_type type, const char *name,
				     const struct bpf_insn *insns, __u32 cnt)
{
	union bpf_attr attr = { .prog_type = type };

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return bpf_raw_load(&attr, insns, cnt);
}

/* A socket filter, "return 0", that is called @name. */
static inline int bpf_raw_load_filter(const char *name)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};

	return bpf_raw_load_named(BPF_PROG_TYPE_SOCKET_FILTER, name, insns, 2);
}

static inline int bpf_raw_link(int fd, __u32 attach)
{
	union bpf_attr attr = {
		.link_create = { .prog_fd = fd, .attach_type = attach },
	};

	return bpf_raw(BPF_LINK_CREATE, &attr);
}

static inline int bpf_raw_test_run(int prog_fd)
{
	union bpf_attr attr = { .test = { .prog_fd = prog_fd } };

	return bpf_raw(BPF_PROG_TEST_RUN, &attr) ?: (int)attr.test.retval;
}

/* BTF of one int: struct_ops maps ask for BTF, though not for what is in it. */
static inline int bpf_raw_btf(void)
{
	const struct {
		struct btf_header hdr;
		struct btf_type type;
		__u32 bits;
		char strs[8];
	} btf = {
		.hdr = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(btf.hdr),
			.type_len = sizeof(btf.type) + sizeof(btf.bits),
			.str_off = sizeof(btf.type) + sizeof(btf.bits),
			.str_len = sizeof(btf.strs),
		},
		.type = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.bits = 32,
		.strs = "\0int",
	};
	union bpf_attr attr = {
		.btf = (unsigned long)&btf,
		.btf_size = sizeof(btf),
	};

	return bpf_raw(BPF_BTF_LOAD, &attr);
}

static inline int bpf_raw_map_update(int fd, const void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = fd,
		.key = (unsigned long)&key,
		.value = (unsigned long)value,
	};

	return bpf_raw(BPF_MAP_UPDATE_ELEM, &attr);
}

static inline int bpf_raw_map_lookup(int fd, void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = fd,
		.key = (unsigned long)&key,
		.value = (unsigned long)value,
	};

	return bpf_raw(BPF_MAP_LOOKUP_ELEM, &attr);
}

static inline int bpf_raw_map_delete(int fd)
{
	__u32 key = 0;
	union bpf_attr attr = { .map_fd = fd, .key = (unsigned long)&key };

	return bpf_raw(BPF_MAP_DELETE_ELEM, &attr);
}

/*
 * Copy @len bytes of kernel memory at @addr to @buf. A program does it because
 * /proc/kcore is not there in every configuration.
 */
static inline int bpf_raw_read_kernel(__u64 addr, void *buf, __u32 len)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(__u32),
		.value_size = len,
		.max_entries = 1,
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT };
	int map_fd, prog_fd, err;

	map_fd = bpf_raw(BPF_MAP_CREATE, &map);
	if (map_fd < 0)
		return map_fd;

	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map_fd),
		BPF_RAW_LD_IMM64_HI(0),		/* offset in the value */
		BPF_RAW_MOV_IMM(BPF_REG_2, len),
		BPF_RAW_LD_IMM64_LO(BPF_REG_3, 0, addr),
		BPF_RAW_LD_IMM64_HI(addr),
		BPF_RAW_CALL(BPF_FUNC_probe_read_kernel),
		BPF_RAW_EXIT(),
	};

	prog_fd = bpf_raw_load(&attr, insns, sizeof(insns) / sizeof(*insns));
	err = prog_fd;
	if (prog_fd >= 0) {
		err = bpf_raw_test_run(prog_fd);
		close(prog_fd);
	}
	if (!err)
		err = bpf_raw_map_lookup(map_fd, buf);
	close(map_fd);
	return err;
}

/*
 * An array map of one value, read-only and frozen if @text is to be its value,
 * as format strings have to be.
 */
static inline int bpf_raw_value_map(__u32 size, const char *text)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(__u32),
		.value_size = size,
		.max_entries = 1,
		.map_flags = text ? BPF_F_RDONLY_PROG : 0,
	};
	union bpf_attr freeze = {};
	int fd = bpf_raw(BPF_MAP_CREATE, &map), err;

	if (fd < 0 || !text)
		return fd;
	err = bpf_raw_map_update(fd, text);
	freeze.map_fd = fd;
	err = err ?: bpf_raw(BPF_MAP_FREEZE, &freeze);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * A program of @type that prints @addr as @fmt_map's value says, "%ps" for
 * example, to @out_map's value, of @size bytes.
 */
static inline int bpf_raw_load_snprintf(enum bpf_prog_type type, int fmt_map,
					int out_map, __u32 size, __u64 addr)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, 0, addr),
		BPF_RAW_LD_IMM64_HI(addr),
		BPF_RAW_INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_1,
			     -8, 0),
		BPF_RAW_LD_IMM64_LO(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, out_map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_IMM(BPF_REG_2, size),
		BPF_RAW_LD_IMM64_LO(BPF_REG_3, BPF_PSEUDO_MAP_VALUE, fmt_map),
		BPF_RAW_LD_IMM64_HI(0),
		BPF_RAW_MOV_REG(BPF_REG_4, BPF_REG_10),
		BPF_RAW_INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8),
		BPF_RAW_MOV_IMM(BPF_REG_5, 8),
		BPF_RAW_CALL(BPF_FUNC_snprintf),
		BPF_RAW_MOV_IMM(BPF_REG_0, 0),
		BPF_RAW_EXIT(),
	};

	return bpf_raw_load_named(type, "snprintf", insns,
				  sizeof(insns) / sizeof(*insns));
}

/* What the kernel's %pS makes of @addr: "name+0x1/0x20". Return: 0 or -errno. */
static inline int bpf_raw_symbolize(__u64 addr, char *buf, __u32 size)
{
	int fmt, out, prog = -1, err;

	fmt = bpf_raw_value_map(4, "%pS");
	out = bpf_raw_value_map(size, NULL);
	err = fmt < 0 ? fmt : out < 0 ? out : 0;
	if (!err) {
		prog = bpf_raw_load_snprintf(BPF_PROG_TYPE_RAW_TRACEPOINT, fmt,
					     out, size, addr);
		err = prog < 0 ? prog : bpf_raw_test_run(prog);
	}
	if (!err)
		err = bpf_raw_map_lookup(out, buf);
	close_fd(&prog);
	close_fd(&out);
	close_fd(&fmt);
	return err;
}

#endif
