/* The Perfetto reader: frames, damage, compressed packets, sequences, clocks, losses. */
#include "formats/perfetto/state.h"
#include "tests/unit/pffile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

/* ---- frames ---- */

TEST(reads_begin_end_and_instant)
{
    struct file f;
    struct read r;
    file_init(&f);
    named_event(&f, 1, 100, SV_PF_TYPE_BEGIN, 7, "outer");
    named_event(&f, 1, 150, SV_PF_TYPE_INSTANT, 7, "mark");
    named_event(&f, 1, 200, SV_PF_TYPE_END, 7, NULL);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "100 0 begin #0000000000000007 outer \n"
                                "150 0 instant #0000000000000007 mark \n"
                                "200 0 end #0000000000000007  \n");
    CHECK_UINT_EQ(r.report.n, 0);
    done(&r, &f);
}

TEST(an_empty_file_has_no_events)
{
    struct read r;
    read_bytes(&r, "", 0, 0);
    CHECK_INT_EQ(r.rc, 0);
    CHECK_UINT_EQ(r.got.n, 0);
    CHECK_UINT_EQ(r.report.n, 0);
    done(&r, NULL);
}

/* n instants at 1, 2, 3 …; ends[i] is the byte after packet i. */
static void instants(struct file *f, size_t n, size_t *ends)
{
    file_init(f);
    for (size_t i = 0; i < n; i++) {
        named_event(f, 1, i + 1, SV_PF_TYPE_INSTANT, 7, "tick");
        ends[i] = f->b.len;
    }
}

TEST(a_file_cut_anywhere_gives_every_whole_packet)
{
    struct file f;
    size_t ends[5];
    instants(&f, 5, ends);
    for (size_t cut = 0; cut <= f.b.len; cut++) {
        struct read r;
        size_t whole = 0;
        while (whole < 5 && ends[whole] <= cut)
            whole++;
        CONTEXT("cut at %zu", cut);
        read_bytes(&r, f.b.data, cut, 0);
        CHECK_UINT_EQ(r.got.n, whole);
        size_t start = whole ? ends[whole - 1] : 0;
        if (start == cut)
            CHECK_UINT_EQ(r.report.n, 0);
        else if (cut - start > 1) /* the length is there, too */
            check_finding(&r, SV_DAMAGE, "truncated packet", 1, (int64_t)start);
        else
            CHECK_UINT_EQ(sv_report_count(&r.report, SV_DAMAGE), 1);
        done(&r, NULL);
    }
    sv_buf_fini(&f.b);
}

TEST(garbage_between_packets_is_skipped_and_reported)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\xff", 1},
        {"garbage, and more of it\n\n", 25},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a length past all limits */
        {"\x0a\x04\x07\x07\x07\x07", 6},                      /* a frame with nonsense in it */
        {"\x12\x02hi", 4},                                    /* another field than a packet */
        {"\x0a\x7f\x08", 3},                                  /* a length that swallows the rest */
        {"\0\0\0\0\0\0\0\0", 8},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct file f;
        struct read r;
        size_t ends[6];
        CONTEXT("row %zu", i);
        file_init(&f);
        for (size_t k = 0; k < 6; k++) {
            if (k == 2)
                sv_buf_add(&f.b, rows[i].bytes, rows[i].len);
            named_event(&f, 1, k + 1, SV_PF_TYPE_INSTANT, 7, "tick");
            ends[k] = f.b.len;
        }
        read_file(&r, &f);
        bool is_framed = i == 3;                   /* then nothing else can be lost */
        CHECK_UINT_EQ(r.got.n, is_framed ? 6 : 7); /* a loss, too: perhaps some were theirs */
        CHECK_UINT_EQ(sv_report_count(&r.report, SV_DAMAGE), is_framed ? 1 : rows[i].len);
        CHECK_INT_EQ(r.report.rows[0].first_pos, (int64_t)ends[1]);
        done(&r, &f);
    }
}

