/* tests/network/relay.c - emulates the rate and delay of a network on kernels without netem: a
 * switch between hosts that are namespaces of one machine. Started by hosts.py.
 *
 *     relay RATE DELAY        bits per second; seconds
 *
 * The kernel puts every forwarded packet into queue 0 of netfilter and waits for a verdict. This
 * program gives the verdict at the time at which the emulated network would deliver the packet. A
 * host has a link of RATE in each direction. Its packets leave one after another, share the
 * receiver's link with those of other hosts, and take DELAY on the way. No packet is lost: a queue
 * grows to as much as TCP has in flight. A large packet, which the kernel would split for a real
 * link, counts as one packet of that many bytes. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 256, WAITING = 1 << 16, HEADER = 20, FRAME = 14, BATCH = 64 };
enum { ATTRIBUTE = sizeof(struct nlattr) }; /* before its value */
#define EARLY 3e-6                          /* packets due within this time do not wait */

static struct {
    int fd;
    double rate, delay; /* bytes in a second; seconds */
    /* when a host's link is free, to the switch and from it; index: the address's last byte */
    double out_free[HOSTS], in_free[HOSTS];
    uint64_t first,
        last; /* packets [first, last) wait, at index modulo WAITING, in order of time */
    struct packet {
        uint32_t id, to;
        double at, takes;
        bool arrives; /* at time `at` it arrives; false: it leaves the sender's link */
    } waiting[WAITING];
} net;

static void stop(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- netlink --------------------------------------------------------------------------------- */

typedef struct message {
    struct nlmsghdr head;
    struct nfgenmsg family;
    char rest[64];
} message;

static message begin(int type, int flags) {
    message m = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof m.family),
                            .nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type),
                            .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) },
                  .family = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0 } };
    return m;
}

static void add(message *m, int type, const void *value, size_t bytes) {
    struct nlattr a = { .nla_len = (uint16_t)(sizeof(struct nlattr) + bytes),
                        .nla_type = (uint16_t)type };
    char *to = (char *)m + m->head.nlmsg_len;
    memcpy(to, &a, sizeof a), memcpy(to + ATTRIBUTE, value, bytes);
    m->head.nlmsg_len += (uint32_t)NLA_ALIGN(a.nla_len);
}

static void ask(const message *m) {
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    if (send(net.fd, m, m->head.nlmsg_len, 0) < 0) stop("netlink");
    if (recv(net.fd, &answer, sizeof answer, 0) < 0) stop("netlink");
    const struct nlmsgerr *e = NLMSG_DATA(&answer.head);
    if (answer.head.nlmsg_type == NLMSG_ERROR && e->error) errno = -e->error, stop("queue");
}

