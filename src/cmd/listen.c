/* stave listen: takes the streams of many traced programs and makes one trace of them.
 *
 * What is received is on disk at once, in the spool OUT.part (spool.h), before the sender is
 * answered; the trace is made of it when listening ends, or by `stave recover OUT` when the
 * listener was killed. One thread: poll, read, store, answer. A connection that has not sent a
 * valid greeting yet is untrusted: it has a time limit, and the number of such connections is
 * bounded. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/now.h"
#include "core/files/claim.h"
#include "core/files/peer.h"
#include "core/files/recording_mode.h"
#include "files/open.h"
#include "listen/address.h"
#include "listen/otlp.h"
#include "listen/sender.h"
#include "record/output/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SENDERS_MAX = 3072, /* at once, that have greeted; fewer where so many files cannot be open */
    PENDING_MAX = 256,  /* that have not greeted yet */
    PENDING_OF_PEER = 64,
    ACCEPTS = PENDING_OF_PEER / 2, /* at a time: who came among them is not the oldest yet */
    FILES_BESIDES = 32,
    GREETING_MS = 5000,
    STOP_MS = 500, /* for frames that are under way at the end */
    NOTES_MAX = 10
};

struct listen_options {
    struct sv_output_choice out;
    const char *token, *user, *mode;
    uint64_t senders; /* end after so many; 0: until a signal */
    uint64_t spool_limit;
    bool otlp;
    const char *otlp_address, *grpc; /* otlp_address: an operand */
};

struct sender {
    int fd;
    struct sv_peer peer;
    int64_t since_ms;
    bool has_greeted, is_gone;
    struct sv_greeting greeting;
    struct sv_stream stream;
};

struct listener {
    struct sv_address address;
    const char *token, *user;
    struct sv_spool spool;
    struct sender **senders; /* in the order in which they came */
    size_t n, cap;
    size_t n_greeted, greeted_max;
    size_t n_done, n_refused;
    bool is_stopping;
    bool has_noted_loss, lacks_space;
    struct sv_otlp_door *otlp; /* NULL: none */
};

static volatile sig_atomic_t asked_to_end;

static void on_signal(int sig)
{
    (void)sig;
    asked_to_end = 1;
}

/* ---- one sender ---- */

static void let_go(struct listener *l, struct sender *s)
{
    close(s->fd);
    s->is_gone = true;
    l->n_greeted -= s->has_greeted;
}

