/* Pages, faults and requests of io_uring over rings made by hand: their paths, their arguments,
 * what has not ended. */
#include "record/bpf/peer.h"
#include "record/decode/inodes.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put_open(struct kbench *k, uint64_t ts, const char *path, int fd)
{
    struct sv_wire_call c = kbench_call(SYS_openat, ts, ts + 5, AT_FDCWD, fd);
    kbench_put(k, 0, &c, sizeof c, path, strlen(path) + 1, 0);
}

static void put_page(struct kbench *k, unsigned kind, uint64_t ts, uint64_t inode, uint64_t offset,
                     int fd)
{
    struct sv_wire_cache c = {.head = {.kind = (uint16_t)kind, .tgid = 10, .tid = 11, .ts_ns = ts},
                              .inode = inode,
                              .offset = offset,
                              .device = 1 << 20,
                              .bytes = 4096,
                              .fd = fd};
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
}

static struct sv_wire_transfer transfer(uint64_t start, uint64_t end, unsigned is_sent, int ret)
{
    return (struct sv_wire_transfer){
        .head = {.kind = SV_WIRE_TRANSFER, .tgid = 10, .tid = 11, .what = is_sent, .ts_ns = end},
        .start_ns = start,
        .ret = ret,
        .family = AF_INET,
        .peer_port = 443,
        .port = 50000,
        .peer = {htonl(0x0a000007)}};
}

TEST(transfers_have_their_peer)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_transfer t[] = {
        transfer(10, 20, 1, 100), transfer(30, 70, 0, 5000), transfer(80, 81, 0, -104),
        transfer(90, 91, 0, 1),   transfer(100, 99, 0, 1),   transfer(110, 111, 0, 1),
        transfer(120, 121, 0, 1), transfer(130, 131, 0, 1),  transfer(140, 140, 1, 0)};
    t[3].family = AF_INET6;
    t[3].peer[0] = htonl(0xfe800000);
    t[3].peer[3] = htonl(1);
    t[5].family = AF_UNIX;
    t[6].family = t[7].family = AF_INET6; /* an IPv4 address in one of IPv6, and nearly one */
    t[6].peer[0] = t[7].peer[0] = 0;
    t[6].peer[2] = htonl(0xffff);
    t[7].peer[2] = htonl(0xfffe);
    t[6].peer[3] = t[7].peer[3] = htonl(0x0a000008);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        kbench_put(k, 0, &t[i], sizeof t[i], NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "10 begin /network tcp_send peer=10.0.0.7:443 port=50000 bytes=100\n"
                          "20 end /network \n"));
    CHECK(strstr(k->text, "30 begin /network tcp_recv peer=10.0.0.7:443 port=50000 bytes=5000\n"
                          "70 end"));
    CHECK(strstr(k->text, "80 begin /network tcp_recv peer=10.0.0.7:443 port=50000 errno=104\n"));
    CHECK(strstr(k->text, "90 begin /network tcp_recv peer=[fe80::1]:443 port=50000 bytes=1\n"));
    CHECK(strstr(k->text, "120 begin /network tcp_recv peer=10.0.0.8:443 port=50000 bytes=1\n"));
    CHECK(strstr(k->text, "130 begin /network tcp_recv peer=[::fffe:a00:8]:443 port=50000 "
                          "bytes=1\n"));
    CHECK(strstr(k->text, "140 begin /network tcp_send peer=10.0.0.7:443 port=50000 bytes=0\n"));
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 2);
    kbench_free(k);
}

static void put_peer(struct kbench *k, long nr, uint64_t end, uint32_t pid, int fd, uint32_t flags,
                     const struct sv_wire_peer *w, const char *name)
{
    struct sv_wire_call c = kbench_call(nr, end - 5, end, fd, 1);
    char bytes[sizeof *w + SV_WIRE_PEER_NAME + 1];
    size_t len = name ? strlen(name) + 1 : 0;
    c.head.tgid = c.head.tid = pid;
    c.head.flags |= (uint16_t)(SV_WIRE_PEER | flags);
    memcpy(bytes, w, sizeof *w);
    memcpy(bytes + sizeof *w, name ? name : "", len);
    kbench_put(k, 0, &c, sizeof c, bytes, sizeof *w + len, 0);
}

/* Who is at the other end: by the process that used it last where both ends are here, else by the
 * credentials. */
