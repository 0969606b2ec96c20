/* Streaming: packets to `stave listen` over a socket instead of to a file (stream_wire.h).
 *
 * The sink writes to memory; each commit sends what has gathered as one frame and waits until the
 * listener has taken it. A listener that is not there when the program starts, has gone, or does
 * not answer within a time (STAVE_STREAM_MS, default 5000), is given up: from that frame on
 * everything goes to a file (STAVE_STREAM_FILE), until a listener is there. No frame refers to an
 * earlier one, so that the file is a trace, and so is what a listener gets. Where there is no file
 * tracing ends with one line, threads that waited for a place in their ring continue, and what was
 * not taken stays in the rings. Only addresses, no names: no resolver in other people's processes.
 * Used by the writer thread, and by the thread that starts the session. */
#include "sdk/write/writer.h"

#include "core/files/peer.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "core/stream/writer.h"
#include "sdk/session/destination.h"
#include "sdk/write/stream_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNSENT_DEFAULT "stave-unsent.%h.%p.pftrace"
enum { RETRY_MS = 1000, RETRY_MAX_MS = 30000, RETRY_PATIENCE_MS = 200 };

/* ---- waiting, not for ever ---- */

static int64_t patience_ns(void)
{
    const char *text = sv_trusted_getenv("STAVE_STREAM_MS");
    long ms = text ? strtol(text, NULL, 10) : 0;
    return (ms > 0 && ms < 3600000 ? ms : 5000) * 1000000ll;
}

static bool wait_for(int fd, short events, int64_t limit, struct sv_err *err)
{
    for (;;) {
        int64_t left = (limit - sv_session_writer_now_ns() + 999999) / 1000000;
        struct pollfd p = {.fd = fd, .events = events};
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (n > 0)
            return true;
        if (n == 0) {
            sv_error(err, SV_EIO, "the listener does not answer");
            return false;
        }
        if (errno != EINTR) {
            sv_err_sys(err, "cannot wait for the listener");
            return false;
        }
    }
}

static bool gone(struct sv_err *err)
{
    sv_error(err, SV_EIO, "the listener has closed the connection");
    return false;
}

/* `patience` begins again whenever some of it was taken. */
static bool send_all(int fd, const void *bytes, size_t n, int64_t patience, struct sv_err *err)
{
    const uint8_t *from = bytes;
    int64_t limit = sv_session_writer_now_ns() + patience;
    while (n > 0) {
        ssize_t done = send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done > 0) {
            from += done;
            n -= (size_t)done;
            limit = sv_session_writer_now_ns() + patience;
            continue;
        }
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return gone(err);
        if (!wait_for(fd, POLLOUT, limit, err))
            return false;
    }
    return true;
}

/* > 0: so many bytes; 0: the connection has ended or the time is over, `err` says it. */
static ssize_t receive(int fd, void *to, size_t size, int64_t limit, struct sv_err *err)
{
    for (;;) {
        ssize_t n = recv(fd, to, size, MSG_DONTWAIT);
        if (n > 0)
            return n;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return gone(err);
        if (!wait_for(fd, POLLIN, limit, err))
            return 0;
    }
}

/* ---- the connection ---- */

/* OK, or NO and why. */
static bool read_reply(int fd, int64_t limit, struct sv_err *err)
{
    char reply[SV_REPLY_MAX];
    size_t n = 0;
    while (n == 0 || reply[n - 1] != '\n') {
        if (n == sizeof reply || receive(fd, reply + n, 1, limit, err) <= 0)
            return n == sizeof reply ? gone(err) : false;
        n++;
    }
    reply[n - 1] = '\0';
    if (strcmp(reply, "OK") == 0)
        return true;
    bool says_why = strncmp(reply, "NO ", 3) == 0;
    for (char *c = reply; *c; c++) /* untrusted bytes on the user's terminal */
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    sv_error(err, SV_EIO, "the listener refused: %s",
             says_why ? reply + 3 : "its protocol is unknown");
    return false;
}

