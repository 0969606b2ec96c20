/* The Perfetto reader: tracks, track events, arguments, legacy phases, counters, GPU, metadata. */
#include "core/perfetto/stave.h"
#include "tests/unit/pffile.h"

#include <stdio.h>
#include <string.h>

/* ---- tracks ---- */

static void process_part(struct file *f, int64_t pid, const char *name)
{
    size_t p = open_message(f, SV_PF_TRACK_PROCESS);
    u64(f, SV_PF_PROCESS_PID, (uint64_t)pid);
    if (name)
        text(f, SV_PF_PROCESS_NAME, name);
    close_message(f, p);
}

static void thread_part(struct file *f, int64_t pid, int64_t tid, const char *name)
{
    size_t t = open_message(f, SV_PF_TRACK_THREAD);
    u64(f, SV_PF_THREAD_PID, (uint64_t)pid);
    u64(f, SV_PF_THREAD_TID, (uint64_t)tid);
    if (name)
        text(f, SV_PF_THREAD_NAME, name);
    close_message(f, t);
}

TEST(descriptors_become_tracks)
{
    struct file f;
    struct read r;
    file_init(&f);
    descriptor(&f, 1, 0, "ignored");
    process_part(&f, 10, "train");
    text(&f, SV_PF_TRACK_DESCRIPTION, "rank 0");
    u64(&f, SV_PF_TRACK_SIBLING_ORDER_RANK, (uint64_t)-3);
    descriptor_end(&f);
    descriptor(&f, 2, 1, NULL);
    thread_part(&f, 10, 11, "main");
    descriptor_end(&f);
    descriptor(&f, 3, 2, "queue");
    u64(&f, SV_PF_TRACK_CHILD_ORDERING, SV_ORDER_EXPLICIT);
    u64(&f, SV_PF_TRACK_SIBLING_MERGE, SV_MERGE_BY_KEY);
    text(&f, SV_PF_TRACK_MERGE_KEY, "q");
    descriptor_end(&f);
    descriptor(&f, 4, 1, "memory");
    size_t c = open_message(&f, SV_PF_TRACK_COUNTER);
    u64(&f, SV_PF_COUNTER_UNIT, SV_PF_UNIT_BYTES);
    u64(&f, SV_PF_COUNTER_MULTIPLIER, 1024);
    u64(&f, SV_PF_COUNTER_IS_INCREMENTAL, 1);
    text(&f, SV_PF_COUNTER_CATEGORIES, "mem");
    text(&f, SV_PF_COUNTER_CATEGORIES, "gpu");
    close_message(&f, c);
    descriptor_end(&f);
    descriptor(&f, 5, 0, NULL);
    text(&f, SV_PF_TRACK_STATIC_NAME, "static");
    c = open_message(&f, SV_PF_TRACK_COUNTER);
    text(&f, SV_PF_COUNTER_UNIT_NAME, "frames");
    close_message(&f, c);
    descriptor_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(tracks_of(&r),
                 "process 0000000000000001 pid=10 name=train desc=rank 0 order=-3\n"
                 "thread 0000000000000002 in 0000000000000001 pid=10 tid=11 name=main\n"
                 "custom 0000000000000003 in 0000000000000002 name=queue key=q children=3 merge=3\n"
                 "counter 0000000000000004 in 0000000000000001 name=memory unit=bytes cat=mem,gpu "
                 "x1024 incremental\n"
                 "counter 0000000000000005 name=static unit=frames\n");
    check_no_damage(&r);
    CHECK_UINT_EQ(sv_dict_process_of(r.dict, 3), 1);
    done(&r, &f);
}

static void tree_thread(struct file *f, int64_t pid, int64_t tid, const char *name)
{
    packet(f, 1);
    size_t tree = open_message(f, SV_PF_PACKET_PROCESS_TREE);
    size_t thread = open_message(f, SV_PF_TREE_THREADS);
    u64(f, SV_PF_TREE_TID, (uint64_t)tid);
    u64(f, SV_PF_TREE_TGID, (uint64_t)pid);
    text(f, SV_PF_TREE_THREAD_NAME, name);
    close_message(f, thread);
    close_message(f, tree);
    end(f);
}

TEST(a_thread_known_by_uuid_and_by_number_is_one_track)
{
    for (int tree_first = 0; tree_first < 2; tree_first++) {
        struct file f;
        struct read r;
        CONTEXT("tree first: %d", tree_first);
        file_init(&f);
        if (tree_first)
            tree_thread(&f, 10, 11, "from the tree");
        descriptor(&f, 1, 0, NULL);
        process_part(&f, 10, "p");
        descriptor_end(&f);
        descriptor(&f, 2, 1, NULL);
        thread_part(&f, 10, 11, "from the descriptor");
        descriptor_end(&f);
        if (!tree_first)
            tree_thread(&f, 10, 11, "from the tree");
        named_event(&f, 1, 5, SV_PF_TYPE_INSTANT, 2, "e");
        read_file(&r, &f);
        CHECK_UINT_EQ(r.dict->n_tracks, 3);
        sv_track t = r.got.events[0].track;
        CHECK_INT_EQ(r.dict->tracks[t].tid, 11);
        CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[t].name).bytes, "from the descriptor");
        CHECK_INT_EQ(r.dict->tracks[sv_dict_process_of(r.dict, t)].pid, 10);
        done(&r, &f);
    }
}

