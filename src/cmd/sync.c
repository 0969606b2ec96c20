/* stave sync: relates the clocks of two hosts by pings, for recordings that no launcher started. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/mem.h"
#include "core/files/trusted.h"
#include "files/open.h"
#include "record/sync/ping.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURN_MS = 100, CONNECT_MS = 5000, JSON_MAX = 1 << 20 };

struct sync {
    const char *out, *serve, *token_file, *duration;
};

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int number)
{
    (void)number;
    is_asked_to_end = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* ---- the token ---- */

static int read_token(const char *path, uint8_t token[static SV_PING_TOKEN], struct sv_err *err)
{
    char text[SV_PING_TOKEN_TEXT + 1] = "";
    int fd = sv_trusted_file(AT_FDCWD, path, O_RDONLY, SV_TRUST_PRIVATE, 0);
    if (fd < 0 && errno == EPERM)
        return sv_error(
            err, SV_EINPUT,
            "--token-file: %.200s must be your own and readable by nobody else (chmod 600)", path);
    if (fd < 0)
        return sv_error(err, SV_EINPUT, "--token-file: %.200s: %s", path, strerror(errno));
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n >= 2 * SV_PING_TOKEN && sv_ping_token_parse(text, token))
        return 0;
    return sv_error(err, SV_EINPUT,
                    "--token-file: %.200s holds no token; 'stave sync --serve' makes one", path);
}

/* The one that is there, or a new one. */
static int make_token(const char *path, uint8_t token[static SV_PING_TOKEN], struct sv_err *err)
{
    char text[SV_PING_TOKEN_TEXT];
    int fd = sv_trusted_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, SV_TRUST_PRIVATE, 0600);
    if (fd < 0 && errno == EEXIST)
        return read_token(path, token, err);
    if (fd < 0)
        return sv_err_sys(err, "--token-file: %.200s", path);
    bool is_made = sv_ping_token_new(token);
    sv_ping_token_text(token, text);
    text[2 * SV_PING_TOKEN] = '\n';
    if (!is_made || write(fd, text, sizeof text) != (ssize_t)sizeof text) {
        sv_err_sys(err, "--token-file: %.200s", path);
        close(fd);
        unlink(path);
        return SV_EIO;
    }
    close(fd);
    return 0;
}

/* ---- both sides ---- */

static int serve(const struct sync *o, int64_t lasts_ns, struct sv_err *err)
{
    uint8_t token[SV_PING_TOKEN];
    struct sv_ping_server *s;
    int code = make_token(o->token_file, token, err);
    if (code >= 0)
        code = sv_ping_server_open(o->serve, token, &s, err);
    if (code < 0)
        return code;
    sv_print(stdout, "%s\n", sv_ping_server_address(s));
    fflush(stdout);
    sv_console_note("the token is in %s: copy it to the other host", o->token_file);
    int64_t began_ns = sv_ping_now_ns();
    while (!is_asked_to_end && (lasts_ns == 0 || sv_ping_now_ns() - began_ns < lasts_ns))
        sv_ping_server_turn(s, TURN_MS);
    sv_ping_server_close(s);
    return 0;
}

static void rest_until(int64_t ns)
{
    while (!is_asked_to_end && sv_ping_now_ns() < ns) {
        int64_t left_ns = ns - sv_ping_now_ns();
        left_ns = left_ns > TURN_MS * 1000000 ? TURN_MS * 1000000 : left_ns;
        nanosleep(&(struct timespec){.tv_nsec = left_ns > 0 ? left_ns : 0}, NULL);
    }
}

/* At the start, every half minute, and at the end. */
static int measure(struct sv_ping_client *c, int64_t lasts_ns, struct sv_relation *r,
                   struct sv_err *err)
{
    int64_t end_ns = sv_ping_now_ns() + lasts_ns;
    for (bool is_last = false;; is_last = is_asked_to_end || sv_ping_now_ns() >= end_ns) {
        struct sv_sync_round round;
        int code = sv_ping_round(c, &round, err);
        if (code < 0)
            return code;
        sv_relation_add(r, &round);
        if (is_last)
            return 0;
        int64_t next_ns = sv_ping_now_ns() + (int64_t)SV_PING_EVERY_MS * 1000000;
        rest_until(next_ns < end_ns ? next_ns : end_ns);
    }
}

static void summarise(const struct sv_relation *r)
{
    struct sv_sync s;
    struct sv_sync_round *copy = sv_alloc(r->n * sizeof *copy);
    char offset[32], bound[32];
    memcpy(copy, r->rounds, r->n * sizeof *copy);
    sv_sync_fit(&s, copy, r->n);
    free(copy);
    const struct sv_sync_point *last = &s.points[s.n - 1];
    bool is_behind = last->offset_ns < 0;
    sv_human_ns(offset, is_behind ? -last->offset_ns : last->offset_ns);
    sv_human_ns(bound, sv_sync_bound(&s, s.points[0].at_ns, last->at_ns));
    sv_console_note("the clock of %s is %s %s this one, within %s; drift %.2f ppm (%zu round%s)",
                    r->reference.host, offset, is_behind ? "behind" : "ahead of", bound,
                    s.drift * 1e6, r->n, r->n == 1 ? "" : "s");
    sv_sync_fini(&s);
}