/* NULL: no listener would take it. */
static const char *token_of_user(struct sv_err *err)
{
    const char *token = sv_trusted_getenv("STAVE_TOKEN");
    token = token ? token : "";
    if (strlen(token) <= SV_TOKEN_MAX && !strchr(token, '\n'))
        return token;
    sv_error(err, SV_EUSAGE, "STAVE_TOKEN is one line of at most %d bytes", SV_TOKEN_MAX);
    return NULL;
}

static bool greet(int fd, int64_t limit, struct sv_err *err)
{
    const char *token = token_of_user(err);
    char hello[sizeof SV_GREETING + SV_TOKEN_MAX + 1];
    if (!token)
        return false;
    int n = snprintf(hello, sizeof hello, SV_GREETING "%s\n", token);
    return send_all(fd, hello, (size_t)n, limit - sv_session_writer_now_ns(), err) &&
           read_reply(fd, limit, err);
}

/* connect() itself would wait for minutes. */
static bool reach(int fd, const union sv_stream_address *a, socklen_t size, int64_t limit,
                  struct sv_err *err)
{
    int flags = fcntl(fd, F_GETFL), error = 0;
    socklen_t len = sizeof error;
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    int rc = connect(fd, &a->any, size);
    while (rc != 0 && errno == EAGAIN) { /* a local listener has many before us */
        if (sv_session_writer_now_ns() > limit)
            return wait_for(fd, POLLOUT, limit, err);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        rc = connect(fd, &a->any, size);
    }
    if (rc != 0 && errno == EINPROGRESS) {
        if (!wait_for(fd, POLLOUT, limit, err))
            return false;
        rc = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0 ? 0 : -1;
        errno = error;
    }
    if (rc != 0)
        sv_err_sys(err, "cannot reach the listener");
    return rc == 0;
}

/* Whoever took the name or the port first gets what is sent there: it must be this user, root, or
 * one whom STAVE_STREAM_USER names. Of other machines nothing is known. */
static bool is_for(int fd, const union sv_stream_address *a, struct sv_err *err)
{
    const char *list = sv_trusted_getenv("STAVE_STREAM_USER");
    if (!sv_peer_is_loopback(&a->any))
        return true;
    uid_t uid = a->any.sa_family == AF_UNIX ? sv_peer_uid_unix(fd) : sv_peer_listener(&a->any);
    if (sv_peer_may(uid, list))
        return true;
    if (uid == SV_PEER_UNKNOWN)
        sv_error(err, SV_EIO,
                 "whose listener it is cannot be found out (STAVE_STREAM_USER=any allows it)");
    else
        sv_error(err, SV_EIO,
                 "the listener belongs to another user (STAVE_STREAM_USER=%u allows it)",
                 (unsigned)uid);
    return false;
}

static int connect_to(const char *out, int64_t patience, struct sv_err *err)
{
    union sv_stream_address a;
    socklen_t size = sv_stream_parse(out, &a);
    int64_t limit = sv_session_writer_now_ns() + patience;
    int fd = size ? sv_file_id_move_up(socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) : -1;
    if (fd < 0) {
        sv_err_sys(err, "cannot reach the listener");
        return -1;
    }
    if (reach(fd, &a, size, limit, err) && is_for(fd, &a, err) && greet(fd, limit, err)) {
        int yes = 1; /* each frame is waited for */
        if (a.any.sa_family == AF_INET)
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return fd;
    }
    close(fd);
    return -1;
}

/* A forked child has the descriptor, too: while it lives, the listener would wait for a program
 * that is gone. */
static struct {
    _Atomic int fd;
    struct sv_file_id id;
} held = {.fd = -1};

static void leave_to_parent(void)
{
    sv_file_id_close(atomic_exchange(&held.fd, -1), &held.id);
}

static void hold(struct sv_session_writer *w, int fd)
{
    static _Atomic bool is_known;
    w->fd = fd;
    w->fd_id = sv_file_id_of(fd);
    if (!atomic_exchange(&is_known, true) && pthread_atfork(NULL, NULL, leave_to_parent) != 0)
        return;
    held.id = w->fd_id;
    atomic_store(&held.fd, fd);
}