static void bind_queue(void) {
    int room = 64 << 20, yes = 1;
    struct sockaddr_nl any = { .nl_family = AF_NETLINK };
    struct nfqnl_msg_config_cmd bind_it = { .command = NFQNL_CFG_CMD_BIND };
    struct nfqnl_msg_config_params headers = { htonl(HEADER), NFQNL_COPY_PACKET };
    uint32_t whole = htonl(NFQA_CFG_F_GSO), most = htonl(WAITING);
    net.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (net.fd < 0 || bind(net.fd, (struct sockaddr *)&any, sizeof any) != 0) stop("netlink");
    setsockopt(net.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(net.fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &yes, sizeof yes);
    message m = begin(NFQNL_MSG_CONFIG, NLM_F_ACK);
    add(&m, NFQA_CFG_CMD, &bind_it, sizeof bind_it);
    ask(&m);
    m = begin(NFQNL_MSG_CONFIG, NLM_F_ACK);
    add(&m, NFQA_CFG_PARAMS, &headers, sizeof headers);
    add(&m, NFQA_CFG_MASK, &whole, sizeof whole), add(&m, NFQA_CFG_FLAGS, &whole, sizeof whole);
    add(&m, NFQA_CFG_QUEUE_MAXLEN, &most, sizeof most);
    ask(&m);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Inserts p into the packets that wait, behind those of the same time. */
static void wait_for(struct packet p) {
    uint64_t i = net.last++;
    if (net.last - net.first > WAITING) errno = ENOBUFS, stop("too many packets");
    for (; i > net.first && net.waiting[(i - 1) % WAITING].at > p.at; i--)
        net.waiting[i % WAITING] = net.waiting[(i - 1) % WAITING];
    net.waiting[i % WAITING] = p;
}

/* A packet of the sender leaves its link after the packets that came before. */
static void packet_came(uint32_t id, const unsigned char *ip, double time) {
    double takes = ((ip[2] << 8 | ip[3]) + FRAME) / net.rate, *out = &net.out_free[ip[15]];
    *out = (*out > time ? *out : time) + takes;
    wait_for((struct packet){ id, ip[19], *out, takes, false });
}

/* A packet that has left the sender's link enters the receiver's link after the packets of other
 * hosts. Without such packets it takes no more time, because it passes both links, which have the
 * same rate, at once. */
static void packet_left(struct packet p) {
    double *in = &net.in_free[p.to];
    *in = *in + p.takes > p.at ? *in + p.takes : p.at;
    p.at = *in + net.delay, p.arrives = true;
    wait_for(p);
}

static void read_message(const struct nlmsghdr *head, double time) {
    const char *at = (const char *)NLMSG_DATA(head) + NLMSG_ALIGN(sizeof(struct nfgenmsg)),
               *end = (const char *)head + head->nlmsg_len;
    uint32_t id = 0;
    if (head->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET)) return;
    while (at + ATTRIBUTE <= end) {
        struct nlattr a;
        memcpy(&a, at, sizeof a);
        if (a.nla_len < ATTRIBUTE) return;
        if (a.nla_type == NFQA_PACKET_HDR) memcpy(&id, at + ATTRIBUTE, sizeof id);
        if (a.nla_type == NFQA_PAYLOAD && a.nla_len >= ATTRIBUTE + 20)
            packet_came(id, (const unsigned char *)at + ATTRIBUTE, time);
        at += NLA_ALIGN(a.nla_len);
    }
}

static void receive(void) {
    union {
        struct nlmsghdr head;
        char bytes[8192];
    } in;
    for (;;) {
        ssize_t n = recv(net.fd, &in, sizeof in, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) stop("netlink");
        size_t left = (size_t)n;
        double time = now();
        for (struct nlmsghdr *h = &in.head; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
            read_message(h, time);
    }
}

/* Gives the verdict on up to BATCH packets that arrive by now, and puts packets that have left the
 * sender's link into the receiver's. */
static void let_go(void) {
    static char out[BATCH * sizeof(message)];
    size_t bytes = 0;
    double time = now() + EARLY;
    for (int n = 0; n < BATCH && net.first < net.last; net.first++) {
        const struct packet p = net.waiting[net.first % WAITING];
        if (p.at > time) break;
        if (!p.arrives) {
            net.first++, packet_left(p), net.first--;
            continue;
        }
        n++;
        struct nfqnl_msg_verdict_hdr accept = { htonl(NF_ACCEPT), p.id };
        message m = begin(NFQNL_MSG_VERDICT, 0);
        add(&m, NFQA_VERDICT_HDR, &accept, sizeof accept);
        memcpy(out + bytes, &m, m.head.nlmsg_len);
        bytes += NLMSG_ALIGN(m.head.nlmsg_len);
    }
    if (bytes && send(net.fd, out, bytes, 0) < 0) stop("netlink");
}

static void sleep_until_next(void) {
    struct pollfd p = { .fd = net.fd, .events = POLLIN };
    struct timespec t = { 0 };
    bool some = net.first < net.last;
    if (some) {
        double left = net.waiting[net.first % WAITING].at - now() - EARLY;
        if (left <= 0) return;
        t.tv_sec = (time_t)left, t.tv_nsec = (long)(1e9 * (left - (double)t.tv_sec));
    }
    ppoll(&p, 1, some ? &t : NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: relay RATE DELAY\n"), 2;
    net.rate = atof(argv[1]) / 8, net.delay = atof(argv[2]);
    if (!(net.rate > 0) || net.delay < 0) return fprintf(stderr, "relay: no such network\n"), 2;
    /* Gets a real-time priority, because a real network does not wait for programs that compute. */
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 10 }) != 0)
        fprintf(stderr, "relay: not a real-time program: %s\n", strerror(errno));
    bind_queue();
    puts("ready"), fflush(stdout);
    for (;;) receive(), let_go(), sleep_until_next();
}
