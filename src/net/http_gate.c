/* Limits of what clients hold: see http_gate.h. Knows nothing of the HTTP library. */
#include "net/http_gate.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/now.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum { LOOK_MS = 50 };

struct sv_visitor {
    struct sv_visitor *prev, *next;
    int fd;
    uint32_t client;
    uid_t uid;
    bool has_uid;
    size_t bytes;
    int64_t limit_ms; /* 0: none, it does not wait for its client */
    int64_t since_ms; /* of its last step */
    bool is_answered; /* at the limit the client gets a 408 */
    bool is_ended;
};

struct sv_gate {
    struct sv_gate_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t stop_now;
    pthread_t thread;
    bool stops;
    struct sv_visitor *first;
    struct sv_gate_counts counts;
    struct sv_map clients; /* address → bytes */
};

/* ---- time ---- */

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    default: return "Service Unavailable";
    }
}

void sv_gate_refuse(int fd, unsigned status, const char *message)
{
    char text[512];
    char body[256];
    bool may_try_again = status == 429 || status == 503;
    int n = snprintf(body, sizeof body, "{\"error\":\"%s\"}", message);
    n = snprintf(text, sizeof text,
                 "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                 "Connection: close\r\n%s\r\n%s",
                 status, reason_of(status), n, may_try_again ? "Retry-After: 1\r\n" : "", body);
    send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The descriptor is the library's to close; it finds the connection ended. */
static void end(struct sv_visitor *v, unsigned status, const char *why)
{
    if (v->is_answered)
        sv_gate_refuse(v->fd, status, why);
    shutdown(v->fd, SHUT_RDWR);
    v->is_ended = true;
}

static void *watch(void *arg)
{
    struct sv_gate *g = arg;
    pthread_mutex_lock(&g->lock);
    while (!g->stops) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += LOOK_MS * 1000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&g->stop_now, &g->lock, &t);
        int64_t now = sv_now_ms();
        for (struct sv_visitor *v = g->first; v; v = v->next)
            if (v->limit_ms && now >= v->limit_ms && !v->is_ended) {
                g->counts.late += v->is_answered;
                end(v, 408, "the request took too long");
            }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void set_limit(struct sv_gate *g, struct sv_visitor *v, int64_t ms, bool is_answered)
{
    pthread_mutex_lock(&g->lock);
    v->since_ms = sv_now_ms();
    v->limit_ms = ms ? v->since_ms + ms : 0;
    v->is_answered = is_answered;
    pthread_mutex_unlock(&g->lock);
}

void sv_gate_headers(struct sv_gate *g, struct sv_visitor *v)
{
    set_limit(g, v, g->limits.request_ms, true);
}

void sv_gate_complete(struct sv_gate *g, struct sv_visitor *v)
{
    set_limit(g, v, 0, false);
}

void sv_gate_answer(struct sv_gate *g, struct sv_visitor *v)
{
    set_limit(g, v, g->limits.answer_ms, false);
}

/* A connection without a further request is not an error: it is closed without an answer. */
void sv_gate_done(struct sv_gate *g, struct sv_visitor *v)
{
    sv_gate_give_back(g, v);
    set_limit(g, v, g->limits.idle_ms, false);
}

/* ---- bytes ---- */

enum sv_gate_word sv_gate_hold(struct sv_gate *g, struct sv_visitor *v, size_t bytes)
{
    enum sv_gate_word word = SV_GATE_OK;
    bool is_new;
    pthread_mutex_lock(&g->lock);
    uint64_t *client = sv_map_add(&g->clients, v->client, &is_new);
    if (bytes > g->limits.client_bytes - *client)
        word = SV_GATE_CLIENT_FULL;
    else if (bytes > g->limits.all_bytes - g->counts.bytes)
        word = SV_GATE_ALL_FULL;
    if (word == SV_GATE_OK) {
        *client += bytes;
        g->counts.bytes += bytes;
        v->bytes += bytes;
    } else if (*client == 0) {
        sv_map_remove(&g->clients, v->client);
    }
    g->counts.client_full += word == SV_GATE_CLIENT_FULL;
    g->counts.all_full += word == SV_GATE_ALL_FULL;
    pthread_mutex_unlock(&g->lock);
    return word;
}

static void give_back(struct sv_gate *g, struct sv_visitor *v)
{
    uint64_t *client = v->bytes ? sv_map_find(&g->clients, v->client) : NULL;
    if (!client)
        return;
    *client -= v->bytes;
    g->counts.bytes -= v->bytes;
    v->bytes = 0;
    if (*client == 0)
        sv_map_remove(&g->clients, v->client);
}

void sv_gate_give_back(struct sv_gate *g, struct sv_visitor *v)
{
    pthread_mutex_lock(&g->lock);
    give_back(g, v);
    pthread_mutex_unlock(&g->lock);
}

struct sv_gate_counts sv_gate_count(struct sv_gate *g)
{
    pthread_mutex_lock(&g->lock);
    struct sv_gate_counts counts = g->counts;
    pthread_mutex_unlock(&g->lock);
    return counts;
}

/* ---- who is here ---- */

/* Those that the server works for keep their place. */
static void make_space(struct sv_gate *g)
{
    struct sv_visitor *longest = NULL;
    size_t n = 0;
    for (struct sv_visitor *v = g->first; v; v = v->next) {
        n += !v->is_ended;
        if (v->limit_ms && !v->is_ended && (!longest || v->since_ms <= longest->since_ms))
            longest = v;
    }
    if (n < g->limits.connections || !longest)
        return;
    end(longest, 503, "too many connections: this one waited longest");
    g->counts.displaced++;
}

size_t sv_gate_connections(size_t wanted)
{
    struct rlimit limit;
    size_t n_open = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n_open++;
    if (dir)
        closedir(dir);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return wanted;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    /* A quarter is for files, and for connections that have ended and are not closed yet. */
    size_t left = limit.rlim_cur > n_open ? (size_t)limit.rlim_cur - n_open : 1;
    left -= left / 4;
    return left < wanted ? left : wanted;
}

struct sv_visitor *sv_gate_enter(struct sv_gate *g, int fd, uint32_t client)
{
    struct sv_visitor *v = sv_alloc(sizeof *v);
    int64_t now = sv_now_ms();
    *v = (struct sv_visitor){.fd = fd,
                             .client = client,
                             .since_ms = now,
                             .limit_ms = now + g->limits.header_ms,
                             .is_answered = true};
    pthread_mutex_lock(&g->lock);
    if (g->limits.connections && g->counts.connections >= g->limits.connections)
        make_space(g);
    v->next = g->first;
    if (g->first)
        g->first->prev = v;
    g->first = v;
    g->counts.connections++;
    pthread_mutex_unlock(&g->lock);
    return v;
}

void sv_gate_of_user(struct sv_gate *g, struct sv_visitor *v, uid_t uid)
{
    pthread_mutex_lock(&g->lock);
    v->uid = uid;
    v->has_uid = true;
    pthread_mutex_unlock(&g->lock);
}

size_t sv_gate_count_user(struct sv_gate *g, uid_t uid)
{
    size_t n = 0;
    pthread_mutex_lock(&g->lock);
    for (const struct sv_visitor *v = g->first; v; v = v->next)
        n += v->has_uid && v->uid == uid;
    pthread_mutex_unlock(&g->lock);
    return n;
}

void sv_gate_leave(struct sv_gate *g, struct sv_visitor *v)
{
    pthread_mutex_lock(&g->lock);
    give_back(g, v);
    g->counts.connections--;
    if (v->prev)
        v->prev->next = v->next;
    else
        g->first = v->next;
    if (v->next)
        v->next->prev = v->prev;
    pthread_mutex_unlock(&g->lock);
    free(v);
}

int sv_gate_open(const struct sv_gate_limits *limits, struct sv_gate **out, struct sv_err *err)
{
    struct sv_gate *g = sv_alloc(sizeof *g);
    pthread_condattr_t monotonic;
    g->limits = *limits;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->stop_now, &monotonic);
    pthread_condattr_destroy(&monotonic);
    errno = pthread_create(&g->thread, NULL, watch, g);
    if (errno != 0) {
        free(g);
        return sv_err_sys(err, "cannot start a thread");
    }
    *out = g;
    return 0;
}

void sv_gate_close(struct sv_gate *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->stops = true;
    pthread_cond_signal(&g->stop_now);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->stop_now);
    sv_map_fini(&g->clients);
    free(g);
}
