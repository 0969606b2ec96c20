/* Ranks that relate their clocks: see sync.h. One thread beside the recorder's, so that a ping is
 * answered at once.
 *
 * The thread owns the server or the client; what both threads use is under the lock. */
#include "record/sync/sync.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/files/out_name.h"
#include "core/files/process_id.h"
#include "core/files/trusted.h"
#include "record/sync/ping.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TURN_MS = 50,
    LOOK_MS = 100,   /* for the file of rank 0 */
    FIND_MS = 60000, /* how long it may take to appear */
    CONNECT_MS = 5000,
    LEAVE_MS = 5000 /* how long rank 0 waits for the others at the end */
};

struct sv_sync_worker {
    struct sv_sync_plan plan;
    pthread_t thread;
    bool has_thread;
    int wake; /* readable: it is to end */
    _Atomic bool is_ending;
    /* Rank 0: */
    struct sv_ping_server *server;
    dev_t device; /* of the published file */
    ino_t inode;
    bool is_published;
    /* The others: */
    pthread_mutex_t lock;
    struct sv_relation relation;
    bool is_same_clock, was_polled;
    char why[256];
};

/* ---- the plan ---- */

int sv_sync_plan(struct sv_sync_plan *plan, const char *out, const char *out_dir,
                 const char *address, struct sv_err *err)
{
    char folder[PATH_MAX] = ".", pattern[PATH_MAX] = "";
    *plan = (struct sv_sync_plan){.launcher = sv_launcher_find(), .address = address};
    if (plan->launcher.rank < 0 || plan->launcher.size == 1)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--sync relates the ranks of a launcher such as mpirun, and there is "
                          "none here: 'stave sync' relates two hosts");
    const char *given = out_dir ? out_dir : out ? out : "";
    const char *slash = out_dir ? given + strlen(given) : strrchr(given, '/');
    if (slash && slash > given)
        snprintf(pattern, sizeof pattern, "%.*s", (int)(slash - given), given);
    else if (slash)
        snprintf(pattern, sizeof pattern, "/");
    const char *why = pattern[0]
                          ? sv_name_expand(pattern, 0, true, &plan->launcher, folder, sizeof folder)
                          : NULL;
    uint64_t job = sv_hash_bytes(given, strlen(given), 0);
    job = sv_hash_bytes(plan->launcher.job, strlen(plan->launcher.job), job);
    if (!why && snprintf(plan->path, sizeof plan->path, "%s/.stave-sync-%016" PRIx64, folder,
                         job) >= (int)sizeof plan->path)
        why = "too long";
    return why ? sv_err_set(err, SV_EUSAGE, SV_NO_POS, "-o %.200s: %s", given, why) : 0;
}

/* ---- the file ---- */

struct published {
    char address[300];
    uint8_t token[SV_PING_TOKEN];
    struct sv_process_id holder;
};

static bool read_published(const char *path, struct published *p)
{
    char text[1024], token[SV_PING_TOKEN_TEXT], end[4];
    unsigned pid;
    uint64_t space, start;
    if (sv_trusted_read(AT_FDCWD, path, text, sizeof text) <= 0)
        return false;
    *p = (struct published){0};
    unsigned char boot[SV_BOOT_ID_BYTES];
    int at = 0;
    if (sscanf(text, "stave-sync 1\n%299s\n%32s\n%u %" SCNu64 " %" SCNu64 " %n", p->address, token,
               &pid, &space, &start, &at) != 5 ||
        at == 0 || !sv_ping_token_parse(token, p->token))
        return false;
    for (size_t i = 0; i < sizeof boot; i++, at += 2)
        if (sscanf(text + at, "%2hhx", &boot[i]) != 1)
            return false;
    p->holder = (struct sv_process_id){.pid = pid, .pid_namespace = space, .start_ticks = start};
    memcpy(p->holder.boot, boot, sizeof boot);
    return sscanf(text + at, "\n%3s", end) == 1 && strcmp(end, "end") == 0;
}

