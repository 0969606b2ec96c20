/* From the spool to the trace: who is in it, where losses are, what is kept when something is
 * missing. */
#include "cli/console.h"
#include "core/base/wire.h"
#include "files/held.h"
#include "files/open.h"
#include "formats/otlp/json.h"
#include "listen/sender.h"
#include "pffile.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPAN(id, name, start, end, more)                                                       \
    "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"" id "\",\"name\":\"" name \
    "\",\"startTimeUnixNano\":\"" start "\",\"endTimeUnixNano\":\"" end "\"" more "}"
#define REQUEST(spans) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" spans "]}]}]}"
#define INSTANT        ",\"events\":[{\"timeUnixNano\":\"1700000000000002000\",\"name\":\"point\"}]"
#define BASE           "1700000000000"

struct rig {
    char part[520], out[512];
    int fd;
    struct sv_spool spool;
};

static void rig_open(struct rig *r)
{
    sv_console_mute();
    snprintf(r->out, sizeof r->out, "%s", test_scratch("t.txt"));
    snprintf(r->part, sizeof r->part, "%s.part", r->out);
    r->fd = open(r->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(r->fd >= 0);
    REQUIRE(sv_spool_begin(&r->spool, r->fd, UINT64_MAX, &(struct sv_output_choice){0}, NULL) == 0);
}

static void put(struct rig *r, struct sv_spool_sender *s, const void *bytes, size_t n,
                uint64_t events)
{
    uint8_t frame[8192];
    REQUIRE(n + SV_FRAME_HEAD <= sizeof frame);
    sv_frame_put(frame, &(struct sv_frame){.bytes = n, .events = events});
    memcpy(frame + SV_FRAME_HEAD, bytes, n);
    REQUIRE(sv_spool_put(&r->spool, s, frame, SV_FRAME_HEAD + n));
    s->slot.events = events;
}

/* A sender with one request, JSON for people; cause and events are what the listener noted at its
 * end. */
static void add_spans(struct rig *r, enum sv_spool_format format, const char *json, uint64_t held,
                      enum sv_spool_cause cause, uint64_t events)
{
    uint8_t padded[4096] = {0};
    struct sv_spool_sender s;
    struct sv_otlp_json how = {0};
    struct sv_buf b;
    memcpy(padded, json, strlen(json));
    sv_buf_init(&b, 1 << 20);
    REQUIRE(sv_otlp_from_json(&sv_otlp_request, padded, padded + strlen(json), &b, &how));
    REQUIRE(sv_spool_add(&r->spool, "OTLP somebody", format, &s));
    put(r, &s, b.data, b.len, held);
    s.slot.cause = cause;
    s.slot.events = events;
    sv_spool_note(&r->spool, &s);
    sv_buf_fini(&b);
}

static void add_perfetto(struct rig *r, const struct file *f, enum sv_spool_cause cause)
{
    struct sv_spool_sender s;
    REQUIRE(sv_spool_add(&r->spool, "program", SV_SPOOL_PERFETTO, &s));
    put(r, &s, f->b.data, f->b.len, 1);
    s.slot.cause = cause;
    sv_spool_note(&r->spool, &s);
}

static const char *merged(struct rig *r, struct sv_spool_result *result)
{
    struct sv_err err = {0};
    struct sv_output_choice out = {.path = r->out};
    CHECK_INT_EQ(sv_spool_merge(r->fd, &out, result, &err), 0);
    return test_read_file(r->out);
}

static void rig_close(struct rig *r)
{
    close(r->fd);
    unlink(r->part);
    unlink(r->out);
}

#define FIRST  REQUEST(SPAN("b7ad6b7169203331", "first", BASE "001000", BASE "003000", INSTANT))
#define SECOND REQUEST(SPAN("b7ad6b7169203332", "second", BASE "001500", BASE "004000", ""))
#define TWO                                                                \
    REQUEST(SPAN("b7ad6b7169203333", "long", BASE "001000", BASE "009000", \
                 "") "," SPAN("b7ad6b7169203334", "short", BASE "002000", BASE "003000", ""))

/* All that sent something, and what was lost at the end of what came. */
TEST(senders_and_losses)
{
    struct rig r;
    struct sv_spool_result result;
    struct sv_spool_sender quiet;
    struct sv_spool_view v;
    char line[200];
    rig_open(&r);
    add_spans(&r, SV_SPOOL_OTLP_LOCAL, FIRST, 1, SV_SPOOL_WHOLE, 1);
    REQUIRE(sv_spool_add(&r.spool, "quiet", SV_SPOOL_PERFETTO, &quiet));
    add_spans(&r, SV_SPOOL_OTLP_LOCAL, SECOND, 1, SV_SPOOL_CUT, 4);
    add_spans(&r, SV_SPOOL_OTLP, TWO, 2, SV_SPOOL_LIMIT, 9);
    const char *text = merged(&r, &result);
    CHECK_UINT_EQ(result.senders, 3);
    CHECK_UINT_EQ(result.cut, 2);
    CHECK_UINT_EQ(result.events, 4);
    CHECK_UINT_EQ(result.lost, 10);
    CHECK_UINT_EQ(result.more_files, 0);
    CHECK_UINT_EQ(sv_tally_held(&result.given), 4 + 1 + 10); /* a span brought an instant */
    CHECK(strstr(text, "1700000000.000001000 slice #") && strstr(text, "\"first\" cat=\"otlp\""));
    CHECK(strstr(text, "\"second\"") && strstr(text, "\"long\"") && strstr(text, "\"short\""));
    const char *cut = strstr(text, "\"stream cut\" {3}"),
               *full = strstr(text, "\"spool limit\" {7}");
    REQUIRE(cut && full);
    CHECK(strncmp(cut - 30, "\n1700000000.000004000 loss #", 28) == 0);
    CHECK(strncmp(full - 30, "\n1700000000.000009000 loss #", 28) == 0); /* not the last span's */
    REQUIRE(sv_spool_look(r.fd, &v, NULL) == 0);
    snprintf(line, sizeof line, "\nsnapshot boottime=%lld realtime=%lld\n",
             (long long)v.header.boot_ns, (long long)v.header.wall_ns);
    CHECK(strstr(text, line) != NULL); /* of the listener's machine */
    snprintf(line, sizeof line, "\nmeta \"hostname\" \"%s\"\n", v.header.host);
    CHECK(strstr(text, line) != NULL);
    sv_spool_view_fini(&v);
    rig_close(&r);
}

/* What another machine sends is not described by this one's clocks. */
TEST(streams_of_elsewhere)
{
    struct rig r;
    struct sv_spool_result result;
    rig_open(&r);
    add_spans(&r, SV_SPOOL_OTLP, FIRST, 1, SV_SPOOL_WHOLE, 1);
    const char *text = merged(&r, &result);
    CHECK(strstr(text, "\"first\"") && !strstr(text, "snapshot") && !strstr(text, "hostname"));
    rig_close(&r);
}

/* Only losses came of it: they are at the time at which it came. */
TEST(a_sender_of_which_nothing_came)
{
    struct rig r;
    struct sv_spool_result result;
    struct sv_spool_sender s;
    char line[100];
    rig_open(&r);
    REQUIRE(sv_spool_add(&r.spool, "unlucky", SV_SPOOL_PERFETTO, &s));
    s.slot.cause = SV_SPOOL_NO_SPACE;
    s.slot.events = 6;
    sv_spool_note(&r.spool, &s);
    const char *text = merged(&r, &result);
    CHECK(result.senders == 1 && result.cut == 1 && result.events == 0 && result.lost == 6);
    snprintf(line, sizeof line, "\n%lld.%09lld loss #1 \"no space for spool\" {6}\n",
             (long long)s.slot.since_ns / 1000000000, (long long)s.slot.since_ns % 1000000000);
    CHECK(strstr(text, line) != NULL);
    CHECK(strstr(text, "name=\"unlucky\"") != NULL && strstr(text, "snapshot boottime=") != NULL);
    rig_close(&r);
}

TEST(clocks_that_nothing_relates_make_files_of_their_own)
{
    const struct clock_row both[] = {{6, 5000, 0, false}, {1, 1700000000000000000, 0, false}};
    struct rig r;
    struct sv_spool_result result;
    struct file related, alone;
    char second[512];
    file_init(&related);
    snapshot(&related, 1, 6, both, 2);
    named_event(&related, 1, 6000, SV_PF_TYPE_INSTANT, 7, "related");
    file_init(&alone);
    named_event(&alone, 1, 100, SV_PF_TYPE_INSTANT, 7, "alone");
    rig_open(&r);
    add_spans(&r, SV_SPOOL_OTLP_LOCAL, FIRST, 1, SV_SPOOL_WHOLE, 1);
    add_perfetto(&r, &related, SV_SPOOL_WHOLE);
    const char *text = merged(&r, &result);
    CHECK_UINT_EQ(result.more_files, 0);
    CHECK(strstr(text, "\n1700000000.000001000 instant #") && strstr(text, "\"related\""));
    add_perfetto(&r, &alone, SV_SPOOL_WHOLE);
    text = merged(&r, &result);
    CHECK_UINT_EQ(result.more_files, 1);
    CHECK_UINT_EQ(result.senders, 3);
    CHECK_UINT_EQ(sv_tally_held(&result.given), 4);
    CHECK(strstr(text, "\"related\"") && strstr(text, "\"first\"") && !strstr(text, "\"alone\""));
    snprintf(second, sizeof second, "%s", test_scratch("t.2.txt"));
    CHECK(strstr(test_read_file(second), "\"alone\"") != NULL);
    (void)merged(&r, &result); /* the name is taken */
    CHECK(strstr(test_read_file(test_scratch("t.3.txt")), "\"alone\"") != NULL);
    sv_buf_fini(&related.b);
    sv_buf_fini(&alone.b);
    rig_close(&r);
}

TEST(an_empty_spool_is_an_empty_trace)
{
    struct rig r;
    struct sv_spool_result result;
    rig_open(&r);
    const char *text = merged(&r, &result);
    CHECK_STR_EQ(text, "# stave text 1\nclock unknown\n");
    CHECK(result.senders == 0 && result.events == 0 && result.more_files == 0);
    CHECK_INT_EQ(ftruncate(r.fd, 100), 0);
    CHECK_INT_EQ(sv_spool_merge(r.fd, &(struct sv_output_choice){.path = r.out}, &result, NULL),
                 SV_EFORMAT);
    rig_close(&r);
}

/* ---- the end of a claim ---- */

static void take(struct rig *r, struct sv_claim *c)
{
    struct sv_err err = {0};
    struct sv_claim_wish wish = {.kind = SV_CLAIM_LISTENER, .journals = true};
    char out[512];
    snprintf(out, sizeof out, "%s", test_scratch("t.txt"));
    REQUIRE(sv_claim_take(c, out, &wish, &err) == 0);
    rig_open(r);
    add_spans(r, SV_SPOOL_OTLP_LOCAL, FIRST, 1, SV_SPOOL_WHOLE, 1);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(the_spool_goes_when_the_trace_holds_all)
{
    struct rig r;
    struct sv_claim c;
    struct sv_err err = {0};
    struct sv_output_choice out = {0};
    take(&r, &c);
    CHECK_INT_EQ(sv_spool_finish(&c, &out, SV_SPOOL_CHECK | SV_SPOOL_KEEP, &err), 0);
    CHECK(strstr(test_read_file(r.out), "\"first\"") && is_there(c.part) && is_there(c.marker));
    unlink(r.out);
    CHECK_INT_EQ(sv_spool_finish(&c, &out, SV_SPOOL_CHECK, &err), 0);
    CHECK(strstr(test_read_file(r.out), "\"first\"") && !is_there(c.part) && !is_there(c.marker));
    close(r.fd);
}

TEST(the_spool_stays_when_the_trace_lacks_something)
{
    struct rig r;
    struct sv_claim c;
    struct sv_err err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", test_scratch("less.json"));
    struct sv_output_choice out = {.path = path, .dialect = "ferrum"}; /* without instants */
    take(&r, &c);
    CHECK_INT_EQ(sv_spool_finish(&c, &out, SV_SPOOL_CHECK, &err), SV_EIO);
    CHECK(strstr(err.msg, "it holds only 0 of 1 instants of ") != NULL);
    CHECK(strstr(err.msg, "nothing was removed") && is_there(c.part) && is_there(c.marker));
    err = (struct sv_err){0};
    chmod(c.part, 0622); /* others could have written it */
    CHECK_INT_EQ(sv_spool_finish(&c, &out, 0, &err), SV_EINPUT);
    CHECK(strstr(err.msg, "only you can write") && is_there(c.part) && is_there(c.marker));
    chmod(c.part, 0600);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_spool_finish(&c, &out, 0, &err), 0); /* nobody asked */
    CHECK(!is_there(c.part) && !is_there(c.marker));
    close(r.fd);
}