TEST(calls_on_sockets_have_their_peer)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_peer client = {.fd = 4,
                                  .net = 5,
                                  .family = SV_WIRE_FAMILY_INET,
                                  .is_local = 1,
                                  .peer_port = 80,
                                  .port = 50000,
                                  .address = {htonl(0x7f000001)}},
                        server = client, far = client,
                        named = {.fd = 6,
                                 .inode = 70,
                                 .peer = 71,
                                 .pid = 21,
                                 .family = SV_WIRE_FAMILY_UNIX},
                        bare = named, none = {.fd = 7};
    server.peer_port = 50000;
    server.port = 80;
    far.is_local = 0;
    bare.inode = 71;
    bare.peer = 70;
    bare.pid = 22;
    put_peer(k, SYS_connect, 10, 20, 4, SV_WIRE_STATE_ONLY, &client, NULL);
    put_peer(k, SYS_recvfrom, 20, 21, 5, 0, &server, NULL);
    put_peer(k, SYS_recvfrom, 30, 20, 4, 0, &client, NULL);
    put_peer(k, SYS_recvfrom, 40, 20, 4, 0, &far, NULL);
    put_peer(k, SYS_recvfrom, 45, 22, 6, 0, &bare, NULL); /* it made both ends */
    put_peer(k, SYS_recvfrom, 50, 20, 6, 0, &named, "/run/x.sock");
    put_peer(k, SYS_recvfrom, 60, 22, 6, 0, &bare, NULL);
    put_peer(k, SYS_recvfrom, 70, 20, 6, 0, &named, "@x");
    put_peer(k, SYS_poll, 80, 20, -1, 0, &client, NULL);
    put_peer(k, SYS_poll, 90, 20, -1, 0, &none, NULL);
    kbench_round(k, 1000);
    CHECK(!strstr(k->text, "connect"));
    CHECK(strstr(k->text, "15 begin /system calls recvfrom fd=5 requested=0 bytes=1 "
                          "peer=127.0.0.1:50000 port=80 peer_pid=20\n"));
    CHECK(strstr(k->text, "peer=127.0.0.1:80 port=50000 peer_pid=21\n"));
    CHECK(strstr(k->text, "35 begin /system calls recvfrom fd=4 requested=0 bytes=1 "
                          "peer=127.0.0.1:80 port=50000\n"));
    CHECK(strstr(k->text, "peer=socket:[70]\n"));
    CHECK(strstr(k->text, "peer=/run/x.sock peer_pid=22\n"));
    CHECK(strstr(k->text, "peer=socket:[70] peer_pid=20\n"));
    CHECK(strstr(k->text, "peer=@x peer_pid=22\n"));
    CHECK(strstr(k->text, "75 begin /system calls poll ret=1 fd=4 peer=127.0.0.1:80 port=50000 "
                          "peer_pid=21\n"));
    CHECK(strstr(k->text, "85 begin /system calls poll ret=1 fd=7\n"));
    kbench_free(k);
}

/* A fault of pages from `offset` on that began at `start`. */
static void put_fault(struct kbench *k, uint64_t start, uint64_t end, uint64_t offset,
                      uint32_t bytes, uint64_t touched, uint32_t flags)
{
    struct sv_wire_fault f = {
        .page = {.head = {.kind = SV_WIRE_FAULT, .tgid = 10, .tid = 11, .ts_ns = end},
                 .inode = 77,
                 .offset = offset,
                 .device = 1 << 20,
                 .bytes = bytes,
                 .fd = -1,
                 .pad = flags},
        .start_ns = start,
        .touched = touched};
    kbench_put(k, 0, &f, sizeof f, NULL, 0, 0);
}

TEST(a_page_of_a_mapping_counts_once)
{
    enum { K64 = 64 << 10 };
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/data/a", 3);
    put_page(k, SV_WIRE_CACHE, 20, 77, 0, 3);
    /* Cold: the first page is waited for, then its window is mapped, and so are its neighbours. */
    put_fault(k, 30, 90, 0, 4096, 0, SV_WIRE_FAULT_WAITED | SV_WIRE_FAULT_MAJOR);
    put_fault(k, 95, 100, 0, K64, UINT64_MAX, SV_WIRE_FAULT_CACHED);
    put_fault(k, 105, 110, K64, K64, UINT64_MAX, SV_WIRE_FAULT_CACHED);
    put_fault(k, 115, 120, K64 + 4096, 4096, K64 + 4096, 0); /* was left out, is looked up */
    /* Warm: mapped again. */
    put_fault(k, 200, 210, 0, K64, UINT64_MAX, SV_WIRE_FAULT_CACHED);
    put_fault(k, 220, 230, K64, 5000, UINT64_MAX,
              SV_WIRE_FAULT_CACHED);                          /* the file is shorter now */
    put_fault(k, 250, 240, 0, 4096, 0, SV_WIRE_FAULT_WAITED); /* ends before it begins */
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "30 begin /page faults file inode=77 path=/data/a offset=0 bytes=4096 "
                          "major=1\n90 end /page faults \n"));
    CHECK(strstr(k->text, "95 instant /page faults mapped inode=77 path=/data/a offset=0 "
                          "bytes=126976 count=2\n"));
    CHECK(strstr(k->text, "115 instant /page faults file inode=77 path=/data/a offset=69632 "
                          "bytes=0\n"));
    CHECK(strstr(k->text, "200 instant /page faults mapped inode=77 path=/data/a offset=0 "
                          "bytes=70536 count=2\n"));
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 1);
    CHECK_STR_EQ(shape_check_end(&k->shape), "");
    kbench_free(k);
}