/* A new file, whole or not at all. */
static int write_file(const char *path, const struct sv_buf *json, struct sv_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return sv_err_sys(err, "-o %.200s", path);
    bool is_written = write(fd, json->data, json->len) == (ssize_t)json->len;
    int code = is_written ? 0 : sv_err_sys(err, "-o %.200s", path);
    if (close(fd) != 0 && code == 0)
        code = sv_err_sys(err, "-o %.200s", path);
    if (code < 0)
        unlink(path);
    return code;
}

static int write_relation(const struct sync *o, const struct sv_relation *r, struct sv_err *err)
{
    struct sv_buf json;
    sv_buf_init(&json, JSON_MAX);
    sv_relation_put(r, &json);
    sv_buf_byte(&json, '\n');
    int code = o->out ? write_file(o->out, &json, err)
                      : sv_print_data(stdout, json.data, json.len, err);
    sv_buf_fini(&json);
    return code;
}

static int ask(const struct sync *o, const char *address, int64_t lasts_ns, struct sv_err *err)
{
    uint8_t token[SV_PING_TOKEN];
    struct sv_ping_client c;
    struct sv_relation r = {0};
    if (o->out && access(o->out, F_OK) == 0)
        return sv_error(err, SV_EUSAGE, "-o %.200s: there is such a file already", o->out);
    int code = read_token(o->token_file, token, err);
    if (code >= 0)
        code = sv_ping_connect(&c, address, token, CONNECT_MS, err);
    if (code < 0)
        return code;
    sv_clock_owner_self(&r.local);
    r.reference = c.server;
    if (sv_clock_owner_equal(&r.local, &r.reference))
        code =
            sv_error(err, SV_EUSAGE, "%.200s is this host: its clocks need no relation", address);
    if (code >= 0)
        code = measure(&c, lasts_ns, &r, err);
    sv_ping_disconnect(&c);
    if (code >= 0)
        code = write_relation(o, &r, err);
    if (code >= 0)
        summarise(&r);
    sv_relation_fini(&r);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct sync *o = options;
    struct sv_moment lasts = {.ns = o->serve ? 0 : (int64_t)10000000000};
    int code = sv_expect_operands(operands, o->serve ? 0 : 1, o->serve ? 0 : 1, "HOST:PORT", err);
    if (code < 0)
        return code;
    if (!o->token_file)
        return sv_error(err, SV_EUSAGE,
                        "--token-file FILE is missing: 'stave sync --serve' makes one");
    if (o->duration && (sv_parse_moment(o->duration, strlen(o->duration), &lasts) < 0 ||
                        lasts.is_absolute || lasts.ns < 0))
        return sv_error(err, SV_EUSAGE, "--for: '%s' is not a time such as 10s or 5min",
                        o->duration);
    catch_signals();
    return o->serve ? serve(o, lasts.ns, err) : ask(o, operands->items[0], lasts.ns, err);
}

#define AT(member) offsetof(struct sync, member)

static const struct sv_option options[] = {
    {'o', "output", "FILE", SV_OPT_OUTPUT, AT(out),
     "write the relation to FILE, which must not exist (default: standard output)", NULL, NULL},
    {0, "serve", "HOST[:PORT]", SV_OPT_TEXT, AT(serve),
     "answer pings on this address of this host until interrupted; without PORT a free one, which "
     "is printed",
     NULL, NULL},
    {0, "token-file", "FILE", SV_OPT_TEXT, AT(token_file),
     "a secret that both sides have; --serve makes it (mode 0600) if it does not exist", NULL,
     NULL},
    {0, "for", "TIME", SV_OPT_TEXT, AT(duration),
     "how long to measure (default 10s), or to serve (default: until interrupted)", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave sync --serve 10.0.0.1:7700 --token-file sync.token", "on the first host"},
    {"stave sync 10.0.0.1:7700 --token-file sync.token --for 5min -o b.relation",
     "on the second host, with a copy of the token, while both record"},
    {"stave merge a.pftrace b.pftrace --relation b.relation -o both.pftrace",
     "the two recordings with a known error between them"},
    {0},
};

const struct sv_command sv_command_sync = {
    .name = "sync",
    .operands = "HOST:PORT -o FILE",
    .summary = "measure how the clocks of two hosts relate",
    .description =
        "Exchanges pings over TCP with 'stave sync --serve' on another host: at the start, every "
        "30 s and at the end. Each ping bounds the offset between the two clocks, since no message "
        "arrives before it was sent; the result is offset, drift and a bound, written as JSON for "
        "'stave merge --relation'. It holds while it was measured; before and after, the bound "
        "grows by 500 us in each second, so measure during the recording, or right before and "
        "right after it, and give merge both files.\n\n"
        "The token keeps others from using the server; it crosses the network unencrypted. Under "
        "a launcher such as mpirun, 'stave record --sync' does all this by itself.\n\n"
        "Exit code 4: the other host cannot be reached or does not accept the token.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct sync),
    .run = run,
};
