/* stave listen: takes the streams of many traced programs and makes one trace of them. */
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SENDERS_MAX = 4096, HELLO_MAX = 256 };

struct listen_options {
    struct sv_output_choice out;
    const char *token;
    uint64_t senders; /* end after so many; 0: until a signal */
};

/* One connection: its bytes gather in a file without a name until all are merged. */
struct sender {
    int fd, spool;
    char hello[HELLO_MAX];
    size_t n_hello;
    bool is_greeted;
    uint64_t bytes;
};

struct listener {
    int fd;
    const char *unix_path;
    const char *token;
    struct sender *senders;
    size_t n, cap;
    size_t n_done;
};

static volatile sig_atomic_t asked_to_end;

static void on_signal(int sig)
{
    (void)sig;
    asked_to_end = 1;
}

/* ---- the address ---- */

static int bind_unix(struct listener *l, const char *path, struct sv_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (!*path || strlen(path) >= sizeof a.sun_path)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "unix:PATH: the path is empty or too long");
    memcpy(a.sun_path, path, strlen(path));
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return sv_err_sys(err, "cannot make a socket");
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        connect(l->fd, (struct sockaddr *)&a, sizeof a) != 0)
        unlink(path); /* left by one that is gone */
    mode_t mask = umask(077);
    int rc = bind(l->fd, (struct sockaddr *)&a, sizeof a);
    umask(mask);
    if (rc != 0)
        return sv_err_sys(err, "cannot listen on %s", path);
    l->unix_path = path;
    return 0;
}

static int bind_tcp(struct listener *l, const char *text, struct sv_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[64] = {0}, *end;
    if (!colon || (size_t)(colon - text) >= sizeof host)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "expected tcp:ADDRESS:PORT");
    memcpy(host, text, (size_t)(colon - text));
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a.sin_addr) != 1 ||
        *end || port == 0 || port > 65535)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "expected tcp:ADDRESS:PORT");
    bool is_loopback = (ntohl(a.sin_addr.s_addr) >> 24) == 127;
    if (!is_loopback && !l->token)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "an address that others can reach needs --token");
    a.sin_port = htons((uint16_t)port);
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&a, sizeof a) != 0)
        return sv_err_sys(err, "cannot listen on %s", text);
    return 0;
}

static int open_listener(struct listener *l, const char *address, struct sv_err *err)
{
    int code =
        strncmp(address, "unix:", 5) == 0 ? bind_unix(l, address + 5, err)
        : strncmp(address, "tcp:", 4) == 0
            ? bind_tcp(l, address + 4, err)
            : sv_err_set(err, SV_EUSAGE, SV_NO_POS, "expected unix:PATH or tcp:ADDRESS:PORT");
    if (code >= 0 && listen(l->fd, 64) != 0)
        code = sv_err_sys(err, "cannot listen");
    return code;
}

/* ---- senders ---- */

static int new_spool(void)
{
    char path[] = "/var/tmp/stave-listen-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static void accept_one(struct listener *l)
{
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    int spool = l->n < SENDERS_MAX ? new_spool() : -1;
    if (spool < 0) {
        close(fd);
        return;
    }
    l->senders = sv_grow(l->senders, &l->cap, l->n + 1, sizeof *l->senders);
    l->senders[l->n++] = (struct sender){.fd = fd, .spool = spool};
}

static bool write_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return true;
}

/* The first line: STAVE 1 TOKEN. Takes what belongs to it; false: refuse. */
static bool greet(const struct listener *l, struct sender *s, const uint8_t **bytes, size_t *n)
{
    while (*n > 0 && !s->is_greeted) {
        char c = (char)*(*bytes)++;
        (*n)--;
        if (c != '\n') {
            if (s->n_hello + 1 >= HELLO_MAX)
                return false;
            s->hello[s->n_hello++] = c;
            continue;
        }
        s->is_greeted = true;
        if (strncmp(s->hello, "STAVE 1 ", 8) != 0)
            return false;
        return !l->token || strcmp(s->hello + 8, l->token) == 0;
    }
    return true;
}

static void end_sender(struct listener *l, struct sender *s, const char *why)
{
    if (why)
        sv_console_note("a sender was refused: %s", why);
    else
        l->n_done++;
    close(s->fd);
    s->fd = -1;
}

static void read_some(struct listener *l, struct sender *s)
{
    static uint8_t buf[256 << 10];
    ssize_t got = read(s->fd, buf, sizeof buf);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end_sender(l, s, NULL);
        return;
    }
    const uint8_t *bytes = buf;
    size_t n = (size_t)got;
    if (!greet(l, s, &bytes, &n)) {
        end_sender(l, s, "wrong greeting or token");
        s->bytes = 0;
        return;
    }
    s->bytes += n;
    if (!write_all(s->spool, bytes, n))
        end_sender(l, s, "no room for what it sends");
}