static size_t format_published(char *text, size_t size, const char *address,
                               const uint8_t token[static SV_PING_TOKEN])
{
    char hex[SV_PING_TOKEN_TEXT], boot[2 * SV_BOOT_ID_BYTES + 1];
    struct sv_process_id self = sv_process_id_self();
    sv_ping_token_text(token, hex);
    for (size_t i = 0; i < SV_BOOT_ID_BYTES; i++)
        snprintf(boot + 2 * i, 3, "%02x", self.boot[i]);
    int n = snprintf(text, size, "stave-sync 1\n%s\n%s\n%u %" PRIu64 " %" PRIu64 " %s\nend\n",
                     address, hex, self.pid, self.pid_namespace, self.start_ticks, boot);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* What a killed job left is removed; that of a running one is not touched. */
static bool remove_left(const char *path)
{
    struct published old;
    struct stat st;
    int fd = sv_trusted_file(AT_FDCWD, path, O_RDONLY, SV_TRUST_OWN, 0);
    bool is_left = fd >= 0 && fstat(fd, &st) == 0 && read_published(path, &old) &&
                   sv_process_id_state(&old.holder) == SV_PROCESS_GONE;
    if (fd >= 0)
        close(fd);
    return is_left && sv_trusted_remove(path, st.st_dev, st.st_ino);
}

static int create(const char *path)
{
    return sv_trusted_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, SV_TRUST_PRIVATE, 0600);
}

static int publish(struct sv_sync_worker *w, const uint8_t token[static SV_PING_TOKEN],
                   struct sv_err *err)
{
    char text[1024];
    struct stat st = {0};
    const char *path = w->plan.path;
    size_t n = format_published(text, sizeof text, sv_ping_server_address(w->server), token);
    int fd = create(path);
    bool is_taken = fd < 0 && errno == EEXIST;
    if (is_taken && remove_left(path)) {
        fd = create(path);
        is_taken = fd < 0 && errno == EEXIST;
    }
    if (is_taken)
        return sv_err_set(err, SV_EHELD, SV_NO_POS,
                          "--sync: %.200s belongs to another job; remove it if that has ended",
                          path);
    if (fd < 0)
        return sv_err_sys(err, "--sync: %.200s", path);
    bool is_written = n > 0 && write(fd, text, n) == (ssize_t)n && fstat(fd, &st) == 0;
    int code = is_written ? 0 : sv_err_sys(err, "--sync: %.200s", path);
    if (close(fd) != 0 && code == 0)
        code = sv_err_sys(err, "--sync: %.200s", path);
    if (code < 0) {
        unlink(path);
        return code;
    }
    w->device = st.st_dev;
    w->inode = st.st_ino;
    w->is_published = true;
    return 0;
}

/* ---- rank 0 ---- */

static bool all_have_left(const struct sv_sync_worker *w)
{
    int64_t others = w->plan.launcher.size - 1;
    return sv_ping_server_peers(w->server) == 0 &&
           (others < 0 || sv_ping_server_met(w->server) >= (uint64_t)others);
}

static void *serve(void *arg)
{
    struct sv_sync_worker *w = arg;
    int64_t deadline_ns = 0;
    for (;;) {
        sv_ping_server_turn(w->server, TURN_MS);
        if (!atomic_load(&w->is_ending))
            continue;
        int64_t now = sv_ping_now_ns();
        if (deadline_ns == 0)
            deadline_ns = now + (int64_t)LEAVE_MS * 1000000;
        if (all_have_left(w) || now > deadline_ns)
            return NULL;
    }
}

static int open_server(struct sv_sync_worker *w, struct sv_err *err)
{
    uint8_t token[SV_PING_TOKEN];
    const char *address = w->plan.address ? w->plan.address : "127.0.0.1";
    if (!sv_ping_token_new(token))
        return sv_err_sys(err, "--sync: no random token");
    int code = sv_ping_server_open(address, token, &w->server, err);
    if (code >= 0 && (strncmp(sv_ping_server_address(w->server), "0.0.0.0:", 8) == 0 ||
                      strncmp(sv_ping_server_address(w->server), "[::]:", 5) == 0))
        code = sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--sync-address: give the address by which the other hosts reach this "
                          "one, not %s",
                          address);
    return code < 0 ? code : publish(w, token, err);
}

/* ---- the others ---- */

/* True: it is to end. */
static bool rest(const struct sv_sync_worker *w, int ms)
{
    struct pollfd p = {.fd = w->wake, .events = POLLIN};
    poll(&p, 1, ms);
    return atomic_load(&w->is_ending);
}

static void explain(struct sv_sync_worker *w, const char *why)
{
    pthread_mutex_lock(&w->lock);
    snprintf(w->why, sizeof w->why, "%.255s", why);
    pthread_mutex_unlock(&w->lock);
}

/* Rank 0 is elsewhere, and what it listens on cannot be reached from here. */
static bool is_out_of_reach(const struct published *p)
{
    uint8_t own[SV_BOOT_ID_BYTES];
    bool is_loopback = strncmp(p->address, "127.", 4) == 0 || strncmp(p->address, "[::1]", 5) == 0;
    return is_loopback && sv_boot_id(own) && memcmp(own, p->holder.boot, sizeof own) != 0;
}