TEST(a_malformed_field_costs_its_packet_only)
{
    struct file f;
    struct read r;
    file_init(&f);
    named_event(&f, 1, 1, SV_PF_TYPE_INSTANT, 7, "before");
    size_t bad = f.b.len;
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_TIMESTAMP, 2);
    sv_buf_add(&f.b, "\x5c\x5c", 2); /* a group */
    end(&f);
    named_event(&f, 1, 3, SV_PF_TYPE_INSTANT, 7, "after");
    event(&f, 1, 4, SV_PF_TYPE_INSTANT);
    sv_buf_add(&f.b, "\x07", 1); /* wire type 7, inside the event */
    event_end(&f);
    named_event(&f, 1, 5, SV_PF_TYPE_INSTANT, 7, "last");
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "1 0 instant #0000000000000007 before \n"
                                "3 0 instant #0000000000000007 after \n"
                                "5 0 instant #0000000000000007 last \n");
    check_finding(&r, SV_DAMAGE, "malformed packet", 1, (int64_t)bad);
    check_finding(&r, SV_DAMAGE, "malformed track event", 1, -1);
    done(&r, &f);
}

/* Every field number with every wire type, twice: what a field says must not be believed of another
 * type. */
static void all_fields(struct file *f, uint32_t up_to)
{
    for (uint32_t id = 1; id <= up_to; id++) {
        for (unsigned round = 0; round < 2; round++) {
            u64(f, id, 0x7fffffff);
            sv_put_fixed64(&f->b, id, 0x7fffffffffffffffull);
            sv_put_varint(&f->b, (uint64_t)id << 3 | SV_PB_FIXED32);
            sv_buf_add(&f->b, "\xff\xff\xff\x7f", 4);
            sv_put_bytes(&f->b, id, "\x08\x01\x12\x01x", 5);
        }
    }
}

TEST(fields_of_the_wrong_wire_type_are_not_believed)
{
    static const uint32_t payloads[] = {
        SV_PF_PACKET_TRACK_EVENT,   SV_PF_PACKET_TRACK_DESCRIPTOR, SV_PF_PACKET_CLOCK_SNAPSHOT,
        SV_PF_PACKET_PROCESS_TREE,  SV_PF_PACKET_PROCESS_STATS,    SV_PF_PACKET_THREAD_DESCRIPTOR,
        SV_PF_PACKET_GPU_STAGE,     SV_PF_PACKET_GPU_COUNTER,      SV_PF_PACKET_GPU_INFO,
        SV_PF_PACKET_CHROME_EVENTS, SV_PF_PACKET_ATTRIBUTES,       SV_PF_PACKET_TRACE_STATS,
        SV_PF_PACKET_SYSTEM_INFO,   SV_PF_PACKET_INTERNED_DATA,    SV_PF_PACKET_DEFAULTS,
        SV_PF_PACKET_TRIGGER,       SV_PF_PACKET_REMOTE_CLOCK_SYNC};
    static const uint32_t parts[] = {SV_PF_EVENT_DEBUG_ANNOTATIONS, SV_PF_EVENT_LEGACY_EVENT,
                                     SV_PF_EVENT_CALLSTACK, SV_PF_EVENT_LOG_MESSAGE};
    struct file f;
    struct read r;
    file_init(&f);
    for (size_t i = 0; i < TEST_COUNT(payloads); i++) {
        packet(&f, 1);
        u64(&f, SV_PF_PACKET_TIMESTAMP, 5);
        size_t p = open_message(&f, payloads[i]);
        all_fields(&f, 60);
        close_message(&f, p);
        end(&f);
    }
    for (size_t i = 0; i < TEST_COUNT(parts); i++) {
        event(&f, 1, 5, SV_PF_TYPE_INSTANT);
        size_t p = open_message(&f, parts[i]);
        all_fields(&f, 20);
        close_message(&f, p);
        event_end(&f);
    }
    named_event(&f, 1, 9, SV_PF_TYPE_INSTANT, 7, "last");
    read_file(&r, &f);
    CHECK_INT_EQ(r.rc, 0);
    CHECK(r.got.n > 0);
    bool has_last = false;
    for (size_t i = 0; i < r.got.n; i++)
        has_last = has_last ||
                   strcmp(sv_dict_text(r.dict, r.got.events[i].name).bytes, "last") == 0;
    CHECK(has_last);
    done(&r, &f);
}