static void gather(struct listener *l, uint64_t wanted)
{
    struct pollfd *p = NULL;
    size_t cap = 0;
    while (!asked_to_end && (wanted == 0 || l->n_done < wanted)) {
        p = sv_grow(p, &cap, l->n + 1, sizeof *p);
        p[0] = (struct pollfd){.fd = l->fd, .events = POLLIN};
        size_t n = l->n;
        for (size_t i = 0; i < n; i++)
            p[1 + i] = (struct pollfd){.fd = l->senders[i].fd, .events = POLLIN};
        if (poll(p, (nfds_t)(n + 1), 500) <= 0)
            continue;
        for (size_t i = 0; i < n; i++)
            if (p[1 + i].revents && l->senders[i].fd >= 0)
                read_some(l, &l->senders[i]);
        if (p[0].revents)
            accept_one(l);
    }
    free(p);
}

/* ---- merging ---- */

static int open_spool(struct sender *s, struct sv_dict *dict, struct sv_report *report,
                      struct sv_input **in, struct sv_source **source, struct sv_err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->spool);
    struct sv_read_options options = {0};
    int code = sv_input_open(path, in, err);
    if (code >= 0)
        code = sv_perfetto_source(*in, &options, dict, report, source, err);
    return code;
}

static int merge(struct listener *l, const struct listen_options *o, struct sv_err *err)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_sink *sink;
    struct sv_pump_options options = {0};
    sv_report_init(&report);
    int code = sv_open_output(&o->out, dict, &report, &sink, err);
    if (code >= 0) {
        sink = sv_pump_adapt(SV_HAS_ANYTHING, sink, dict, &report, &options);
        for (size_t i = 0; code >= 0 && i < l->n; i++) {
            struct sv_input *in = NULL;
            struct sv_source *source;
            if (l->senders[i].bytes == 0)
                continue;
            code = open_spool(&l->senders[i], dict, &report, &in, &source, err);
            if (code >= 0)
                code = sv_pump_into(source, sink, &options, err);
            if (in)
                sv_input_close(in);
        }
        int closed = sink->close(sink, code < 0, err);
        code = code < 0 ? code : closed;
    }
    sv_console_findings(o->out.path, &report);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return code;
}

static void close_listener(struct listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->unix_path)
        unlink(l->unix_path);
    for (size_t i = 0; i < l->n; i++) {
        if (l->senders[i].fd >= 0)
            close(l->senders[i].fd);
        close(l->senders[i].spool);
    }
    free(l->senders);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct listen_options *o = options;
    int code = sv_expect_operands(operands, 1, 1, "address", err);
    if (code < 0)
        return code;
    if (!o->out.path)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "give the file to write: -o FILE");
    struct listener l = {.fd = -1, .token = o->token};
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    code = open_listener(&l, operands->items[0], err);
    if (code >= 0) {
        sv_console_note("listening on %s; end with ctrl-c", operands->items[0]);
        gather(&l, o->senders);
        code = merge(&l, o, err);
        sv_console_note("%s: %zu senders", o->out.path, l.n);
    }
    close_listener(&l);
    return code;
}

static const struct sv_option options[] = {
    SV_OUTPUT_OPTIONS(struct listen_options),
    {0, "senders", "N", SV_OPT_COUNT, offsetof(struct listen_options, senders),
     "end when so many senders have come and gone; default: until ctrl-c", NULL},
    {0, "token", "WORD", SV_OPT_TEXT, offsetof(struct listen_options, token),
     "senders must say it (STAVE_TOKEN); needed for addresses other than this machine's own", NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave listen unix:/tmp/stave.sock -o all.pftrace",
     "then STAVE_OUT=unix:/tmp/stave.sock ./program, as many as you like"},
    {"stave listen tcp:127.0.0.1:7777 -o run.pftrace --senders 8",
     "ends by itself after eight ranks"},
    {0},
};

const struct sv_command sv_command_listen = {
    .name = "listen",
    .operands = "ADDRESS -o OUT",
    .summary = "take the streams of traced programs into one trace",
    .description = "Programs that trace with libstave and STAVE_OUT=unix:PATH or tcp:ADDRESS:PORT "
                   "send their events here "
                   "as they happen; nothing is written on their side. When listening ends, the "
                   "streams are merged by "
                   "time into OUT. A program that dies has sent all but its last moments.\n\n"
                   "Only addresses of this machine are opened without --token.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct listen_options),
    .run = run,
};