TEST(damaged_hierarchies_are_repaired)
{
    struct file f;
    struct read r;
    file_init(&f);
    descriptor(&f, 1, 2, "a");
    descriptor_end(&f);
    descriptor(&f, 2, 1, "b"); /* its own grandparent */
    descriptor_end(&f);
    descriptor(&f, 3, 99, "orphan");
    descriptor_end(&f);
    descriptor(&f, 3, 0, NULL); /* a thread now */
    thread_part(&f, 1, 2, "t");
    descriptor_end(&f);
    for (uint64_t i = 0; i < 200; i++) {
        descriptor(&f, 1000 + i, i ? 999 + i : 0, "deep");
        descriptor_end(&f);
    }
    named_event(&f, 1, 5, SV_PF_TYPE_INSTANT, 3, "kept");
    packet(&f, 1);
    size_t d = open_message(&f, SV_PF_PACKET_TRACK_DESCRIPTOR);
    text(&f, SV_PF_TRACK_NAME, "no uuid");
    close_message(&f, d);
    end(&f);
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 1);
    check_finding(&r, SV_DAMAGE, "track is its own ancestor", 1, -1);
    check_finding(&r, SV_DAMAGE, "parent track without descriptor", 1, -1);
    check_finding(&r, SV_DAMAGE, "track described twice", 1, -1);
    check_finding(&r, SV_DAMAGE, "track descriptor without uuid", 1, -1);
    for (sv_track t = 1; t < r.dict->n_tracks; t++) {
        unsigned steps = 0;
        for (sv_track up = t; up && steps < 1000; up = r.dict->tracks[up].parent)
            steps++;
        CHECK(steps <= 101);
    }
    done(&r, &f);
}

/* Uuids of a file may be those that Stave gives: here a process has its thread's. */
TEST(a_process_with_the_uuid_of_its_thread_is_not_its_own_parent)
{
    struct file f;
    struct read r;
    file_init(&f);
    descriptor(&f, sv_uuid_thread(0, 7, 9), 0, "both");
    process_part(&f, 7, "p");
    descriptor_end(&f);
    packet(&f, 1);
    size_t t = open_message(&f, SV_PF_PACKET_THREAD_DESCRIPTOR);
    u64(&f, SV_PF_THREAD_PID, 7);
    u64(&f, SV_PF_THREAD_TID, 9);
    close_message(&f, t);
    end(&f);
    read_file(&r, &f);
    check_finding(&r, SV_DAMAGE, "track is its own ancestor", 1, -1);
    for (sv_track i = 1; i < r.dict->n_tracks; i++)
        CHECK(r.dict->tracks[i].parent != i);
    done(&r, &f);
}

TEST(events_without_a_track_are_on_their_thread_or_the_default_track)
{
    struct file f;
    struct read r;
    file_init(&f);
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    event_end(&f);
    packet(&f, 2);
    u64(&f, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    size_t t = open_message(&f, SV_PF_PACKET_THREAD_DESCRIPTOR);
    u64(&f, SV_PF_THREAD_PID, 5);
    u64(&f, SV_PF_THREAD_TID, 6);
    text(&f, SV_PF_THREAD_NAME, "old style");
    u64(&f, SV_PF_THREAD_REFERENCE_US, 1000);
    u64(&f, SV_PF_THREAD_REFERENCE_THREAD_US, 50);
    close_message(&f, t);
    end(&f);
    for (unsigned i = 0; i < 2; i++) {
        packet(&f, 2);
        size_t e = open_message(&f, SV_PF_PACKET_TRACK_EVENT);
        u64(&f, SV_PF_EVENT_TYPE, i ? SV_PF_TYPE_END : SV_PF_TYPE_BEGIN);
        u64(&f, SV_PF_EVENT_TIMESTAMP_DELTA_US, 10);
        u64(&f, SV_PF_EVENT_THREAD_TIME_DELTA_US, 2);
        close_message(&f, e);
        end(&f);
    }
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 3);
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[r.got.events[0].track].name).bytes,
                 "Default Track");
    CHECK_INT_EQ(r.dict->tracks[r.got.events[1].track].tid, 6);
    CHECK_INT_EQ(r.got.events[1].ts_ns, 1010000);
    CHECK_INT_EQ(r.got.events[1].args[0].type, SV_ARG_THREAD_TIME);
    CHECK_INT_EQ(r.got.events[1].args[0].i, 52000);
    CHECK_INT_EQ(r.got.events[2].ts_ns, 1020000);
    done(&r, &f);
}

TEST(a_space_keeps_two_files_apart)
{
    struct file f;
    struct read r[2];
    file_init(&f);
    descriptor(&f, 1, 0, NULL);
    process_part(&f, 10, "p");
    descriptor_end(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 1);
    sv_put_fixed64(&f.b, SV_PF_EVENT_FLOW_IDS, 77);
    event_end(&f);
    for (uint32_t i = 0; i < 2; i++) {
        read_bytes(&r[i], f.b.data, f.b.len, 3 + i);
        CHECK_UINT_EQ(r[i].dict->tracks[1].space, 3 + i);
        CHECK_INT_EQ(r[i].dict->tracks[1].pid, 10);
    }
    CHECK(r[0].dict->tracks[1].uuid != r[1].dict->tracks[1].uuid);
    CHECK(r[0].dict->tracks[1].uuid != 1);
    CHECK(r[0].got.events[0].args[0].u != r[1].got.events[0].args[0].u);
    done(&r[0], NULL);
    done(&r[1], &f);
}

/* ---- arguments ---- */

static size_t annotation(struct file *f, uint32_t field, const char *name)
{
    size_t a = open_message(f, field);
    if (name)
        text(f, SV_PF_ANN_NAME, name);
    return a;
}