TEST(a_damaged_length_loses_few_packets)
{
    struct file f;
    struct read r;
    size_t ends[50];
    instants(&f, 50, ends);
    f.b.data[ends[9] + 1] += 5; /* the eleventh packet claims part of the twelfth */
    read_file(&r, &f);
    CHECK(r.got.n >= 48 && r.got.n <= 51);
    CHECK(sv_report_count(&r.report, SV_DAMAGE) > 0);
    CHECK_INT_EQ(r.got.events[r.got.n - 1].ts_ns, 50);
    done(&r, &f);
}

TEST(events_of_one_packet_may_fill_many_batches)
{
    struct file f;
    struct read r;
    file_init(&f);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_TIMESTAMP, 5);
    size_t stats = open_message(&f, SV_PF_PACKET_PROCESS_STATS);
    for (unsigned i = 1; i <= 1000; i++) {
        size_t process = open_message(&f, SV_PF_STATS_PROCESSES);
        u64(&f, SV_PF_STATS_PID, i);
        u64(&f, 3, i); /* vm_rss_kb */
        close_message(&f, process);
    }
    close_message(&f, stats);
    end(&f);
    named_event(&f, 1, 6, SV_PF_TYPE_INSTANT, 7, "after");
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 1001);
    CHECK_INT_EQ(r.got.events[999].args[0].i, 1000 * 1024);
    CHECK_INT_EQ(r.got.events[1000].ts_ns, 6);
    done(&r, &f);
}

TEST(the_probe_knows_a_trace_by_its_packets)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool is_trace;
    } rows[] = {
        {"", 0, false},
        {"\n", 1, false},
        {"\n{\"traceEvents\":[]}                                            ", 62, false},
        {"\n[\n  {\"name\": \"x\"}]                                            ", 60, false},
        {"[{\"ph\":\"X\"}]", 12, false},
        {"\x0a\x02\x50\x01\x0a\x02\x50\x01", 8, true},
        {"\x0a\x04\x50\x01\x40\x05", 6, true},
        {"\x0a\x7f\x50\x01\x40\x05", 6, true}, /* the head ends inside it */
        {"\x0a\x02\x51\x01\x0a\x02\x50\x01", 8, false},
        {"\x0a\x06\x32\x04\x0a\x02\x08\x06", 8, true}, /* a clock snapshot alone */
        {"\x1f\x8b\x08\x00", 4, false},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        int score = sv_perfetto_format.probe((const uint8_t *)rows[i].bytes, rows[i].len);
        CHECK_INT_EQ(score > 50, rows[i].is_trace);
    }
}

/* ---- compressed packets ---- */

static void put_compressed(struct file *to, const struct file *from, bool is_zstd)
{
    size_t cap = compressBound(from->b.len) + 1024;
    uint8_t *out = malloc(cap);
    size_t len = 0;
    if (!is_zstd) {
        uLongf n = cap;
        REQUIRE(compress(out, &n, from->b.data, from->b.len) == Z_OK);
        len = n;
    }
#ifdef SV_HAVE_ZSTD
    if (is_zstd)
        len = ZSTD_compress(out, cap, from->b.data, from->b.len, 3);
    REQUIRE(!ZSTD_isError(len));
#endif
    packet(to, 0);
    sv_put_bytes(&to->b, is_zstd ? SV_PF_PACKET_ZSTD_COMPRESSED : SV_PF_PACKET_COMPRESSED, out,
                 len);
    end(to);
    free(out);
}