static void refuse(struct listener *l, struct sender *s, const char *why)
{
    char reply[SV_REPLY_MAX];
    int n = snprintf(reply, sizeof reply, "NO %s\n", why);
    send(s->fd, reply, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (l->n_refused++ < NOTES_MAX)
        sv_console_note("%s was refused: %s", s->peer.name, why);
    let_go(l, s);
}

/* The sender has come and gone; `cause`, unless it ended its stream. */
static void end(struct listener *l, struct sender *s, enum sv_spool_cause cause)
{
    sv_stream_cut(&s->stream, &l->spool, cause);
    l->n_done++;
    let_go(l, s);
}

static void note_loss(struct listener *l, const struct sender *s)
{
    uint32_t cause = s->stream.spooled.slot.cause;
    if (l->has_noted_loss || (cause != SV_SPOOL_LIMIT && cause != SV_SPOOL_NO_SPACE))
        return;
    l->has_noted_loss = true;
    l->lacks_space = cause == SV_SPOOL_NO_SPACE;
    sv_console_note("%s: events from now on are counted but not kept",
                    cause == SV_SPOOL_LIMIT
                        ? "the spool has reached --spool-limit"
                        : "no space left for the spool (disk, quota or file size limit)");
}

/* True: something was taken that is to be answered. */
static bool take_frames(struct listener *l, struct sender *s, const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return false;
    uint64_t before = s->stream.taken;
    enum sv_taken taken = sv_stream_take(&s->stream, &l->spool, bytes, n);
    note_loss(l, s);
    if (taken == SV_TAKEN_BAD) {
        sv_console_note("%s sent data that is not a Stave stream; the connection was closed",
                        s->peer.name);
        end(l, s, SV_SPOOL_BAD);
        return false;
    }
    return s->stream.taken != before;
}

static void answer(struct listener *l, struct sender *s)
{
    uint8_t taken[SV_TAKEN_BYTES];
    sv_number_put(taken, s->stream.taken);
    bool ok = send(s->fd, taken, sizeof taken, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof taken;
    if (s->stream.frames.has_ended)
        end(l, s, SV_SPOOL_WHOLE);
    else if (!ok) /* it waits for each answer: there is always a place for one */
        end(l, s, SV_SPOOL_CUT);
}

/* One machine of the network does not get all places. */
static bool is_place_for(const struct listener *l, const struct sv_peer *peer)
{
    size_t of_peer = 0;
    for (size_t i = 0; i < l->n && !peer->is_local; i++)
        of_peer += !l->senders[i]->is_gone && l->senders[i]->has_greeted &&
                   l->senders[i]->peer.id == peer->id;
    return l->n_greeted < l->greeted_max && of_peer < (l->greeted_max + 1) / 2;
}

/* Without a token only users of this machine who may: whose connection it is, the kernel says. */
static bool is_welcome(const struct listener *l, const struct sv_peer *peer, char *why, size_t size)
{
    if (l->token || sv_peer_may(peer->uid, l->user))
        return true;
    if (peer->uid == SV_PEER_UNKNOWN)
        snprintf(why, size, "its user cannot be found out; 'stave listen --token WORD' takes it");
    else
        snprintf(why, size, "it is of user %u; 'stave listen --user %u' or '--token WORD' takes it",
                 (unsigned)peer->uid, (unsigned)peer->uid);
    return false;
}

/* Returns how many bytes belong to the greeting. */
static size_t greet(struct listener *l, struct sender *s, const uint8_t *bytes, size_t n)
{
    size_t used;
    char why[SV_REPLY_MAX - 8];
    switch (sv_greeting_take(&s->greeting, bytes, n, l->token, &used)) {
    case SV_GREETED_MORE: break;
    case SV_GREETED_WRONG: refuse(l, s, "not a Stave greeting"); break;
    case SV_GREETED_VERSION:
        refuse(l, s, "its libstave has another version than this listener");
        break;
    case SV_GREETED_TOKEN: refuse(l, s, "wrong token (STAVE_TOKEN)"); break;
    case SV_GREETED_OK:
        if (!is_welcome(l, &s->peer, why, sizeof why)) {
            refuse(l, s, why);
            break;
        }
        if (!is_place_for(l, &s->peer)) {
            refuse(l, s, "too many senders at once");
            break;
        }
        if (!sv_spool_add(&l->spool, s->peer.name, SV_SPOOL_PERFETTO, &s->stream.spooled)) {
            refuse(l, s, "the listener has no space for another sender");
            break;
        }
        s->has_greeted = true;
        l->n_greeted++;
        if (send(s->fd, "OK\n", 3, MSG_DONTWAIT | MSG_NOSIGNAL) != 3)
            end(l, s, SV_SPOOL_CUT);
    }
    return used;
}

static void read_some(struct listener *l, struct sender *s)
{
    static uint8_t buf[256 << 10];
    ssize_t got = read(s->fd, buf, sizeof buf);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        if (s->has_greeted)
            end(l, s, SV_SPOOL_CUT);
        else
            let_go(l, s);
        return;
    }
    size_t used = s->has_greeted ? 0 : greet(l, s, buf, (size_t)got);
    if (s->has_greeted && !s->is_gone && take_frames(l, s, buf + used, (size_t)got - used))
        answer(l, s);
}

/* ---- all of them ---- */

static void forget_gone(struct listener *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->senders[i]->is_gone)
            free(l->senders[i]);
        else
            l->senders[n++] = l->senders[i];
    }
    l->n = n;
}

/* Those that have not greeted, of this peer or of all (NULL): how many, and the one that has waited
 * longest. */
