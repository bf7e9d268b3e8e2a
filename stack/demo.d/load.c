// SPDX-License-Identifier: GPL-2.0
/*
 * Load the demo's flow meter, attach it to the loopback device, and send UDP
 * packets through it from several sockets until the time is over.
 *
 *	load OBJECT SECONDS
 *
 * It fails when no packet reached the BPF program: a profile of a workload
 * that did not run is worse than none.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "flow.h"

#define SOCKETS		8
#define BURST		64
#define PAYLOAD_MAX	1024

struct traffic {
	int receiver;
	int senders[SOCKETS];
	char payload[PAYLOAD_MAX];
};

static int fail(const char *what, const char *object)
{
	fprintf(stderr, "load: cannot %s %s: %s\n", what, object,
		strerror(errno));
	return -errno;
}

/* Each program is attached where its section name says, XDP and tc to lo. */
static struct bpf_link *attach(struct bpf_program *prog, int ifindex)
{
	switch (bpf_program__type(prog)) {
	case BPF_PROG_TYPE_XDP:
		return bpf_program__attach_xdp(prog, ifindex);
	case BPF_PROG_TYPE_SCHED_CLS:
		return bpf_program__attach_tcx(prog, ifindex, NULL);
	default:
		return bpf_program__attach(prog);
	}
}

static int attach_all(struct bpf_object *obj)
{
	int ifindex = if_nametoindex("lo");
	struct bpf_program *prog;

	if (!ifindex)
		return fail("find the device", "lo");
	bpf_object__for_each_program(prog, obj) {
		if (bpf_program__autoload(prog) && !attach(prog, ifindex))
			return fail("attach the program",
				    bpf_program__name(prog));
	}
	return 0;
}

static int udp_socket(int receive)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(FLOW_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return fail("open a socket for", "UDP");
	err = receive ? bind(fd, (struct sockaddr *)&addr, sizeof(addr)) :
			connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (!err)
		return fd;
	err = fail(receive ? "bind to" : "connect to", "127.0.0.1");
	close(fd);
	return err;
}

static int open_traffic(struct traffic *traffic)
{
	int i;

	for (i = 0; i < PAYLOAD_MAX; i++)
		traffic->payload[i] = i % 7 ? 'a' + i % 26 : ' ';
	traffic->receiver = udp_socket(1);
	if (traffic->receiver < 0)
		return traffic->receiver;
	for (i = 0; i < SOCKETS; i++) {
		traffic->senders[i] = udp_socket(0);
		if (traffic->senders[i] < 0)
			return traffic->senders[i];
	}
	return 0;
}

/* Sizes from 64 bytes to a kilobyte, so that every class of flow occurs. */
static void send_burst(struct traffic *traffic, unsigned int round)
{
	char sink[PAYLOAD_MAX];
	int i;

	for (i = 0; i < BURST; i++) {
		size_t size = 64 + (round + i) * 96 % (PAYLOAD_MAX - 64);

		if (send(traffic->senders[i % SOCKETS], traffic->payload, size,
			 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
			fail("send to", "127.0.0.1");
	}
	while (recv(traffic->receiver, sink, sizeof(sink), 0) > 0)
		;
}

static void send_until(struct traffic *traffic, time_t end)
{
	unsigned int round = 0;

	while (time(NULL) < end)
		send_burst(traffic, round++);
}

/* Two processes, so that no CPU of the guest is idle in the profile. */
static int run_traffic(struct traffic *traffic, int seconds)
{
	time_t end = time(NULL) + seconds;
	pid_t child = fork();

	if (child < 0)
		return fail("start", "the second sender");
	send_until(traffic, end);
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return 0;
}

/* 0 when packets of every sender were seen and measured. */
static int print_flows(struct bpf_object *obj)
{
	int fd = bpf_object__find_map_fd_by_name(obj, "flows");
	__u64 packets = 0, bytes = 0, limited = 0;
	__u32 key, *previous = NULL, seen = 0;
	struct flow flow;

	while (!bpf_map_get_next_key(fd, previous, &key)) {
		previous = &key;
		if (bpf_map_lookup_elem(fd, &key, &flow))
			continue;
		seen++;
		packets += flow.packets;
		bytes += flow.bytes;
		limited += flow.classes[FLOW_LIMITED];
	}
	printf("%u flows, %llu packets, %llu bytes, %llu packets over the limit\n",
	       seen, packets, bytes, limited);
	if (seen == SOCKETS && packets)
		return 0;
	fprintf(stderr, "load: %u of %u flows reached the XDP program on lo: is it attached?\n",
		seen, SOCKETS);
	return -ENODATA;
}

static int run(struct bpf_object *obj, int seconds)
{
	struct traffic traffic;
	int err;

	err = attach_all(obj);
	if (!err)
		err = open_traffic(&traffic);
	if (err)
		return err;
	err = run_traffic(&traffic, seconds);
	return err ? err : print_flows(obj);
}

/*
 * All programs, or all but those of fentry and fexit, which some kernels
 * refuse: what XDP and tc do is worth a profile too.
 */
static struct bpf_object *load(const char *path)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	int without;

	for (without = 0; without < 2; without++) {
		obj = bpf_object__open(path);
		if (!obj) {
			fail("open", path);
			return NULL;
		}
		bpf_object__for_each_program(prog, obj) {
			if (bpf_program__type(prog) == BPF_PROG_TYPE_TRACING)
				bpf_program__set_autoload(prog, !without);
		}
		if (!bpf_object__load(obj))
			return obj;
		fail(without ? "load the programs of" :
		     "load all programs (trying without fentry, fexit) of", path);
		bpf_object__close(obj);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	int err;

	if (argc != 3 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: load OBJECT SECONDS\n");
		return 2;
	}
	obj = load(argv[1]);
	if (!obj)
		return 1;
	/* Links and sockets live as long as the process. */
	err = run(obj, atoi(argv[2]));
	bpf_object__close(obj);
	return err ? 1 : 0;
}