static void check_compressed(bool is_zstd)
{
    struct file inner, f;
    struct read r;
    file_init(&inner);
    file_init(&f);
    named_event(&f, 1, 1, SV_PF_TYPE_INSTANT, 7, "before");
    for (unsigned i = 0; i < 50000; i++) /* more than the unpacking buffer holds */
        named_event(&inner, 1, 100 + i, SV_PF_TYPE_INSTANT, 7, "inside a compressed packet");
    put_compressed(&f, &inner, is_zstd);
    named_event(&f, 1, 2, SV_PF_TYPE_INSTANT, 7, "after");
    size_t nested = f.b.len;
    put_compressed(&f, &f, is_zstd);
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 50002 + 2);
    CHECK_INT_EQ(r.got.events[50000].ts_ns, 100 + 49999);
    CHECK_INT_EQ(r.got.events[50001].ts_ns, 2);
    check_finding(&r, SV_DAMAGE, "compressed packets inside compressed packets", 1,
                  (int64_t)nested);
    done(&r, &f);
    sv_buf_fini(&inner.b);
}

TEST(deflated_packets_are_unpacked_once)
{
    check_compressed(false);
}

TEST(a_packet_that_unpacks_without_end_is_cut)
{
    if (!getenv("STAVE_LONG"))
        SKIP("only with STAVE_LONG=1: a gigabyte is unpacked");
    enum { PIECE = 16 << 20 };
    struct file f;
    struct read r;
    uint8_t *out = malloc(PIECE), *zeros = calloc(1, PIECE);
    REQUIRE(out && zeros);
    z_stream z = {.next_out = out, .avail_out = PIECE};
    REQUIRE(deflateInit(&z, 1) == Z_OK);
    for (uint64_t n = 0; n < SV_PF_UNPACKED_MAX + PIECE;
         n += PIECE) { /* fields 0: damage, but cheap to pass over */
        z.next_in = zeros;
        z.avail_in = PIECE;
        REQUIRE(deflate(&z, Z_NO_FLUSH) == Z_OK);
    }
    REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    file_init(&f);
    packet(&f, 1);
    sv_put_bytes(&f.b, SV_PF_PACKET_COMPRESSED, out, PIECE - z.avail_out);
    end(&f);
    named_event(&f, 1, 1, SV_PF_TYPE_INSTANT, 7, "after");
    read_file(&r, &f);
    check_finding(&r, SV_DAMAGE, "compressed packet too large", 1, 0);
    CHECK_UINT_EQ(r.got.n, 1);
    deflateEnd(&z);
    free(out);
    free(zeros);
    done(&r, &f);
}

TEST(zstd_packets_are_unpacked_once)
{
#ifdef SV_HAVE_ZSTD
    check_compressed(true);
#else
    SKIP("built without zstd");
#endif
}

TEST(a_broken_compressed_packet_gives_what_it_can)
{
    struct file inner, f, broken;
    struct read r;
    file_init(&inner);
    file_init(&f);
    file_init(&broken);
    for (unsigned i = 0; i < 2000; i++)
        named_event(&inner, 1, 100 + i * 977 % 1000, SV_PF_TYPE_INSTANT, i, "x");
    put_compressed(&f, &inner, false);
    struct sv_pb w = sv_pb_at(f.b.data, f.b.len);
    struct sv_pb_field packet_field, data;
    sv_pb_next(&w, &packet_field);
    w = sv_pb_sub(&packet_field);
    sv_pb_next(&w, &data);
    packet(&broken, 0);
    sv_put_bytes(&broken.b, SV_PF_PACKET_COMPRESSED, data.bytes, (size_t)data.u / 2);
    end(&broken);
    named_event(&broken, 1, 5, SV_PF_TYPE_INSTANT, 7, "after");
    read_file(&r, &broken);
    CHECK(r.got.n > 500 && r.got.n < 1900);
    check_finding(&r, SV_DAMAGE, "broken compressed packet", 1, 0);
    CHECK_INT_EQ(r.got.events[r.got.n - 2].ts_ns, 5); /* the loss event follows */
    done(&r, &f);
    sv_buf_fini(&inner.b);
    sv_buf_fini(&broken.b);
}

/* ---- sequences ---- */