TEST(the_call_under_way_tells_whose_page_it_is)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/data/a", 3);
    put_page(k, SV_WIRE_CACHE, 20, 77, 0, 3);
    put_page(k, SV_WIRE_CACHE, 21, 77, 4096, 3);
    put_page(k, SV_WIRE_CACHE, 22, 78, 0, -1); /* nobody said */
    put_fault(k, 30, 35, 8192, 4096, 8192, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "20 instant /page cache misses add inode=77 path=/data/a offset=0 "
                          "bytes=8192\n"));
    CHECK(strstr(k->text, "22 instant /page cache misses add inode=78 offset=0 bytes=4096\n"));
    CHECK(strstr(k->text, "30 instant /page faults file inode=77 path=/data/a offset=8192 "
                          "bytes=4096\n"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_page_fault, SV_SUM_EVENTS), 1);
    kbench_free(k);
}

TEST(inodes_are_learnt_from_maps_and_bounded)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_tree t;
    struct sv_inodes x = {0};
    sv_tree_init(&t, d);
    sv_inodes_maps(&x, &t,
                   "1000-2000 r--p 00000000 fe:01 12 /lib/a.so\n"
                   "2000-3000 r-xp 00001000 fe:01 12 /lib/a.so\nnonsense\n"
                   "3000-4000 rw-p 00000000 00:00 0 [heap]\n"
                   "4000-5000 r--p 00000000 fe:01 13 /lib/with blank.so");
    CHECK_UINT_EQ(x.n, 2);
    const struct sv_file *f = sv_inodes_find(&x, &t, 0xfe << 20 | 1, 13, NULL);
    CHECK_STR_EQ(f ? f->path : "none", "/lib/with blank.so");
    CHECK(!sv_inodes_find(&x, &t, 0xfe << 20 | 2, 13, NULL)); /* another device */
    for (uint64_t i = 1; i < SV_INODES_MAX + 100; i++)
        sv_inodes_learn(&x, &t, 5, i, NULL);
    CHECK_UINT_EQ(x.n, SV_INODES_MAX);
    sv_inodes_fini(&x, &t);
    sv_tree_fini(&t);
    sv_dict_free(d);
}

/* A page of a file that nothing is known of. */
static void ask(struct kbench *k, uint64_t ts, uint32_t pid, uint64_t inode)
{
    struct sv_wire_cache c = {.head = {.kind = SV_WIRE_CACHE, .tgid = pid, .tid = pid, .ts_ns = ts},
                              .inode = inode,
                              .device = 9,
                              .bytes = 4096,
                              .fd = -1};
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
}

TEST(maps_are_read_once_per_program)
{
    const struct sv_decode_options options = {.asks_procfs = true, .follows_maps = true};
    struct kbench *k = kbench_new(&options);
    const struct sv_inodes *x = sv_decode_inodes(k->decode);
    const uint32_t self = (uint32_t)getpid(), child = 999999999;
    struct sv_wire_fork f = {.head = {.kind = SV_WIRE_FORK, .tgid = self, .tid = self, .ts_ns = 10},
                             .tgid = child,
                             .tid = child};
    struct sv_wire_head exec = {.kind = SV_WIRE_EXEC, .tgid = child, .tid = child, .ts_ns = 40};
    uint64_t before = x->readings;
    kbench_put(k, 0, &f, sizeof f, NULL, 0, 0);
    ask(k, 20, child, UINT64_C(1) << 60);
    ask(k, 21, child, (UINT64_C(1) << 60) + 1);
    ask(k, 22, self, (UINT64_C(1) << 60) + 2);
    kbench_round(k, 30);
    CHECK_UINT_EQ(x->readings, before + 1); /* both run the same */
    kbench_put(k, 0, &exec, sizeof exec, "/bin/true", 10, 0);
    ask(k, 50, child, (UINT64_C(1) << 60) + 3);
    ask(k, 51, child, (UINT64_C(1) << 60) + 4);
    kbench_round(k, 60);
    CHECK_UINT_EQ(x->readings, before + 2);
    sv_decode_lost(k->decode, 0, "system calls", 1, 60, 61); /* of what was mapped, maybe */
    ask(k, 70, self, (UINT64_C(1) << 60) + 5);
    kbench_round(k, 80);
    CHECK_UINT_EQ(x->readings, before + 3);
    kbench_free(k);
}