static bool is_ours(const struct sv_session_writer *w)
{
    return sv_file_id_is(w->fd, &w->fd_id);
}

void sv_stream_close(struct sv_session_writer *w)
{
    atomic_store(&held.fd, -1);
    sv_file_id_close(w->fd, &w->fd_id);
    w->fd = -1;
}

/* ---- frames ---- */

uint64_t sv_stream_count(const struct sv_event *events, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind == SV_LOSS && events[i].n_args > 0 && events[i].args[0].i > 0)
            count += (uint64_t)events[i].args[0].i;
        else if (events[i].kind != SV_END && events[i].kind != SV_LOSS)
            count++;
    }
    return count;
}

/* Until the listener has taken everything. */
static bool await_taken(struct sv_session_writer *w, struct sv_err *err)
{
    uint8_t taken[SV_TAKEN_BYTES];
    int64_t limit = sv_session_writer_now_ns() + w->patience_ns;
    uint64_t bytes = 0;
    while (bytes < w->sent_bytes) {
        for (size_t n = 0; n < sizeof taken;) {
            ssize_t got = receive(w->fd, taken + n, sizeof taken - n, limit, err);
            if (got <= 0)
                return false;
            n += (size_t)got;
        }
        bytes = sv_number_get(taken);
    }
    return bytes == w->sent_bytes || gone(err);
}

/* The bytes stay: who did not get them away puts them elsewhere. */
static bool send_frame(struct sv_session_writer *w, uint64_t flags, struct sv_err *err)
{
    uint8_t head[SV_FRAME_HEAD];
    struct sv_frame f = {
        .bytes = w->bytes.len, .events = w->sent_events - w->earlier_events, .flags = flags};
    sv_frame_put(head, &f);
    w->sent_bytes += sizeof head + w->bytes.len;
    return send_all(w->fd, head, sizeof head, w->patience_ns, err) &&
           send_all(w->fd, w->bytes.data, w->bytes.len, w->patience_ns, err) && await_taken(w, err);
}

/* ---- without a listener ---- */

static void use(struct sv_session_writer *w, int fd)
{
    sv_stream_close(w);
    hold(w, fd);
}

enum { UNSENT_FLAGS = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC };

/* Nobody else's file: it is made here, and made once. Where one has the name, of an earlier program
 * or another process, a number makes it a new one. */