TEST(resolves_interned_names_and_incremental_clocks)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 64, 7);
    packet(&f, 1);
    interned(&f, SV_PF_INTERNED_NAMES, 1, "forward");
    interned(&f, SV_PF_INTERNED_CATEGORIES, 3, "nn");
    interned(&f, SV_PF_INTERNED_NAMES, 1ull << 40, "far away");
    end(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 5000, 0, false}, {64, 100, 0, true}}, 2);
    event(&f, 1, 10, SV_PF_TYPE_BEGIN);
    u64(&f, SV_PF_EVENT_NAME_IID, 1);
    u64(&f, SV_PF_EVENT_CATEGORY_IIDS, 3);
    event_end(&f);
    event(&f, 1, 10, SV_PF_TYPE_END);
    event_end(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_NAME_IID, 1ull << 40);
    event_end(&f);
    size_t unknown = f.b.len;
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_NAME_IID, 9);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "5010 0 begin #0000000000000007 forward nn\n"
                                "5020 0 end #0000000000000007  \n"
                                "5025 0 instant #0000000000000007 far away \n"
                                "5026 0 instant #0000000000000007  \n");
    CHECK_UINT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_BOOTTIME);
    check_finding(&r, SV_DAMAGE, "unknown interned number", 1, (int64_t)unknown);
    done(&r, &f);
}

TEST(sequences_do_not_share_numbers_and_clearing_forgets_them)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (uint32_t seq = 1; seq <= 2; seq++) {
        cleared(&f, seq, 0, seq);
        packet(&f, seq);
        interned(&f, SV_PF_INTERNED_NAMES, 1, seq == 1 ? "one" : "two");
        end(&f);
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (i == 2) {
            cleared(&f, 1, 0, 1);
            packet(&f, 1);
            interned(&f, SV_PF_INTERNED_NAMES, 1, "one again");
            end(&f);
        }
        event(&f, i % 2 + 1, i, SV_PF_TYPE_INSTANT);
        u64(&f, SV_PF_EVENT_NAME_IID, 1);
        event_end(&f);
    }
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "0 0 instant #0000000000000001 one \n"
                                "1 0 instant #0000000000000002 two \n"
                                "2 0 instant #0000000000000001 one again \n"
                                "3 0 instant #0000000000000002 two \n");
    check_no_damage(&r);
    done(&r, &f);
}

TEST(a_number_defined_twice_keeps_its_first_meaning)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 7);
    packet(&f, 1);
    interned(&f, SV_PF_INTERNED_NAMES, 1, "first");
    interned(&f, SV_PF_INTERNED_NAMES, 1, "first");
    interned(&f, SV_PF_INTERNED_NAMES, 1, "second");
    end(&f);
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_NAME_IID, 1);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "1 0 instant #0000000000000007 first \n");
    check_finding(&r, SV_DAMAGE, "interned number defined twice", 1, -1);
    done(&r, &f);
}

TEST(texts_of_a_cleared_state_stay_until_their_events_have_left)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 100; i++) {
        char value[32];
        snprintf(value, sizeof value, "value %u", i);
        cleared(&f, 1, 0, 7);
        packet(&f, 1);
        interned(&f, SV_PF_INTERNED_ANNOTATION_NAMES, 1, "k");
        interned(&f, SV_PF_INTERNED_ANNOTATION_STRINGS, 1, value);
        end(&f);
        event(&f, 1, i, SV_PF_TYPE_INSTANT);
        size_t a = open_message(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS);
        u64(&f, SV_PF_ANN_NAME_IID, 1);
        u64(&f, SV_PF_ANN_STRING_IID, 1);
        close_message(&f, a);
        event_end(&f);
    }
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 100);
    for (size_t i = 0; i < r.got.n; i++) {
        char value[32];
        int n = snprintf(value, sizeof value, "value %zu", i);
        CHECK_UINT_EQ(r.got.events[i].args[0].size, n);
        CHECK_MEM_EQ(r.got.events[i].args[0].text, value, (size_t)n);
    }
    done(&r, &f);
}