TEST(annotations_of_every_type)
{
    struct file f;
    struct read r;
    size_t a, b, c;
    file_init(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
#define SCALAR(name, put)                                    \
    a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, name); \
    put;                                                     \
    close_message(&f, a)
    SCALAR("int", sv_put_i64(&f.b, SV_PF_ANN_INT, -5));
    SCALAR("small", u64(&f, SV_PF_ANN_UINT, 5));
    SCALAR("large", u64(&f, SV_PF_ANN_UINT, UINT64_MAX));
    SCALAR("bool", u64(&f, SV_PF_ANN_BOOL, 1));
    SCALAR("double", sv_put_double(&f.b, SV_PF_ANN_DOUBLE, 1.5));
    SCALAR("text", text(&f, SV_PF_ANN_STRING, "a \"b\""));
    SCALAR("pointer", u64(&f, SV_PF_ANN_POINTER, 0xbeef));
    SCALAR("nothing", (void)0);
    a = open_message(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS); /* the name comes last */
    b = annotation(&f, SV_PF_ANN_DICT, "x");
    u64(&f, SV_PF_ANN_INT, 1);
    close_message(&f, b);
    b = annotation(&f, SV_PF_ANN_DICT, "list");
    for (unsigned i = 0; i < 2; i++) {
        c = annotation(&f, SV_PF_ANN_ARRAY, NULL);
        u64(&f, SV_PF_ANN_INT, 10 + i);
        close_message(&f, c);
    }
    close_message(&f, b);
    text(&f, SV_PF_ANN_NAME, "dict");
    close_message(&f, a);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r),
                 "5 0 instant #0000000000000007   int=int:-5 small=int:5 "
                 "large=uint:18446744073709551615 bool=bool:1 double=double:1.5 "
                 "text='a \"b\"' pointer=pointer:48879 nothing=null dict=dict(4) x=int:1 "
                 "list=array(2) int:10 int:11\n");
    check_no_damage(&r);
    done(&r, &f);
}

TEST(annotations_in_their_old_nested_form)
{
    struct file f;
    struct read r;
    file_init(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "old");
    size_t n = open_message(&f, SV_PF_ANN_NESTED);
    u64(&f, SV_PF_NESTED_TYPE, SV_PF_NESTED_IS_DICT);
    text(&f, SV_PF_NESTED_DICT_KEYS, "k1");
    text(&f, SV_PF_NESTED_DICT_KEYS, "k2");
    size_t v = open_message(&f, SV_PF_NESTED_DICT_VALUES);
    text(&f, SV_PF_NESTED_STRING, "v1");
    close_message(&f, v);
    v = open_message(&f, SV_PF_NESTED_DICT_VALUES);
    u64(&f, SV_PF_NESTED_TYPE, SV_PF_NESTED_IS_ARRAY);
    for (unsigned i = 0; i < 2; i++) {
        size_t m = open_message(&f, SV_PF_NESTED_ARRAY_VALUES);
        u64(&f, SV_PF_NESTED_INT, i);
        close_message(&f, m);
    }
    close_message(&f, v);
    close_message(&f, n);
    close_message(&f, a);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "5 0 instant #0000000000000007   old=dict(4) k1='v1' "
                                "k2=array(2) int:0 int:1\n");
    done(&r, &f);
}

TEST(annotations_that_are_json)
{
    static const struct {
        const char *json, *expected;
        bool is_damaged;
    } rows[] = {
        {"1", "j=int:1", false},
        {" -7 ", "j=int:-7", false},
        {"18446744073709551615", "j=uint:18446744073709551615", false},
        {"0.5", "j=double:0.5", false},
        {"1e3", "j=double:1000", false},
        {"true", "j=bool:1", false},
        {"null", "j=null", false},
        {"{}", "j=dict(0)", false},
        {"[]", "j=array(0)", false},
        {"\"x\\ny\"", "j='x\\ny'", false},
        {"{\"a\":[1,{\"b\":\"c\"}],\"d\":false}",
         "j=dict(5) a=array(3) int:1 dict(1) b='c' d=bool:0", false},
        {"{\"a\":1", "j='{\"a\":1'", true},
        {"{\"a\":1}}", "j='{\"a\":1}}'", true},
        {"[1,]", "j='[1,]'", true},
        {"nope", "j='nope'", true},
        {"", "j=''", true},
        {"\"\\", "j='\"\\\\'", true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct file f;
        struct read r;
        char expected[200];
        CONTEXT("row %zu", i);
        file_init(&f);
        event(&f, 1, 5, SV_PF_TYPE_INSTANT);
        u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
        size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "j");
        text(&f, SV_PF_ANN_JSON, rows[i].json);
        close_message(&f, a);
        event_end(&f);
        read_file(&r, &f);
        snprintf(expected, sizeof expected, "5 0 instant #0000000000000007   %s\n",
                 rows[i].expected);
        CHECK_STR_EQ(events_of(&r), expected);
        CHECK_UINT_EQ(sv_report_count(&r.report, SV_DAMAGE), rows[i].is_damaged);
        done(&r, &f);
    }
}

TEST(nesting_has_a_limit)
{
    struct file f;
    struct read r;
    size_t marks[200];
    char json[1001];
    file_init(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    marks[0] = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "deep");
    for (unsigned i = 1; i < 200; i++)
        marks[i] = annotation(&f, SV_PF_ANN_ARRAY, NULL);
    for (unsigned i = 200; i-- > 0;)
        close_message(&f, marks[i]);
    size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "json");
    memset(json, '[', 1000);
    json[1000] = '\0';
    text(&f, SV_PF_ANN_JSON, json);
    close_message(&f, a);
    event_end(&f);
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 1);
    check_finding(&r, SV_DAMAGE, "arguments nested too deeply", 1, -1);
    check_finding(&r, SV_DAMAGE, "annotation with invalid JSON", 1, -1);
    done(&r, &f);
}