static size_t count_pending(const struct listener *l, const struct sv_peer *peer,
                            struct sender **oldest)
{
    size_t n = 0;
    *oldest = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct sender *s = l->senders[i];
        if (s->is_gone || s->has_greeted || (peer && s->peer.id != peer->id))
            continue;
        if (n++ == 0)
            *oldest = s;
    }
    return n;
}

/* Real senders greet at once: when all places are taken, the connection that has waited longest
 * without a greeting is closed. */
static void make_place(struct listener *l, const struct sv_peer *peer)
{
    struct sender *oldest;
    if (count_pending(l, peer, &oldest) >= PENDING_OF_PEER ||
        count_pending(l, NULL, &oldest) >= PENDING_MAX)
        refuse(l, oldest, "too many connections without a greeting");
}

/* False: nobody else is waiting, or cannot be taken now. */
static bool accept_one(struct listener *l)
{
    struct sv_peer peer;
    int fd = sv_address_accept(&l->address, &peer);
    if (fd < 0) {
        struct sender *oldest;
        if ((errno == EMFILE || errno == ENFILE) && count_pending(l, NULL, &oldest) > 0)
            refuse(l, oldest, "too many connections");
        return false;
    }
    make_place(l, &peer);
    struct sender *s = sv_alloc(sizeof *s);
    *s = (struct sender){.fd = fd, .peer = peer, .since_ms = sv_now_ms()};
    SV_APPEND(l->senders, l->n, l->cap) = s;
    return true;
}

static void expire(struct listener *l)
{
    int64_t now = sv_now_ms();
    for (size_t i = 0; i < l->n; i++) {
        struct sender *s = l->senders[i];
        if (!s->is_gone && !s->has_greeted && now - s->since_ms >= GREETING_MS)
            refuse(l, s, "the greeting took too long");
    }
}

/* Waits for something to do, and does it. The signals that end us come only while it waits. */
static void one_round(struct listener *l, struct pollfd *p, int64_t limit_ms, const sigset_t *mask)
{
    struct timespec limit = {.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1000000};
    size_t n = l->n;
    p[0] = (struct pollfd){.fd = l->is_stopping ? -1 : l->address.fd, .events = POLLIN};
    for (size_t i = 0; i < n; i++)
        p[1 + i] = (struct pollfd){.fd = l->senders[i]->fd, .events = POLLIN};
    if (ppoll(p, (nfds_t)(n + 1), limit_ms < 0 ? NULL : &limit, mask) > 0) {
        for (size_t i = 0; i < n; i++)
            if (p[1 + i].revents && !l->senders[i]->is_gone)
                read_some(l, l->senders[i]);
        for (int i = 0; p[0].revents && i < ACCEPTS && accept_one(l); i++)
            ;
    }
    expire(l);
    forget_gone(l);
}

/* At the end frames that are under way are still taken, for a while. True: some are. */
static bool stop_senders(struct listener *l, bool at_once)
{
    for (size_t i = 0; i < l->n; i++) {
        struct sender *s = l->senders[i];
        bool is_under_way = s->has_greeted &&
                            (s->stream.frames.is_open || s->stream.frames.n_head > 0);
        if (is_under_way && !at_once)
            continue;
        if (s->has_greeted)
            end(l, s, SV_SPOOL_STOP);
        else
            refuse(l, s, "the listener ends");
    }
    forget_gone(l);
    return l->n > 0;
}

static int64_t next_deadline(const struct listener *l)
{
    struct sender *oldest;
    if (count_pending(l, NULL, &oldest) == 0)
        return -1;
    int64_t left = oldest->since_ms + GREETING_MS - sv_now_ms();
    return left > 0 ? left : 0;
}

static void gather(struct listener *l, uint64_t wanted, const sigset_t *mask)
{
    struct pollfd *p = sv_alloc((SENDERS_MAX + PENDING_MAX + 1) * sizeof *p);
    while (!asked_to_end && (wanted == 0 || l->n_done < wanted))
        one_round(l, p, next_deadline(l), mask);
    l->is_stopping = true;
    sv_address_close(&l->address); /* later connections are refused at once */
    one_round(l, p, 0, mask);
    int64_t limit = sv_now_ms() + STOP_MS;
    while (stop_senders(l, sv_now_ms() >= limit))
        one_round(l, p, limit > sv_now_ms() ? limit - sv_now_ms() : 0, mask);
    free(p);
    if (l->n_refused > NOTES_MAX)
        sv_console_note("%zu connections were refused", l->n_refused);
}