TEST(lost_packets_are_events)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 7);
    named_event(&f, 1, 10, SV_PF_TYPE_INSTANT, 7, "before");
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    end(&f);
    for (unsigned i = 0; i < 2; i++) { /* they need what may have been lost */
        packet(&f, 1);
        u64(&f, SV_PF_PACKET_TIMESTAMP, 20 + i);
        u64(&f, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_NEEDS_STATE);
        size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
        u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
        close_message(&f, e);
        end(&f);
    }
    cleared(&f, 1, 0, 7);
    named_event(&f, 1, 30, SV_PF_TYPE_INSTANT, 7, "after");
    packet(&f, 2); /* the first packet of a sequence says so for no reason */
    u64(&f, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    end(&f);
    named_event(&f, 2, 40, SV_PF_TYPE_INSTANT, 8, "other");
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "10 0 instant #0000000000000007 before \n"
                                "30 0 instant #0000000000000007 after \n"
                                "10 20 loss #0000000000000007 packets dropped  int:2\n"
                                "40 0 instant #0000000000000008 other \n");
    check_finding(&r, SV_DAMAGE, "packet without the state it needs", 2, -1);
    check_finding(&r, SV_NOTE, "packets dropped while recording", 1, -1);
    done(&r, &f);
}

TEST(a_loss_at_the_end_is_reported_too)
{
    struct file f;
    struct read r;
    file_init(&f);
    named_event(&f, 1, 10, SV_PF_TYPE_INSTANT, 7, "before");
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "10 0 instant #0000000000000007 before \n"
                                "10 0 loss #0000000000000007 packets dropped  int:0\n");
    done(&r, &f);
}

TEST(a_loss_longer_than_time_itself)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 1000, 0, false}, {3, INT64_MAX, 0, false}}, 2);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_TIMESTAMP, 5);
    u64(&f, SV_PF_PACKET_CLOCK_ID, 3);
    size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
    u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    close_message(&f, e);
    end(&f);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    end(&f);
    cleared(&f, 1, 0, 7);
    named_event(&f, 1, 1000002000, SV_PF_TYPE_INSTANT, 7, "after");
    read_file(&r, &f);
    REQUIRE(r.got.n == 3 && r.got.events[2].kind == SV_LOSS);
    CHECK_INT_EQ(r.got.events[2].dur_ns, INT64_MAX);
    done(&r, &f);
}

TEST(a_loss_after_events_that_wait_in_vain)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 1000, 0, false}, {3, 500, 0, false}}, 2);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    end(&f);
    packet(&f, 2); /* on a clock that nothing relates to the others */
    u64(&f, SV_PF_PACKET_TIMESTAMP, 5);
    u64(&f, SV_PF_PACKET_CLOCK_ID, 9);
    size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
    u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    close_message(&f, e);
    end(&f);
    read_file(&r, &f);
    REQUIRE(r.got.n == 1);
    CHECK_INT_EQ(r.got.events[0].kind, SV_LOSS);
    check_finding(&r, SV_DAMAGE, "events on a clock without snapshot", 1, -1);
    done(&r, &f);
}

TEST(packets_without_a_place_are_counted_by_name)
{
    struct file f;
    struct read r;
    file_init(&f);
    static const uint32_t ids[] = {SV_PF_PACKET_FTRACE_EVENTS, SV_PF_PACKET_FTRACE_EVENTS,
                                   SV_PF_PACKET_PROFILE_PACKET, 199, 1500};
    for (size_t i = 0; i < TEST_COUNT(ids); i++) {
        packet(&f, 1);
        text(&f, ids[i], "");
        end(&f);
    }
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    text(&f, 25, "");
    text(&f, 1234, "");
    event_end(&f);
    read_file(&r, &f);
    check_finding(&r, SV_SKIPPED, "ftrace_events packet", 2, 0);
    check_finding(&r, SV_SKIPPED, "profile_packet packet", 1, -1);
    check_finding(&r, SV_SKIPPED, "packet of unknown type 199", 1, -1);
    check_finding(&r, SV_SKIPPED, "packet of an unknown type", 1, -1);
    check_finding(&r, SV_SKIPPED, "track_event field chrome_user_event", 1, -1);
    check_finding(&r, SV_SKIPPED, "track_event extension field", 1, -1);
    CHECK_UINT_EQ(r.got.n, 1);
    done(&r, &f);
}

/* ---- clocks ---- */