TEST(too_many_arguments_are_cut_and_reported)
{
    struct file f;
    struct read r;
    file_init(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    for (unsigned i = 0; i < SV_ARGS_MAX + 100; i++) {
        size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "k");
        u64(&f, SV_PF_ANN_INT, i);
        close_message(&f, a);
    }
    event_end(&f);
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.events[0].n_args, SV_ARGS_MAX);
    check_finding(&r, SV_DAMAGE, "too many arguments", 1, 0);
    done(&r, &f);
}

TEST(damaged_annotations_leave_the_event)
{
    struct file f;
    struct read r;
    file_init(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, NULL);
    u64(&f, SV_PF_ANN_INT, 1);
    close_message(&f, a);
    a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "bad");
    sv_buf_add(&f.b, "\x07", 1);
    close_message(&f, a);
    a = open_message(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS);
    u64(&f, SV_PF_ANN_NAME_IID, 44);
    u64(&f, SV_PF_ANN_INT, 2);
    close_message(&f, a);
    a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "typed");
    text(&f, SV_PF_ANN_PROTO_TYPE, ".some.Message");
    text(&f, SV_PF_ANN_PROTO_VALUE, "");
    close_message(&f, a);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "5 0 instant #0000000000000007   unknown(44)=int:2\n");
    check_finding(&r, SV_DAMAGE, "malformed annotation", 2, -1);
    check_finding(&r, SV_DAMAGE, "unknown interned number", 1, -1);
    check_finding(&r, SV_SKIPPED, "annotation with a protobuf value", 1, -1);
    done(&r, &f);
}

TEST(typed_parts_become_arguments)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 7);
    packet(&f, 1);
    size_t d = open_message(&f, SV_PF_PACKET_INTERNED_DATA);
    size_t s = open_message(&f, SV_PF_INTERNED_SOURCE_LOCATIONS);
    u64(&f, SV_PF_SOURCE_IID, 1);
    text(&f, SV_PF_SOURCE_FILE, "a.c");
    text(&f, SV_PF_SOURCE_FUNCTION, "f");
    u64(&f, SV_PF_SOURCE_LINE, 12);
    close_message(&f, s);
    close_message(&f, d);
    interned(&f, SV_PF_INTERNED_LOG_BODIES, 2, "hello");
    interned(&f, SV_PF_INTERNED_FUNCTIONS, 3, "main");
    interned(&f, SV_PF_INTERNED_CORRELATION_STRINGS, 4, "request-9");
    d = open_message(&f, SV_PF_PACKET_INTERNED_DATA);
    s = open_message(&f, SV_PF_INTERNED_FRAMES);
    u64(&f, SV_PF_INTERNED_IID, 5);
    u64(&f, SV_PF_FRAME_FUNCTION_IID, 3);
    close_message(&f, s);
    s = open_message(&f, SV_PF_INTERNED_FRAMES);
    u64(&f, SV_PF_INTERNED_IID, 6);
    u64(&f, SV_PF_FRAME_REL_PC, 255);
    close_message(&f, s);
    s = open_message(&f, SV_PF_INTERNED_CALLSTACKS);
    u64(&f, SV_PF_INTERNED_IID, 7);
    u64(&f, SV_PF_INTERNED_TEXT, 5);
    u64(&f, SV_PF_INTERNED_TEXT, 6);
    close_message(&f, s);
    close_message(&f, d);
    end(&f);
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_SOURCE_LOCATION_IID, 1);
    s = open_message(&f, SV_PF_EVENT_TASK_EXECUTION);
    u64(&f, SV_PF_TASK_POSTED_FROM_IID, 1);
    close_message(&f, s);
    s = open_message(&f, SV_PF_EVENT_LOG_MESSAGE);
    u64(&f, SV_PF_LOG_BODY_IID, 2);
    close_message(&f, s);
    u64(&f, SV_PF_EVENT_CALLSTACK_IID, 7);
    u64(&f, SV_PF_EVENT_CORRELATION_STR_IID, 4);
    event_end(&f);
    event(&f, 1, 6, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_CORRELATION_ID, 99);
    s = open_message(&f, SV_PF_EVENT_CALLSTACK);
    for (unsigned i = 0; i < 2; i++) {
        size_t frame = open_message(&f, SV_PF_INLINE_FRAMES);
        text(&f, SV_PF_INLINE_FUNCTION, i ? "leaf" : "root");
        if (i) {
            text(&f, SV_PF_INLINE_FILE, "leaf.c");
            u64(&f, SV_PF_INLINE_LINE, 3);
        }
        close_message(&f, frame);
    }
    close_message(&f, s);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r),
                 "5 0 instant #0000000000000007   source(3) file='a.c' function='f' line=int:12 "
                 "task=dict(4) posted_from=dict(3) file='a.c' function='f' line=int:12 "
                 "log_message=dict(1) message='hello' stack(2) 'main' '0xff' "
                 "correlation_id='request-9'\n"
                 "6 0 instant #0000000000000007   correlation:99 stack(2) 'root' 'leaf "
                 "(leaf.c:3)'\n");
    check_no_damage(&r);
    done(&r, &f);
}