TEST(a_call_that_maps_a_file_says_whose_pages_they_are)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call map = kbench_call(SYS_mmap, 20, 25, 3, 0x7f0000000000);
    map.inode = 78;
    map.aux = 1 << 20;
    put_open(k, 10, "/data/gone", 3);
    kbench_put(k, 0, &map, sizeof map, NULL, 0, 0);
    put_page(k, SV_WIRE_CACHE, 30, 78, 0, -1);
    put_page(k, SV_WIRE_CACHE, 31, 79, 0, -1);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "30 instant /page cache misses add inode=78 path=/data/gone offset=0"));
    CHECK(strstr(k->text, "31 instant /page cache misses add inode=79 offset=0"));
    kbench_free(k);
}

static struct sv_wire_uring request(unsigned opcode, uint64_t start, uint64_t end, int fd, int res)
{
    return (struct sv_wire_uring){
        .head = {.kind = SV_WIRE_URING, .tgid = 10, .tid = 11, .what = opcode, .ts_ns = end},
        .start_ns = start,
        .offset = 512,
        .len = 4096,
        .fd = fd,
        .res = res};
}

TEST(requests_of_io_uring_that_overlap_have_lanes)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/data/a", 3);
    struct sv_wire_uring r[] = {request(22, 100, 200, 3, 4096), request(23, 150, 210, 3, 100),
                                request(3, 220, 230, 3, 0), request(99, 240, 250, 5, -22),
                                request(22, 260, 261, 9, -9)};
    for (size_t i = 0; i < sizeof r / sizeof *r; i++)
        kbench_put(k, 0, &r[i], sizeof r[i], NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "100 begin /io_uring io_uring_read fd=3 path=/data/a offset=512 "
                          "bytes=4096\n200 end /io_uring \n"));
    CHECK(strstr(k->text, "150 begin io_uring/io_uring 2 io_uring_write fd=3 path=/data/a "
                          "requested=4096 offset=512 bytes=100\n210 end"));
    CHECK(strstr(k->text, "220 begin /io_uring io_uring_fsync fd=3 path=/data/a\n"));
    CHECK(strstr(k->text, "240 begin /io_uring io_uring_request opcode=99 fd=5 errno=22\n"));
    CHECK(strstr(k->text, "260 begin /io_uring io_uring_read fd=9 requested=4096 offset=512 "
                          "errno=9\n"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_io_uring, SV_SUM_EVENTS), 5);
    CHECK_STR_EQ(shape_check_end(&k->shape), "");
    kbench_free(k);
}

TEST(a_call_that_has_not_ended_begins_only)
{
    struct kbench *k = kbench_new(NULL);
    put_open(k, 10, "/data/a", 3);
    struct sv_wire_call c = kbench_call(SYS_read, 100, 900, 3, -1);
    c.size = 10;
    c.head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    struct sv_wire_call close = kbench_call(SYS_close, 910, 920, 3, -1);
    close.head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    kbench_put(k, 0, &close, sizeof close, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, 1000), 4);
    CHECK(strstr(k->text, "100 begin /system calls read fd=3 path=/data/a requested=10\n"));
    CHECK(!strstr(k->text, "900"));
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_syscalls, SV_SUM_UNFINISHED), 2);
    kbench_free(k);
}

TEST(what_a_vector_asks_for_may_be_unknown)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_readv, 100, 110, 3, 5);
    c.size = 20;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    c = kbench_call(SYS_readv, 200, 210, 3, 5);
    c.size = UINT64_MAX;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "100 begin /system calls readv fd=3 requested=20 "));
    CHECK(strstr(k->text, "200 begin /system calls readv fd=3 bytes=5\n") ||
          strstr(k->text, "200 begin /system calls readv fd=3 offset=0 bytes=5\n"));
    kbench_free(k);
}