/* Until rank 0 has published and answers; what another run left there does not. */
static bool find_server(struct sv_sync_worker *w, struct sv_ping_client *c)
{
    int64_t deadline_ns = sv_ping_now_ns() + (int64_t)FIND_MS * 1000000;
    bool is_ending = false;
    explain(w, "rank 0 has not published its address (--sync needs one folder for all ranks)");
    while (!is_ending && sv_ping_now_ns() < deadline_ns) {
        struct published p;
        struct sv_err err = {0};
        is_ending = atomic_load(&w->is_ending); /* one more try then: a short run */
        bool is_published = read_published(w->plan.path, &p);
        if (is_published && is_out_of_reach(&p)) {
            explain(w, "rank 0 is on another host and listens on its loopback device only: give "
                       "--sync-address HOST");
        } else if (is_published) {
            if (sv_ping_connect(c, p.address, p.token, CONNECT_MS, &err) == 0)
                return true;
            explain(w, err.msg);
        }
        if (!is_ending)
            rest(w, LOOK_MS);
    }
    return false;
}

static bool make_round(struct sv_sync_worker *w, struct sv_ping_client *c)
{
    struct sv_sync_round round;
    struct sv_err err = {0};
    if (sv_ping_round(c, &round, &err) < 0) {
        explain(w, err.msg);
        return false;
    }
    pthread_mutex_lock(&w->lock);
    w->relation.reference = c->server;
    sv_relation_add(&w->relation, &round);
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* Ranks that start together make their first rounds together; afterwards they are spread, so that
 * rank 0 answers one at a time. */
static int first_rest_ms(const struct sv_sync_worker *w)
{
    int64_t second = w->plan.launcher.rank % (SV_PING_EVERY_MS / 1000);
    return SV_PING_EVERY_MS - (int)second * 1000;
}

static void *exchange(void *arg)
{
    struct sv_sync_worker *w = arg;
    struct sv_ping_client c;
    if (!find_server(w, &c))
        return NULL;
    if (sv_clock_owner_equal(&c.server, &w->relation.local)) {
        w->is_same_clock = true; /* read when this thread has ended */
    } else {
        bool goes_on = make_round(w, &c);
        for (int ms = first_rest_ms(w); goes_on && !rest(w, ms); ms = SV_PING_EVERY_MS)
            goes_on = make_round(w, &c);
        if (goes_on)
            make_round(w, &c);
    }
    sv_ping_disconnect(&c);
    return NULL;
}

/* ---- both ---- */

/* The recorder's own thread takes all signals. */
static int start_thread(struct sv_sync_worker *w, struct sv_err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    errno = pthread_create(&w->thread, NULL, w->server ? serve : exchange, w);
    w->has_thread = errno == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return w->has_thread ? 0 : sv_err_sys(err, "--sync: cannot start a thread");
}

struct sv_sync_worker *sv_sync_start(const struct sv_sync_plan *plan, struct sv_err *err)
{
    struct sv_sync_worker *w = sv_alloc(sizeof *w);
    w->plan = *plan;
    pthread_mutex_init(&w->lock, NULL);
    sv_clock_owner_self(&w->relation.local);
    w->wake = eventfd(0, EFD_CLOEXEC);
    int code = w->wake < 0 ? sv_err_sys(err, "--sync") : 0;
    if (code >= 0 && plan->launcher.rank == 0)
        code = open_server(w, err);
    if (code >= 0)
        start_thread(w, err);
    return w;
}

bool sv_sync_poll(struct sv_sync_worker *w, struct sv_buf *json)
{
    bool is_first = false;
    if (w->was_polled)
        return false;
    pthread_mutex_lock(&w->lock);
    is_first = w->relation.n > 0;
    if (is_first)
        sv_relation_put(&w->relation, json);
    pthread_mutex_unlock(&w->lock);
    w->was_polled = is_first;
    return is_first;
}

bool sv_sync_stop(struct sv_sync_worker *w, struct sv_buf *json, char *why, size_t size)
{
    atomic_store(&w->is_ending, true);
    if (w->has_thread) {
        eventfd_write(w->wake, 1);
        pthread_join(w->thread, NULL);
    }
    sv_ping_server_close(w->server);
    if (w->is_published)
        sv_trusted_remove(w->plan.path, w->device, w->inode);
    bool is_related = w->relation.n > 0;
    if (is_related)
        sv_relation_put(&w->relation, json);
    bool needs_none = is_related || w->is_same_clock || w->plan.launcher.rank == 0;
    snprintf(why, size, "%s", needs_none ? "" : w->why);
    if (w->wake >= 0)
        close(w->wake);
    pthread_mutex_destroy(&w->lock);
    sv_relation_fini(&w->relation);
    free(w);
    return is_related;
}