TEST(flows_of_both_generations)
{
    struct file f;
    struct read r;
    file_init(&f);
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    u64(&f, SV_PF_EVENT_FLOW_IDS_OLD, 5);
    u64(&f, SV_PF_EVENT_END_FLOW_IDS_OLD, 6);
    event_end(&f);
    event(&f, 1, 2, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    sv_put_fixed64(&f.b, SV_PF_EVENT_FLOW_IDS, 5);
    sv_put_fixed64(&f.b, SV_PF_EVENT_END_FLOW_IDS, 6);
    u64(&f, SV_PF_EVENT_FLOW_IDS_OLD, 5); /* a copy for old readers */
    event_end(&f);
    event(&f, 1, 3, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    sv_put_bytes(&f.b, SV_PF_EVENT_FLOW_IDS, "\x08\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0", 16);
    sv_put_bytes(&f.b, SV_PF_EVENT_END_FLOW_IDS_OLD, "\x0a\x0b", 2);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "1 0 instant #0000000000000007   flow:5 flow_end:6\n"
                                "2 0 instant #0000000000000007   flow:5 flow_end:6\n"
                                "3 0 instant #0000000000000007   flow:8 flow:9 flow_end:10 "
                                "flow_end:11\n");
    done(&r, &f);
}

TEST(categories_are_joined)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 7);
    packet(&f, 1);
    interned(&f, SV_PF_INTERNED_CATEGORIES, 1, "a");
    interned(&f, SV_PF_INTERNED_CATEGORIES, 2, "b");
    end(&f);
    event(&f, 1, 1, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_CATEGORY_IIDS, 1);
    u64(&f, SV_PF_EVENT_CATEGORY_IIDS, 2);
    text(&f, SV_PF_EVENT_CATEGORIES, "c");
    event_end(&f);
    event(&f, 1, 2, SV_PF_TYPE_INSTANT);
    sv_put_bytes(&f.b, SV_PF_EVENT_CATEGORY_IIDS, "\x02\x01", 2); /* packed */
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "1 0 instant #0000000000000007  a,b,c\n"
                                "2 0 instant #0000000000000007  b,a\n");
    done(&r, &f);
}

/* ---- counters and states ---- */

TEST(counters_absolute_incremental_and_extra)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 0);
    for (uint64_t uuid = 10; uuid < 13; uuid++) {
        descriptor(&f, uuid, 0, uuid == 10 ? "plain" : uuid == 11 ? "sum" : NULL);
        size_t c = open_message(&f, SV_PF_TRACK_COUNTER);
        if (uuid == 11)
            u64(&f, SV_PF_COUNTER_IS_INCREMENTAL, 1);
        if (uuid == 12) {
            u64(&f, SV_PF_COUNTER_TYPE, SV_PF_COUNTER_THREAD_TIME_NS);
            u64(&f, SV_PF_COUNTER_MULTIPLIER, 1000);
        }
        close_message(&f, c);
        descriptor_end(&f);
    }
    event(&f, 1, 1, 0); /* an annotation before the value */
    size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "k");
    u64(&f, SV_PF_ANN_INT, 1);
    close_message(&f, a);
    u64(&f, SV_PF_EVENT_TYPE, SV_PF_TYPE_COUNTER);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 10);
    u64(&f, SV_PF_EVENT_COUNTER_VALUE, 5);
    event_end(&f);
    for (unsigned i = 0; i < 2; i++) {
        event(&f, 1, 2 + i, SV_PF_TYPE_COUNTER);
        u64(&f, SV_PF_EVENT_TRACK_UUID, 11);
        sv_put_i64(&f.b, SV_PF_EVENT_COUNTER_VALUE, i ? -3 : 10);
        event_end(&f);
    }
    event(&f, 1, 4, SV_PF_TYPE_BEGIN);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    u64(&f, SV_PF_EVENT_EXTRA_COUNTER_UUIDS, 11);
    u64(&f, SV_PF_EVENT_EXTRA_COUNTER_UUIDS, 12);
    u64(&f, SV_PF_EVENT_EXTRA_COUNTER_VALUES, 1);
    u64(&f, SV_PF_EVENT_EXTRA_COUNTER_VALUES, 3);
    u64(&f, SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_UUIDS, 10);
    sv_put_double(&f.b, SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_VALUES, 0.5);
    event_end(&f);
    event(&f, 1, 5, SV_PF_TYPE_COUNTER); /* never described */
    u64(&f, SV_PF_EVENT_TRACK_UUID, 13);
    text(&f, SV_PF_EVENT_NAME, "undeclared");
    sv_put_double(&f.b, SV_PF_EVENT_DOUBLE_COUNTER_VALUE, 2.5);
    event_end(&f);
    event(&f, 1, 6, SV_PF_TYPE_COUNTER);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 10);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "1 0 counter plain#000000000000000a   int:5 k=int:1\n"
                                "2 0 counter sum#000000000000000b   int:10\n"
                                "3 0 counter sum#000000000000000b   int:7\n"
                                "4 0 begin #0000000000000007   thread_time:3000\n"
                                "4 0 counter sum#000000000000000b   int:8\n"
                                "4 0 counter plain#000000000000000a   double:0.5\n"
                                "5 0 counter undeclared#000000000000000d   double:2.5\n");
    check_finding(&r, SV_NOTE, "counter value on a track that is not a counter", 1, -1);
    check_finding(&r, SV_DAMAGE, "counter event without value", 1, -1);
    done(&r, &f);
}

TEST(a_state_ends_the_one_before_it)
{
    struct file f;
    struct read r;
    file_init(&f);
    descriptor(&f, 3, 0, "battery");
    text(&f, SV_PF_TRACK_STATE, "");
    descriptor_end(&f);
    named_event(&f, 1, 10, SV_PF_TYPE_STATE, 3, "charging");
    event(&f, 1, 20, SV_PF_TYPE_STATE);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 3);
    text(&f, SV_PF_EVENT_NAME, "full");
    size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, "percent");
    u64(&f, SV_PF_ANN_INT, 100);
    close_message(&f, a);
    event_end(&f);
    named_event(&f, 1, 30, SV_PF_TYPE_STATE, 3, NULL);
    named_event(&f, 1, 40, SV_PF_TYPE_STATE, 3, NULL);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "10 0 begin battery#0000000000000003 charging \n"
                                "20 0 end battery#0000000000000003  \n"
                                "20 0 begin battery#0000000000000003 full  percent=int:100\n"
                                "30 0 end battery#0000000000000003  \n");
    done(&r, &f);
}