static int make_unsent(struct sv_session_writer *w)
{
    enum { NUMBERS = 1000 };
    char name[sizeof w->unsent];
    memcpy(name, w->unsent, sizeof name);
    int fd = -1;
    for (uint32_t i = 1; i <= NUMBERS && fd < 0; i++) {
        memcpy(w->unsent, name, sizeof name);
        if (i > 1 && !sv_destination_number(w->unsent, sizeof w->unsent, i))
            break;
        fd = open(w->unsent, UNSENT_FLAGS | O_CREAT | O_EXCL, sv_recording_mode());
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return sv_file_id_move_up(fd);
}

static int open_unsent(const struct sv_session_writer *w)
{
    return sv_file_id_move_up(open(w->unsent, UNSENT_FLAGS));
}

/* The program may have closed it: then by its name, if that is still the same file. */
static bool has_unsent(struct sv_session_writer *w)
{
    if (is_ours(w))
        return true;
    int fd = open_unsent(w);
    bool is_same = sv_file_id_is(fd, &w->fd_id);
    if (is_same)
        hold(w, fd);
    else if (fd >= 0)
        close(fd);
    return is_same;
}

static bool write_unsent(struct sv_session_writer *w, struct sv_err *err)
{
    if (!has_unsent(w)) {
        sv_error(err, SV_EIO, "%s: the program has closed the file", w->unsent);
        return false;
    }
    off_t begin = lseek(w->fd, 0, SEEK_END);
    for (size_t at = 0; at < w->bytes.len;) {
        ssize_t done = write(w->fd, w->bytes.data + at, w->bytes.len - at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            sv_err_sys(err, "%s", w->unsent);
            int cut = begin >= 0 ? ftruncate(w->fd, begin) : -1;
            (void)cut; /* else a reader finds a packet that is cut */
            return false;
        }
        at += (size_t)done;
    }
    w->earlier_events = w->sent_events;
    sv_buf_clear(&w->bytes);
    return true;
}

/* There is no listener, or it did not take the frame: that is the first one of the file, or follows
 * those of the last time. */
static bool go_away(struct sv_session_writer *w, struct sv_err *err)
{
    bool is_new = w->retry_ns == 0;
    int fd = !w->unsent[0] ? -1 : is_new ? make_unsent(w) : open_unsent(w);
    if (fd < 0) {
        struct sv_err why = *err; /* what became of the listener */
        if (w->unsent[0]) {
            sv_err_clear(err);
            sv_err_sys(err, "%.200s; %.200s", why.msg, w->unsent);
        }
        return false;
    }
    use(w, fd);
    w->is_away = true;
    w->pause_ns = RETRY_MS * 1000000ll;
    w->retry_ns = sv_session_writer_now_ns() + w->pause_ns;
    if (is_new)
        sv_say("%s: %s; until a listener is there events go to %s ('stave merge' joins the parts)",
               w->out, err->msg, w->unsent);
    sv_err_clear(err);
    return write_unsent(w, err);
}

/* Is one there now? It gets a new stream, which begins with what has not been written yet. */
static void look_for_listener(struct sv_session_writer *w)
{
    struct sv_err ignored = {0};
    if (sv_session_writer_now_ns() < w->retry_ns)
        return;
    int fd = connect_to(w->out, RETRY_PATIENCE_MS * 1000000ll, &ignored);
    if (fd >= 0) {
        use(w, fd);
        w->is_away = false;
        w->sent_bytes = 0;
        return;
    }
    w->pause_ns = w->pause_ns * 2 < RETRY_MAX_MS * 1000000ll ? w->pause_ns * 2
                                                             : RETRY_MAX_MS * 1000000ll;
    w->retry_ns = sv_session_writer_now_ns() + w->pause_ns;
}

static bool deliver(struct sv_session_writer *w, uint64_t flags, struct sv_err *err)
{
    if (w->is_away)
        look_for_listener(w);
    if (w->is_away)
        return write_unsent(w, err);
    if ((!is_ours(w) && !gone(err)) || !send_frame(w, flags, err))
        return go_away(w, err);
    sv_buf_clear(&w->bytes);
    return true;
}

bool sv_stream_send(struct sv_session_writer *w, struct sv_err *err)
{
    return w->bytes.len == 0 || deliver(w, 0, err);
}

bool sv_stream_end(struct sv_session_writer *w, struct sv_err *err)
{
    return deliver(w, SV_FRAME_LAST, err);
}

/* ---- start ---- */

/* In the thread that starts the session: the writer has another directory, and the program may
 * change its own. */
void sv_stream_name(struct sv_session_writer *w)
{
    const char *pattern = sv_trusted_getenv("STAVE_STREAM_FILE");
    if (sv_destination_expand(pattern ? pattern : UNSENT_DEFAULT, w->process->pid, w->unsent,
                              sizeof w->unsent) != NULL ||
        (pattern && !*pattern))
        w->unsent[0] = '\0';
}

int sv_stream_open(struct sv_session_writer *w, struct sv_err *err)
{
    if (!token_of_user(err))
        return SV_EUSAGE;
    w->patience_ns = patience_ns();
    sv_buf_init(&w->bytes, SV_FRAME_BYTES_MAX);
    int fd = connect_to(w->out, w->patience_ns, err);
    if (fd >= 0)
        hold(w, fd);
    else if (!go_away(w, err))
        return SV_EIO;
    struct sv_output *o;
    int status = sv_output_open_buf(&w->bytes, SV_PLAIN, &o, err);
    if (status < 0)
        return status;
    struct sv_write_options options = {.resyncs_at_flush = true};
    status = sv_perfetto_writer.open(o, &options, w->dict, &w->report, &w->sink, err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}