static void clocked_event(struct file *f, uint32_t seq, uint64_t ts, uint32_t clock)
{
    packet(f, seq);
    u64(f, SV_PF_PACKET_TIMESTAMP, ts);
    if (clock)
        u64(f, SV_PF_PACKET_CLOCK_ID, clock);
    size_t e = open_message(f, SV_PF_PACKET_TRACK_EVENT);
    u64(f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    u64(f, SV_PF_EVENT_TRACK_UUID, 7);
    text(f, SV_PF_EVENT_NAME, "e");
    close_message(f, e);
    end(f);
}

static void check_times(struct read *r, const int64_t *expected, size_t n)
{
    CHECK_UINT_EQ(r->got.n, n);
    for (size_t i = 0; i < n && i < r->got.n; i++) {
        CONTEXT("event %zu", i);
        CHECK_INT_EQ(r->got.events[i].ts_ns, expected[i]);
    }
}

TEST(times_convert_by_the_latest_earlier_snapshot)
{
    struct file f;
    struct read r;
    file_init(&f);
    /* monotonic is 1000 behind, then 900 */
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 2000, 0, false}, {3, 1000, 0, false}}, 2);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 5900, 0, false}, {3, 5000, 0, false}}, 2);
    clocked_event(&f, 1, 500, 3);
    clocked_event(&f, 1, 4999, 3);
    clocked_event(&f, 1, 5000, 3);
    clocked_event(&f, 1, 1, 6);
    clocked_event(&f, 1, 2, 0);
    read_file(&r, &f);
    check_times(&r, (int64_t[]){1500, 5999, 5900, 1, 2}, 5);
    CHECK_UINT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_BOOTTIME);
    CHECK_UINT_EQ(r.dict->clocks.n, 2);
    check_no_damage(&r);
    done(&r, &f);
}

TEST(clocks_without_a_common_snapshot_convert_over_others)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 10000, 0, false}, {3, 1000, 0, false}}, 2);
    snapshot(&f, 1, 0, (struct clock_row[]){{3, 2000, 0, false}, {5, 200, 0, false}}, 2);
    snapshot(&f, 1, 0, (struct clock_row[]){{5, 300, 0, false}, {64, 7, 10, false}}, 2);
    clocked_event(&f, 1, 1, 64); /* 10 ns of the clock = 240 raw = 2040 monotonic = 11040 */
    read_file(&r, &f);
    check_times(&r, (int64_t[]){10000 + 1000 + 100 - 60}, 1);
    done(&r, &f);
}

TEST(units_and_primary_clocks)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 3,
             (struct clock_row[]){{6, 9000, 0, false}, {3, 1000, 0, false}, {65, 2, 1000, false}},
             3);
    clocked_event(&f, 1, 1500, 0); /* monotonic by default */
    clocked_event(&f, 1, 9100, 6);
    clocked_event(&f, 1, 3, 65);
    read_file(&r, &f);
    check_times(&r, (int64_t[]){1500, 1100, 2000}, 3);
    CHECK_UINT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_MONOTONIC);
    done(&r, &f);
}

TEST(events_wait_for_a_snapshot_that_comes_later)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 600; i++) {
        event(&f, 1, 10 + i, SV_PF_TYPE_INSTANT);
        u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
        size_t a = open_message(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS);
        text(&f, SV_PF_ANN_NAME, "k");
        text(&f, SV_PF_ANN_STRING, "kept while waiting");
        close_message(&f, a);
        close_message(&f, f.payload);
        u64(&f, SV_PF_PACKET_CLOCK_ID, 3);
        end(&f);
    }
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 9000, 0, false}, {3, 1000, 0, false}}, 2);
    clocked_event(&f, 1, 20, 3);
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 601);
    CHECK_INT_EQ(r.got.events[0].ts_ns, 8010);
    CHECK_INT_EQ(r.got.events[599].ts_ns, 8609);
    CHECK_MEM_EQ(r.got.events[599].args[0].text, "kept while waiting", 18);
    CHECK_INT_EQ(r.got.events[600].ts_ns, 8020);
    check_no_damage(&r);
    done(&r, &f);
}