TEST(an_event_without_type_is_dropped_and_reported)
{
    struct file f;
    struct read r;
    file_init(&f);
    named_event(&f, 1, 1, 0, 7, "no type");
    named_event(&f, 1, 2, 99, 7, "unknown type");
    read_file(&r, &f);
    CHECK_UINT_EQ(r.got.n, 0);
    check_finding(&r, SV_DAMAGE, "track event without type", 2, 0);
    done(&r, &f);
}

/* ---- legacy phases ---- */

struct legacy_row {
    const char *phase;
    uint32_t id_field;
    uint64_t id;
    const char *expected; /* without time and name; NULL: no event */
};

TEST(legacy_phases)
{
    static const struct legacy_row rows[] = {
        {"B", 0, 0, "begin thread"},
        {"E", 0, 0, "end thread"},
        {"X", 0, 0, "slice thread 7000"},
        {"i", 0, 0, "instant thread"},
        {"I", 0, 0, "instant thread"},
        {"R", 0, 0, "instant thread"},
        {"b", SV_PF_LEGACY_UNSCOPED_ID, 5, "begin async"},
        {"n", SV_PF_LEGACY_UNSCOPED_ID, 5, "instant async"},
        {"e", SV_PF_LEGACY_UNSCOPED_ID, 5, "end async"},
        {"S", SV_PF_LEGACY_LOCAL_ID, 5, "begin async"},
        {"T", SV_PF_LEGACY_LOCAL_ID, 5, "instant async"},
        {"p", SV_PF_LEGACY_LOCAL_ID, 5, "instant async"},
        {"F", SV_PF_LEGACY_GLOBAL_ID, 5, "end async"},
        {"b", 0, 0, "begin thread"}, /* without id: reported, and kept where it happened */
        {"s", SV_PF_LEGACY_UNSCOPED_ID, 9, "flow thread flow_begin 9"},
        {"t", SV_PF_LEGACY_UNSCOPED_ID, 9, "flow thread flow 9"},
        {"f", SV_PF_LEGACY_UNSCOPED_ID, 9, "flow thread flow_end 9 next"},
        {"P", 0, 0, NULL},
        {"M", 0, 0, NULL},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct file f;
        struct read r;
        char got[100];
        CONTEXT("row %zu, phase %s", i, rows[i].phase);
        file_init(&f);
        descriptor(&f, 2, 0, NULL);
        thread_part(&f, 10, 11, "t");
        descriptor_end(&f);
        event(&f, 1, 5, 0);
        u64(&f, SV_PF_EVENT_TRACK_UUID, 2);
        text(&f, SV_PF_EVENT_NAME, "n");
        text(&f, SV_PF_EVENT_CATEGORIES, "c");
        size_t l = open_message(&f, SV_PF_EVENT_LEGACY_EVENT);
        u64(&f, SV_PF_LEGACY_PHASE, (uint64_t)rows[i].phase[0]);
        u64(&f, SV_PF_LEGACY_DURATION_US, 7);
        if (rows[i].id_field)
            u64(&f, rows[i].id_field, rows[i].id);
        close_message(&f, l);
        event_end(&f);
        read_file(&r, &f);
        CHECK_UINT_EQ(r.got.n, rows[i].expected ? 1 : 0);
        if (rows[i].expected && r.got.n == 1) {
            const struct sv_event *e = &r.got.events[0];
            int n = snprintf(got, sizeof got, "%s %s", sv_kind_name(e->kind),
                             sv_track_kind_name(r.dict->tracks[e->track].kind));
            if (e->kind == SV_SLICE)
                snprintf(got + n, sizeof got - (size_t)n, " %lld", (long long)e->dur_ns);
            else if (e->kind == SV_FLOW)
                snprintf(got + n, sizeof got - (size_t)n, " %s %llu%s",
                         sv_arg_type_name(e->args[0].type), (unsigned long long)e->args[0].u,
                         e->flags & SV_BIND_NEXT ? " next" : "");
            CHECK_STR_EQ(got, rows[i].expected);
            CHECK_STR_EQ(sv_dict_text(r.dict, e->cat).bytes, "c");
        }
        done(&r, &f);
    }
}

TEST(legacy_ids_count_within_their_scope)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 6; i++) {
        event(&f, 1, i, 0);
        text(&f, SV_PF_EVENT_NAME, "n");
        text(&f, SV_PF_EVENT_CATEGORIES, i == 1 ? "other" : "cat");
        size_t l = open_message(&f, SV_PF_EVENT_LEGACY_EVENT);
        u64(&f, SV_PF_LEGACY_PHASE, 'b');
        u64(&f, i == 3 ? SV_PF_LEGACY_GLOBAL_ID : SV_PF_LEGACY_UNSCOPED_ID, i == 2 ? 8 : 7);
        if (i == 4)
            text(&f, SV_PF_LEGACY_ID_SCOPE, "scope");
        close_message(&f, l);
        event_end(&f);
    }
    read_file(&r, &f);
    REQUIRE(r.got.n == 6);
    const struct sv_event *e = r.got.events;
    CHECK(e[0].track != e[1].track); /* another category */
    CHECK(e[0].track != e[2].track); /* another id */
    CHECK(e[0].track == e[3].track);
    CHECK(e[0].track != e[4].track); /* a scope of its own */
    CHECK(e[0].track == e[5].track);
    done(&r, &f);
}