/* As many senders as there are descriptors for. */
static size_t count_places(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return SENDERS_MAX / 2;
    rlim_t want = SENDERS_MAX + PENDING_MAX + FILES_BESIDES;
    if (files.rlim_cur < want) {
        files.rlim_cur = files.rlim_max < want ? files.rlim_max : want;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0)
            getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= want)
        return SENDERS_MAX;
    return files.rlim_cur > PENDING_MAX + FILES_BESIDES
               ? (size_t)files.rlim_cur - PENDING_MAX - FILES_BESIDES
               : 1;
}

/* ---- the spool ---- */

/* Standard output, a pipe or a device have no place beside them. */
static bool is_file(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return false;
    return stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

static int open_nameless(struct sv_err *err)
{
    char path[] = "/var/tmp/stave-listen-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return sv_err_sys(err, "cannot create a spool in /var/tmp");
    unlink(path);
    return fd;
}

/* A descriptor; the claim is taken when the output is a file. */
static int open_spool(const struct listen_options *o, struct sv_claim *claim, struct sv_err *err)
{
    *claim = (struct sv_claim){.fd = -1};
    if (!is_file(o->out.path))
        return open_nameless(err);
    int code =
        sv_claim_take(claim, o->out.path, &(struct sv_claim_wish){.kind = SV_CLAIM_LISTENER}, err);
    if (code < 0)
        return sv_err_in_file(err, o->out.path);
    sv_leftovers_note(claim);
    int fd = open(claim->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    sv_err_sys(err, "%s: cannot create", claim->part);
    sv_claim_release(claim);
    return SV_EIO;
}

static int finish(const struct listen_options *o, struct sv_claim *claim, int fd,
                  struct sv_err *err)
{
    struct sv_spool_result result;
    if (!claim->out[0])
        return sv_spool_merge(fd, &o->out, &result, err);
    struct sv_output_choice own = o->out;
    struct sv_err why = {0};
    own.path = NULL;
    int code = sv_spool_finish(claim, &own, 0, &why);
    if (code < 0)
        sv_err_set(
            err, code, why.pos,
            "%s; received events are kept in %s: run 'stave recover %s' to make a trace of them",
            why.msg, claim->part, claim->out);
    return code;
}

/* ---- OTLP ---- */

static int begin_otlp(struct listener *l, struct sv_err *err)
{
    return l->otlp ? sv_otlp_start(l->otlp, &l->spool, err) : 0;
}

static void end_otlp(struct listener *l)
{
    struct sv_otlp_counts c = sv_otlp_close(l->otlp);
    l->otlp = NULL;
    if (c.lacks_space)
        sv_console_note("no space was left for the spool: some OTLP requests were refused, and "
                        "their senders were asked to repeat them");
    if (c.rejected || c.refused)
        sv_console_note("OTLP: %llu spans in %llu requests were taken; %llu spans and %llu "
                        "requests were not valid or had no place",
                        (unsigned long long)c.spans, (unsigned long long)c.requests,
                        (unsigned long long)c.rejected, (unsigned long long)c.refused);
}

static void say_addresses(const struct listener *l, const char *address)
{
    if (l->otlp)
        sv_console_note("listening for OTLP on port %u, path /v1/traces", sv_otlp_port(l->otlp));
    if (l->otlp && sv_otlp_grpc_port(l->otlp))
        sv_console_note("listening for OTLP over gRPC on port %u", sv_otlp_grpc_port(l->otlp));
    if (l->otlp && sv_otlp_without_grpc(l->otlp))
        sv_console_note("no OTLP over gRPC: %s", sv_otlp_without_grpc(l->otlp));
    if (address)
        sv_console_note("listening on %s; Ctrl-C stops", address);
    else
        sv_console_note("Ctrl-C stops");
}

/* Of the operands that is OTLP's address which is no other: it has no scheme. */
static int sort_operands(struct listen_options *o, const struct sv_words *operands,
                         const char **address, struct sv_err *err)
{
    int code = sv_expect_operands(operands, o->otlp ? 0 : 1, o->otlp ? 2 : 1, "address", err);
    *address = NULL;
    o->otlp_address = NULL;
    for (size_t i = 0; code >= 0 && i < operands->n; i++) {
        const char *word = operands->items[i];
        bool is_otlp = o->otlp && strncmp(word, "unix:", 5) != 0 && strncmp(word, "tcp:", 4) != 0;
        const char **to = is_otlp ? &o->otlp_address : address;
        if (*to)
            code = sv_error(err, SV_EUSAGE, "'%s': one address too many", word);
        *to = word;
    }
    return code < 0 ? code : o->otlp ? 0 : sv_options_need("otlp-grpc", "otlp", err);
}

static int open_otlp(struct listener *l, const struct listen_options *o, struct sv_err *err)
{
    bool is_off = o->grpc && strcmp(o->grpc, "off") == 0;
    struct sv_otlp_options otlp = {.address = o->otlp_address,
                                   .grpc = is_off ? NULL : o->grpc,
                                   .no_grpc = is_off,
                                   .token = o->token,
                                   .user = o->user};
    return o->otlp ? sv_otlp_open(&otlp, &l->otlp, err) : 0;
}

static int serve(struct listener *l, const struct listen_options *o, const char *address,
                 const sigset_t *mask, struct sv_err *err)
{
    struct sv_claim claim;
    int fd = open_spool(o, &claim, err);
    if (fd < 0)
        return fd;
    uint64_t limit = o->spool_limit ? o->spool_limit : SV_SPOOL_LIMIT_DEFAULT;
    int code = sv_spool_begin(&l->spool, fd, limit, &o->out, err);
    if (code < 0) {
        if (claim.out[0])
            sv_claim_abandon(&claim);
        close(fd);
        return sv_err_in_file(err, o->out.path);
    }
    code = begin_otlp(l, err);
    if (code >= 0) {
        say_addresses(l, address);
        gather(l, o->senders, mask);
    }
    end_otlp(l);
    signal(SIGINT, SIG_DFL); /* a second one ends us at once; the spool stays */
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (code < 0) {
        if (claim.out[0])
            sv_claim_abandon(&claim);
        close(fd);
        return code;
    }
    code = finish(o, &claim, fd, err);
    close(fd);
    if (code >= 0 && l->lacks_space)
        code = sv_error(err, SV_EIO,
                        "%s: it has only the number of lost events, because there was no space for "
                        "the spool; free some space, or use another -o",
                        o->out.path);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct listen_options *o = options;
    const char *address;
    int code = sort_operands(o, operands, &address, err);
    if (code < 0)
        return code;
    if (!o->out.path)
        return sv_error(err, SV_EUSAGE, "no output given: use -o FILE");
    if (o->token && (strlen(o->token) > SV_TOKEN_MAX || strchr(o->token, '\n') || !*o->token))
        return sv_error(err, SV_EUSAGE, "--token must be one line of 1 to %d bytes", SV_TOKEN_MAX);
    if (o->user && !sv_peer_list_is_valid(o->user))
        return sv_error(
            err, SV_EUSAGE,
            "--user: expected numbers of users with commas between them, or 'any', not '%.100s'",
            o->user);
    code = sv_recording_option(o->mode, err);
    if (code >= 0)
        code = sv_check_output(&o->out, err);
    if (code < 0)
        return code;
    sv_recording_umask();
    struct listener l = {
        .token = o->token, .user = o->user, .greeted_max = count_places(), .address = {.fd = -1}};
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t ends, mask;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, &mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (address)
        code = sv_address_open(&l.address, address, o->token != NULL, o->user != NULL, err);
    if (code >= 0)
        code = open_otlp(&l, o, err);
    if (code >= 0)
        code = serve(&l, o, address, &mask, err);
    end_otlp(&l);
    sv_address_close(&l.address);
    free(l.senders);
    return code;
}

static const struct sv_option options[] = {
    SV_OUTPUT_OPTIONS(struct listen_options),
    {0, "senders", "N", SV_OPT_COUNT, offsetof(struct listen_options, senders),
     "stop after this number of senders has disconnected (default: run until Ctrl-C)", NULL, NULL},
    {0, "otlp", NULL, SV_OPT_FLAG, offsetof(struct listen_options, otlp),
     "take spans of OpenTelemetry programs over HTTP, on HOST:PORT (default " SV_OTLP_ADDRESS ")",
     NULL, NULL},
    {0, "otlp-grpc", "HOST:PORT", SV_OPT_TEXT, offsetof(struct listen_options, grpc),
     "the same over gRPC (default: " SV_OTLP_GRPC_ADDRESS
     " when --otlp has its default address and libgrpc is installed); off: none",
     NULL, NULL},
    {0, "token", "WORD", SV_OPT_TEXT, offsetof(struct listen_options, token),
     "secret that senders must send (STAVE_TOKEN; OTLP: the header 'authorization: Bearer WORD'); "
     "required for addresses other than those of this "
     "machine",
     NULL, NULL},
    {0, "user", "UID", SV_OPT_TEXT, offsetof(struct listen_options, user),
     "also take events of these users of this machine (numbers, with commas between them; 'any': "
     "of "
     "every user); without it and without --token only those of this user and root",
     NULL, NULL},
    SV_RECORDING_MODE_OPTION(struct listen_options, mode),
    {0, "spool-limit", "BYTES", SV_OPT_BYTES, offsetof(struct listen_options, spool_limit),
     "maximum size of OUT.part (default 16G); later events are counted as lost", NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave listen unix:/tmp/stave.sock -o all.pftrace",
     "then STAVE_OUT=unix:/tmp/stave.sock ./program, as many as you like"},
    {"stave listen tcp:127.0.0.1:7777 -o run.pftrace --senders 8", "stops after eight ranks"},
    {"stave listen --otlp -o spans.pftrace",
     "then OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 for any OpenTelemetry program"},
    {"stave listen unix:/tmp/stave.sock --otlp 127.0.0.1:4319 -o all.pftrace",
     "events of libstave and spans of OpenTelemetry in one trace"},
    {0},
};

const struct sv_command sv_command_listen = {
    .name = "listen",
    .operands = "[ADDRESS] [--otlp [HOST:PORT]] -o OUT",
    .summary = "receive events of traced programs and write one trace",
    .description =
        "Programs that trace with libstave and STAVE_OUT=unix:PATH or tcp:ADDRESS:PORT send their "
        "events here as they happen. Received events are written "
        "to OUT.part at once; a program keeps events in its rings until that is done. When "
        "listening ends, the streams are merged by time into OUT; machines and containers are kept "
        "apart by their boot ids and pid namespaces, as in 'stave merge'. If the listener was "
        "killed, 'stave recover OUT' does this.\n\n"
        "Missing events are in the trace as a loss with their count: those of a program that was "
        "killed or lost its connection, and those that arrived when the spool or the disk was "
        "full. A program without a listener writes its events to a file (STAVE_STREAM_FILE) "
        "and reconnects; 'stave merge' joins the parts. Streams whose clock nothing relates to the "
        "others "
        "are written to files of their own beside OUT.\n\n"
        "With --otlp, spans of OpenTelemetry programs are taken on HOST:PORT: POST /v1/traces with "
        "protobuf or JSON, also compressed. A request is answered when its spans are in OUT.part. "
        "docs/otlp.md has the rest.\n\n"
        "At most 3,072 senders are served at once (half of them from one other machine), and "
        "16,384 in all. Addresses other than those of this machine require --token.\n\n"
        "Without --token only programs of the user who listens, and of root, may send: the kernel "
        "is asked whose the connection is, for Unix sockets and loopback addresses, OTLP included. "
        "--user lets others of this machine in, --token whoever has the word. A program in turn "
        "sends only to a listener of its own user or root (STAVE_STREAM_USER=UID: or of that "
        "user).",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct listen_options),
    .run = run,
};