TEST(without_any_snapshot_the_clock_in_use_is_the_trace_clock)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 200000; i++) /* more than may wait */
        clocked_event(&f, 1, i, 3);
    clocked_event(&f, 1, 77, 9); /* unrelated */
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 200000);
    CHECK_INT_EQ(r.got.events[199999].ts_ns, 199999);
    CHECK_UINT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_MONOTONIC);
    check_finding(&r, SV_NOTE, "no clock snapshot", 1, -1);
    check_finding(&r, SV_DAMAGE, "events on a clock without snapshot", 1, -1);
    done(&r, &f);
}

TEST(impossible_times_are_dropped_and_reported)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 0,
             (struct clock_row[]){{6, 1000, 0, false}, {64, 0, 0, true}, {65, 1, 1u << 31, false}},
             3);
    clocked_event(&f, 1, 1ull << 63, 6);
    clocked_event(&f, 1, UINT64_MAX, 0);
    clocked_event(&f, 1, INT64_MAX, 64);
    clocked_event(&f, 1, 1ull << 40, 65);
    event(&f, 1, 0, SV_PF_TYPE_INSTANT);
    event_end(&f);
    packet(&f, 1); /* no time at all */
    size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
    u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    close_message(&f, e);
    end(&f);
    read_file(&r, &f);
    check_times(&r, (int64_t[]){0}, 1);
    check_finding(&r, SV_DAMAGE, "timestamp out of range", 3, -1);
    check_finding(&r, SV_DAMAGE, "track event without timestamp", 1, -1);
    done(&r, &f);
}

TEST(a_sequence_clock_that_jumps_back_follows_its_newest_snapshot)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 64, 7);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 1000, 0, false}, {64, 500, 0, true}}, 2);
    clocked_event(&f, 1, 10, 0);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 2000, 0, false}, {64, 0, 0, true}}, 2);
    clocked_event(&f, 1, 10, 0);
    read_file(&r, &f);
    check_times(&r, (int64_t[]){1010, 2010}, 2);
    check_finding(&r, SV_NOTE, "clock goes back", 1, -1);
    done(&r, &f);
}

TEST(machines_have_their_own_pids_and_clocks)
{
    struct file f;
    struct read r;
    file_init(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 1000, 0, false}, {3, 500, 0, false}}, 2);
    for (uint32_t machine = 0; machine < 2; machine++) {
        packet(&f, 1);
        u64(&f, SV_PF_PACKET_MACHINE_ID, machine);
        size_t tree = open_message(&f, SV_PF_PACKET_PROCESS_TREE);
        size_t process = open_message(&f, SV_PF_TREE_PROCESSES);
        u64(&f, SV_PF_TREE_PID, 5);
        text(&f, SV_PF_TREE_CMDLINE, machine ? "guest" : "host");
        close_message(&f, process);
        close_message(&f, tree);
        end(&f);
    }
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_MACHINE_ID, 1);
    u64(&f, SV_PF_PACKET_TIMESTAMP, 42);
    u64(&f, SV_PF_PACKET_CLOCK_ID, 6);
    size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
    u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    close_message(&f, e);
    end(&f);
    read_file(&r, &f);
    check_times(&r, (int64_t[]){42}, 1);
    CHECK_UINT_EQ(r.dict->tracks[1].space, 0);
    CHECK(r.dict->tracks[2].space != 0);
    CHECK_INT_EQ(r.dict->tracks[2].pid, 5);
    check_finding(&r, SV_NOTE, "machine without clock synchronisation", 1, -1);
    done(&r, &f);
}

TEST(what_comes_before_a_cleared_state_is_used_and_reported)
{
    struct file f;
    struct read r;
    file_init(&f);
    packet(&f, 0); /* no sequence, no flags: many small writers do so */
    interned(&f, SV_PF_INTERNED_NAMES, 1, "kept");
    end(&f);
    event(&f, 0, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_NAME_IID, 1);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "5 0 instant Default Track#0000000000000000 kept \n");
    check_finding(&r, SV_NOTE, "interned data before a cleared state", 1, 0);
    check_finding(&r, SV_NOTE, "track event without sequence id", 1, -1);
    done(&r, &f);
}