TEST(legacy_counters_flows_and_names)
{
    struct file f;
    struct read r;
    file_init(&f);
    descriptor(&f, 1, 0, NULL);
    process_part(&f, 10, NULL);
    descriptor_end(&f);
    descriptor(&f, 2, 1, NULL);
    thread_part(&f, 10, 11, NULL);
    descriptor_end(&f);
    static const char *const phases[] = {"C", "M", "M"};
    static const char *const names[] = {"memory", "process_name", "thread_name"};
    for (unsigned i = 0; i < 3; i++) {
        event(&f, 1, 5, 0);
        u64(&f, SV_PF_EVENT_TRACK_UUID, 2);
        text(&f, SV_PF_EVENT_NAME, names[i]);
        size_t l = open_message(&f, SV_PF_EVENT_LEGACY_EVENT);
        u64(&f, SV_PF_LEGACY_PHASE, (uint64_t)phases[i][0]);
        close_message(&f, l);
        size_t a = annotation(&f, SV_PF_EVENT_DEBUG_ANNOTATIONS, i ? "name" : "used");
        if (i)
            text(&f, SV_PF_ANN_STRING, i == 1 ? "my process" : "my thread");
        else
            u64(&f, SV_PF_ANN_INT, 4);
        close_message(&f, a);
        event_end(&f);
    }
    event(&f, 1, 6, SV_PF_TYPE_BEGIN); /* a type, and a flow in the legacy part */
    u64(&f, SV_PF_EVENT_TRACK_UUID, 2);
    size_t l = open_message(&f, SV_PF_EVENT_LEGACY_EVENT);
    u64(&f, SV_PF_LEGACY_BIND_ID, 33);
    u64(&f, SV_PF_LEGACY_FLOW_DIRECTION, SV_PF_FLOW_OUT);
    close_message(&f, l);
    event_end(&f);
    read_file(&r, &f);
    REQUIRE(r.got.n == 2);
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[1].name).bytes, "my process");
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[2].name).bytes, "my thread");
    const struct sv_event *c = &r.got.events[0];
    CHECK_INT_EQ(c->kind, SV_COUNTER);
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[c->track].name).bytes, "memory used");
    CHECK_UINT_EQ(r.dict->tracks[c->track].parent, 1);
    CHECK_INT_EQ(r.got.events[1].kind, SV_BEGIN);
    CHECK_INT_EQ(r.got.events[1].args[0].type, SV_ARG_FLOW_BEGIN);
    CHECK_UINT_EQ(r.got.events[1].args[0].u, 33);
    done(&r, &f);
}

TEST(flow_points_of_equal_ids_but_other_names_are_other_flows)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 4; i++) {
        event(&f, 1, i, 0);
        text(&f, SV_PF_EVENT_NAME, i % 2 ? "backward" : "forward");
        size_t l = open_message(&f, SV_PF_EVENT_LEGACY_EVENT);
        u64(&f, SV_PF_LEGACY_PHASE, i < 2 ? 's' : 'f');
        u64(&f, SV_PF_LEGACY_UNSCOPED_ID, 1);
        u64(&f, SV_PF_LEGACY_BIND_TO_ENCLOSING, 1);
        close_message(&f, l);
        event_end(&f);
    }
    read_file(&r, &f);
    REQUIRE(r.got.n == 4);
    CHECK_UINT_EQ(r.got.events[0].args[0].u, 1);
    CHECK_UINT_EQ(r.got.events[2].args[0].u, 1);
    CHECK(r.got.events[1].args[0].u != 1);
    CHECK_UINT_EQ(r.got.events[1].args[0].u, r.got.events[3].args[0].u);
    CHECK_UINT_EQ(r.got.events[3].flags, 0);
    done(&r, &f);
}

/* ---- GPU ---- */

TEST(gpu_stages_are_slices)
{
    struct file f;
    struct read r;
    file_init(&f);
    cleared(&f, 1, 0, 0);
    packet(&f, 1);
    interned(&f, SV_PF_INTERNED_GPU_SPECS, 1, "compute");
    interned(&f, SV_PF_INTERNED_GPU_SPECS, 2, "gemm");
    end(&f);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_TIMESTAMP, 100);
    size_t s = open_message(&f, SV_PF_PACKET_GPU_STAGE);
    u64(&f, SV_PF_STAGE_EVENT_ID, 1);
    u64(&f, SV_PF_STAGE_DURATION, 50);
    u64(&f, SV_PF_STAGE_HW_QUEUE_IID, 1);
    u64(&f, SV_PF_STAGE_STAGE_IID, 2);
    u64(&f, SV_PF_STAGE_GPU_ID, 3);
    u64(&f, SV_PF_STAGE_SUBMISSION_ID, 8);
    size_t launch = open_message(&f, SV_PF_STAGE_LAUNCH);
    size_t grid = open_message(&f, SV_PF_LAUNCH_GRID);
    u64(&f, 1, 64);
    u64(&f, 2, 2);
    close_message(&f, grid);
    close_message(&f, launch);
    close_message(&f, s);
    end(&f);
    read_file(&r, &f);
    REQUIRE(r.got.n == 1);
    const struct sv_event *e = &r.got.events[0];
    CHECK_INT_EQ(e->kind, SV_SLICE);
    CHECK_INT_EQ(e->ts_ns, 100);
    CHECK_INT_EQ(e->dur_ns, 50);
    CHECK_STR_EQ(sv_dict_text(r.dict, e->name).bytes, "gemm");
    const struct sv_track_info *queue = &r.dict->tracks[e->track];
    CHECK_INT_EQ(queue->kind, SV_TRACK_STREAM);
    CHECK_STR_EQ(sv_dict_text(r.dict, queue->name).bytes, "compute");
    CHECK_INT_EQ(r.dict->tracks[queue->parent].kind, SV_TRACK_GPU);
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[queue->parent].name).bytes, "GPU 3");
    CHECK(strstr(events_of(&r), "submission_id=int:8 launch=dict(3) grid_size=dict(2) x=int:64 "
                                "y=int:2") != NULL);
    done(&r, &f);
}

TEST(gpu_counters_tell_about_the_time_before_them)
{
    struct file f;
    struct read r;
    file_init(&f);
    for (unsigned i = 0; i < 3; i++) {
        packet(&f, 1);
        u64(&f, SV_PF_PACKET_TIMESTAMP, 10 * (i + 1));
        size_t g = open_message(&f, SV_PF_PACKET_GPU_COUNTER);
        for (unsigned k = 0; i == 0 && k < 2; k++) {
            size_t d = open_message(&f, SV_PF_GPU_COUNTER_DESCRIPTOR);
            size_t s = open_message(&f, SV_PF_GPU_DESCRIPTOR_SPECS);
            u64(&f, SV_PF_GPU_CSPEC_ID, k);
            text(&f, SV_PF_GPU_CSPEC_NAME, k ? "ahead" : "back");
            u64(&f, SV_PF_GPU_CSPEC_NUMERATOR, 7);
            u64(&f, SV_PF_GPU_CSPEC_DENOMINATOR, 22);
            if (k)
                u64(&f, 11, 2); /* forwards looking */
            close_message(&f, s);
            close_message(&f, d);
        }
        for (unsigned k = 0; k < 2; k++) {
            size_t v = open_message(&f, SV_PF_GPU_COUNTER_VALUES);
            u64(&f, SV_PF_GPU_VALUE_ID, k);
            u64(&f, SV_PF_GPU_VALUE_INT, 100 * (i + 1));
            close_message(&f, v);
        }
        close_message(&f, g);
        end(&f);
    }
    read_file(&r, &f);
    int64_t values[2][4] = {{0}}; /* ahead, back */
    CHECK_UINT_EQ(r.got.n, 6);
    for (size_t i = 0; i < r.got.n; i++) {
        const struct sv_event *e = &r.got.events[i];
        bool is_back = strcmp(sv_dict_text(r.dict, r.dict->tracks[e->track].name).bytes, "back") ==
                       0;
        values[is_back][e->ts_ns / 10 % 4] = e->args[0].i;
        CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[e->track].unit).bytes, "B/s");
    }
    CHECK_MEM_EQ(values[1], ((int64_t[]){0, 200, 300, 0}), sizeof values[1]);
    CHECK_MEM_EQ(values[0], ((int64_t[]){0, 100, 200, 300}), sizeof values[0]);
    done(&r, &f);
}

/* ---- metadata, losses of the service ---- */

TEST(processes_and_metadata)
{
    struct file f;
    struct read r;
    file_init(&f);
    packet(&f, 1);
    size_t tree = open_message(&f, SV_PF_PACKET_PROCESS_TREE);
    size_t p = open_message(&f, SV_PF_TREE_PROCESSES);
    u64(&f, SV_PF_TREE_PID, 10);
    text(&f, SV_PF_TREE_CMDLINE, "/usr/bin/python3");
    text(&f, SV_PF_TREE_CMDLINE, "train.py");
    u64(&f, SV_PF_TREE_START_FROM_BOOT, 5);
    close_message(&f, p);
    close_message(&f, tree);
    end(&f);
    packet(&f, 1);
    size_t u = open_message(&f, SV_PF_PACKET_TRACE_UUID);
    u64(&f, SV_PF_UUID_MSB, 0x0123456789abcdefull);
    u64(&f, SV_PF_UUID_LSB, 0x0fedcba987654321ull);
    close_message(&f, u);
    end(&f);
    packet(&f, 1);
    size_t a = open_message(&f, SV_PF_PACKET_ATTRIBUTES);
    size_t item = open_message(&f, SV_PF_ATTRIBUTES_LIST);
    text(&f, SV_PF_ATTRIBUTE_KEY, "rank");
    u64(&f, SV_PF_ATTRIBUTE_LONG, 3);
    close_message(&f, item);
    item = open_message(&f, SV_PF_ATTRIBUTES_LIST);
    text(&f, SV_PF_ATTRIBUTE_KEY, "devices");
    text(&f, SV_PF_ATTRIBUTE_STRING, "[1]");
    u64(&f, SV_PF_STAVE, 1);
    close_message(&f, item);
    close_message(&f, a);
    end(&f);
    packet(&f, 1);
    size_t s = open_message(&f, SV_PF_PACKET_TRACE_STATS);
    size_t b = open_message(&f, SV_PF_TRACE_STATS_BUFFERS);
    u64(&f, SV_PF_BUFFER_CHUNKS_OVERWRITTEN, 12);
    close_message(&f, b);
    close_message(&f, s);
    end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[1].name).bytes, "/usr/bin/python3");
    CHECK_STR_EQ(sv_dict_text(r.dict, r.dict->tracks[1].desc).bytes, "/usr/bin/python3 train.py");
    CHECK_INT_EQ(r.dict->tracks[1].start_ns, 5);
    CHECK_STR_EQ(sv_dict_text(r.dict, sv_dict_find_meta(r.dict, "trace_uuid")->value).bytes,
                 "01234567-89ab-cdef-0fed-cba987654321");
    CHECK_STR_EQ(sv_dict_text(r.dict, sv_dict_find_meta(r.dict, "rank")->value).bytes, "3");
    CHECK(sv_dict_find_meta(r.dict, "devices")->is_json);
    REQUIRE(r.got.n == 1);
    CHECK_INT_EQ(r.got.events[0].kind, SV_LOSS);
    CHECK_INT_EQ(r.got.events[0].args[0].i, 12);
    check_finding(&r, SV_NOTE, "chunks overwritten", 12, -1);
    done(&r, &f);
}
