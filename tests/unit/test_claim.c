/* Claims of output files: one holder, stale ones moved aside, nothing of others followed. */
#include "core/files/claim.h"

#include "core/files/claim_file.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct sv_claim_wish recorder = {.kind = SV_CLAIM_RECORDER, .journals = true};

static const char *in_scratch(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *to = paths[next++ % 8];
    snprintf(to, sizeof paths[0], "%s", test_scratch(name));
    return to;
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* The marker with one line replaced (or, with NULL, left out). */
static void change_line(const char *marker, const char *key, const char *line)
{
    char text[8192], to[8192] = "";
    snprintf(text, sizeof text, "%s", test_read_file(marker));
    size_t n = strlen(key), at = 0;
    for (char *from = text, *end; (end = strchr(from, '\n')); from = end + 1) {
        *end = '\0';
        bool is_it = strncmp(from, key, n) == 0 && from[n] == ' ';
        const char *use = is_it ? line : from;
        if (use)
            at += (size_t)snprintf(to + at, sizeof to - at, "%s\n", use);
    }
    test_write_file(marker, to);
}

/* A process that takes the claim, writes to the growing file, and is killed. */
static void leave_behind(const char *out, const char *session, const char *bytes)
{
    pid_t child = fork();
    if (child == 0) {
        struct sv_claim c;
        struct sv_err err = {0};
        struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM, .session = session};
        if (sv_claim_take(&c, out, &wish, &err) < 0)
            _exit(1);
        if (bytes)
            test_write_file(c.part, bytes);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- the marker ---- */

TEST(the_marker_says_who_and_reads_back)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, back;
    struct sv_err err = {0};
    struct stat st;
    struct sv_claim_wish wish = {
        .kind = SV_CLAIM_LISTENER, .session = "/dev/shm/stave/x", .segment = 7, .journals = true};
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_NONE);
    REQUIRE(sv_claim_take(&c, out, &wish, &err) == 0);
    sv_claim_whole(&c, 123456);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    struct sv_process_id self = sv_process_id_self();
    CHECK(sv_process_id_equal(&back.holder, &self));
    CHECK_MEM_EQ(back.holder.machine, self.machine, sizeof self.machine);
    CHECK_INT_EQ(back.kind, SV_CLAIM_LISTENER);
    CHECK_STR_EQ(back.session, wish.session);
    CHECK_UINT_EQ(back.whole_bytes, 123456);
    CHECK_INT_EQ(back.segment, 7);
    CHECK(strstr(back.command, "unit") != NULL);
    CHECK(strncmp(test_read_file(c.marker),
                  "stave-claim 1\nwhole 00000000000000123456\nkind listener\n", 55) == 0);
    CHECK(stat(c.marker, &st) == 0 && (st.st_mode & 0777) == 0600);
    REQUIRE(sv_claim_set_session(&c, "/dev/shm/stave/y", &err) == 0);
    sv_claim_whole(&c, 5);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    CHECK_STR_EQ(back.session, "/dev/shm/stave/y");
    CHECK_UINT_EQ(back.whole_bytes, 5);
    sv_claim_release(&c);
    CHECK(!is_there(c.marker));
}

TEST(damaged_markers_are_refused)
{
    static const struct {
        const char *key, *line;
    } rows[] = {
        {"pid", "pid 0"},
        {"pid", "pid -5"},
        {"pid", "pid 99999999999"},
        {"pid", "pid 12x"},
        {"pid", NULL},
        {"pid", "pid 2147483648"},
        {"kind", NULL},
        {"start", NULL},
        {"pid-namespace", NULL},
        {"start", "start"},
        {"start", "start 18446744073709551616"},
        {"boot", "boot 12"},
        {"boot", "boot 12ab00ff-0506-0708-090a-0b0c0d0e0f1g"},
        {"boot", "boot 12AB00FF-0506-0708-090A-0B0C0D0E0F10"},
        {"boot", "boot 12ab00ff05060708090a0b0c0d0e0f10"},
        {"boot", "boot 12ab00ff-0506-0708-090a-0b0c0d0e0f100"},
        {"boot", NULL},
        {"machine", NULL},
        {"kind", "kind king"},
        {"found", "found 1 2 3"},
        {"found", "found 1 2 3 4 5 6"},
        {"session", "session relative/path"},
        {"command", "command a\npid 4"},
        {"whole", "whole 1e3"},
        {"whole", "whole 18446744073709551616"},
        {"found", "found 1 2 3 4 5x"},
        {"found", "found 1,2,3,4,5"},
        {"stave-claim", "stave-claim 2"},
        {"segment", "segment 4294967296"},
    };
    const char *out = in_scratch("t.pftrace");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_claim c, back;
        struct sv_err err = {0};
        CONTEXT("%s: %s", rows[i].key, rows[i].line ? rows[i].line : "(left out)");
        REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
        sv_claim_keep(&c);
        change_line(c.marker, rows[i].key, rows[i].line);
        CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_DAMAGED);
        CHECK_INT_EQ(sv_claim_take(&back, out, &recorder, &err), SV_EHELD);
        CHECK(strstr(err.msg, ".session") != NULL && strstr(err.msg, "remove it") != NULL);
        CHECK_INT_EQ(unlink(c.marker), 0);
    }
}

TEST(long_unterminated_and_unknown_lines)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, back;
    struct sv_err err = {0};
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    sv_claim_keep(&c);
    char text[8192];
    snprintf(text, sizeof text, "%s", test_read_file(c.marker));
    size_t len = strlen(text);
    snprintf(text + len, sizeof text - len, "colour green\n");
    test_write_file(c.marker, text); /* of a newer version */
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    text[len + 5] = '\0';
    test_write_file(c.marker, text);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_DAMAGED);
    memset(text + len, 'x', sizeof text - len); /* too long, with a line that ends just there */
    text[len + 1] = ' ';
    text[SV_CLAIM_BYTES_MAX - 1] = '\n';
    text[SV_CLAIM_BYTES_MAX + 1] = ' ';
    text[sizeof text - 2] = '\n';
    text[sizeof text - 1] = '\0';
    test_write_file(c.marker, text);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_DAMAGED);
    text[SV_CLAIM_BYTES_MAX - 2] = '\n';
    text[SV_CLAIM_BYTES_MAX - 1] = '\0';
    test_write_file(c.marker, text);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    test_write_file(c.marker, "");
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_DAMAGED);
    test_write_file(c.marker, "/dev/shm/stave-0/123-abc\n"); /* as it was before it had a version */
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_DAMAGED);
}

TEST(a_command_cannot_speak_to_the_terminal)
{
    char text[] = "stave-claim 1\nkind program\npid 5\nstart 1\npid-namespace 1\nboot unknown\n"
                  "machine unknown\ncommand a\x1b[31mb\x7f\xc2\x9b\xff\xc3\xa9\n";
    struct sv_claim c;
    REQUIRE(sv_claim_names(&c, "x", 0));
    REQUIRE(sv_claim_parse(&c, text, strlen(text)));
    CHECK_STR_EQ(c.command, "a?[31mb????\xc3\xa9");
    CHECK(!c.found.is_known);
    CHECK_UINT_EQ(c.whole_bytes, SV_CLAIM_UNKNOWN);
}

TEST(every_value_reads_back)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c = {.fd = -1}, back;
    char text[SV_CLAIM_BYTES_MAX];
    REQUIRE(sv_claim_names(&c, out, 0));
    c.kind = SV_CLAIM_RECORDER;
    c.holder = (struct sv_process_id){
        .pid = INT32_MAX, .start_ticks = UINT64_MAX, .pid_namespace = UINT64_MAX - 1};
    for (int i = 0; i < SV_BOOT_ID_BYTES; i++) {
        c.holder.boot[i] = (uint8_t)(i * 17 + 1);
        c.holder.machine[i] = (uint8_t)(255 - i);
    }
    c.whole_bytes = UINT64_MAX - 1;
    c.segment = UINT32_MAX;
    c.found = (struct sv_claim_found){true, true, 11, 12, 13, 14, 15};
    int n = sv_claim_text(&c, text, sizeof text);
    REQUIRE(n > 0 && (size_t)n == strlen(text));
    char exact[SV_CLAIM_BYTES_MAX];
    CHECK_INT_EQ(sv_claim_text(&c, exact, (size_t)n + 1), n);
    CHECK_INT_EQ(sv_claim_text(&c, exact, (size_t)n), -1);
    REQUIRE(sv_claim_names(&back, out, 0) && sv_claim_parse(&back, text, (size_t)n));
    CHECK_INT_EQ(back.kind, SV_CLAIM_RECORDER);
    CHECK(sv_process_id_equal(&back.holder, &c.holder));
    CHECK_MEM_EQ(back.holder.machine, c.holder.machine, sizeof c.holder.machine);
    CHECK_UINT_EQ(back.whole_bytes, UINT64_MAX - 1);
    CHECK_UINT_EQ(back.segment, UINT32_MAX);
    CHECK(back.found.is_known && back.found.exists);
    CHECK_UINT_EQ(back.found.device, 11);
    CHECK_UINT_EQ(back.found.inode, 12);
    CHECK_UINT_EQ(back.found.size, 13);
    CHECK_INT_EQ(back.found.changed_s, 14);
    CHECK_INT_EQ(back.found.changed_ns, 15);
}

TEST(the_command_is_one_line)
{
    int ready[2];
    char command[256], byte;
    sv_claim_command_of(UINT32_MAX, command, sizeof command);
    CHECK_STR_EQ(command, "");
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        execlp("sh", "s\nh", "-c", "kill -STOP $$", "1\t2", (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    CHECK_INT_EQ(read(ready[0], &byte, 1), 0); /* it has become that program */
    sv_claim_command_of((uint32_t)child, command, sizeof command);
    CHECK_STR_EQ(command, "s?h -c kill -STOP $$ 1?2");
    sv_claim_command_of((uint32_t)child, command, 9);
    CHECK_STR_EQ(command, "s?h -c k");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
}

TEST(names_that_just_fit)
{
    char out[SV_CLAIM_PATH_MAX + 1];
    struct sv_claim c;
    size_t most = SV_CLAIM_PATH_MAX - 1 - strlen(SV_CLAIM_SUFFIX);
    memset(out, 'n', sizeof out);
    out[most] = '\0';
    CHECK(sv_claim_names(&c, out, 0) && strlen(c.marker) == SV_CLAIM_PATH_MAX - 1);
    CHECK(!sv_claim_names(&c, out, 7));
    out[most - 2] = '\0';
    CHECK(sv_claim_names(&c, out, 7) && strcmp(c.marker + most - 2, ".session.7") == 0);
    CHECK_STR_EQ(c.part + most - 2, ".part.7");
    out[most - 2] = 'n';
    out[most] = 'n';
    out[most + 1] = '\0';
    CHECK(!sv_claim_names(&c, out, 0));
    CHECK_INT_EQ(sv_claim_read(out, &c), SV_CLAIM_NONE);
}

TEST(the_session_is_set_only_by_the_holder)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, back;
    struct sv_err err = {0};
    char name[SV_CLAIM_PATH_MAX + 1];
    memset(name, 's', sizeof name);
    name[0] = '/';
    name[SV_CLAIM_PATH_MAX] = '\0';
    struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM, .session = name};
    CHECK_INT_EQ(sv_claim_take(&c, out, &wish, &err), SV_EUSAGE);
    REQUIRE(sv_claim_take(&c, out, &(struct sv_claim_wish){0}, &err) == 0);
    CHECK_INT_EQ(sv_claim_set_session(&c, name, &err), SV_EUSAGE);
    CHECK_STR_EQ(c.session, "");
    name[SV_CLAIM_PATH_MAX - 1] = '\0';
    CHECK_INT_EQ(sv_claim_set_session(&c, name, &err), 0);
    CHECK_INT_EQ(c.fd, -1); /* who does not journal keeps nothing open */
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    CHECK_STR_EQ(back.session, name);
    unlink(c.marker);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_claim_set_session(&c, "/other", &err), SV_EHELD);
    CHECK(!is_there(c.marker));
}

/* ---- one holder ---- */

TEST(a_second_one_is_refused_and_hears_who)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, second;
    struct sv_err err = {0};
    char who[64];
    test_write_file(out, "finished before");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK_INT_EQ(sv_claim_take(&second, out, &recorder, &err), SV_EHELD);
    snprintf(who, sizeof who, "process %d (", (int)getpid());
    CHECK(strncmp(err.msg, who, strlen(who)) == 0);
    CHECK(strstr(err.msg, "unit") != NULL);
    CHECK(!is_there(c.part));
    CHECK_STR_EQ(test_read_file(out), "finished before");
    sv_claim_release(&c);
    sv_err_clear(&err);
    CHECK_INT_EQ(sv_claim_take(&second, out, &recorder, &err), 0);
    sv_claim_release(&second);
}

/* Many processes at once, again and again, on a name that a killed one left: one holder. */
TEST(never_two_at_once)
{
    enum { PROCESSES = 6, TURNS = 40 };
    const char *out = in_scratch("t.pftrace"), *inside = in_scratch("inside");
    leave_behind(out, NULL, "left");
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        int held = 0;
        for (int k = 0; k < 20000 && held < TURNS; k++) {
            struct sv_claim c;
            struct sv_err err = {0};
            if (sv_claim_take(&c, out, &recorder, &err) < 0)
                continue;
            int fd = open(inside, O_CREAT | O_EXCL | O_WRONLY, 0600);
            if (fd < 0)
                _exit(2); /* somebody else is inside */
            close(fd);
            unlink(inside);
            held++;
            sv_claim_abandon(&c);
            if (held % 8 == 0 && fork() == 0) { /* one that ends without releasing it */
                sv_claim_take(&c, out, &recorder, &err);
                _exit(0);
            }
            while (waitpid(-1, NULL, WNOHANG) > 0) {}
        }
        _exit(held == 0 ? 3 : 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        CHECK_INT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 128, 0);
    }
    CHECK(!is_there(inside));
}

/* Stale claims, each broken by many at once: one gets it, and every growing file is kept. */
TEST(a_stale_claim_is_broken_once)
{
    enum { ROUNDS = 25, PROCESSES = 5 };
    const char *out = in_scratch("t.pftrace");
    char path[600];
    for (int round = 1; round <= ROUNDS; round++) {
        char bytes[24];
        snprintf(bytes, sizeof bytes, "round %d", round);
        leave_behind(out, NULL, bytes);
        int go[2];
        REQUIRE(pipe(go) == 0);
        pid_t pids[PROCESSES];
        for (int i = 0; i < PROCESSES; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                struct sv_claim c;
                struct sv_err err = {0};
                char byte;
                close(go[1]);
                if (read(go[0], &byte, 1) != 0) /* its end is the word to begin */
                    _exit(9);
                /* The winner stays until all others were refused: else its parent is a zombie. */
                bool is_taken = sv_claim_take(&c, out, &recorder, &err) == 0;
                if (is_taken)
                    raise(SIGSTOP);
                if (is_taken)
                    sv_claim_release(&c);
                _exit(is_taken ? 1 : 0);
            }
        }
        close(go[0]);
        close(go[1]);
        int n_taken = 0, status;
        for (int i = 0; i < PROCESSES; i++) {
            waitpid(pids[i], &status, WUNTRACED);
            if (WIFSTOPPED(status))
                n_taken++;
        }
        CHECK_INT_EQ(n_taken, 1);
        for (int i = 0; i < PROCESSES; i++) {
            kill(pids[i], SIGCONT);
            waitpid(pids[i], &status, 0);
        }
        snprintf(path, sizeof path, "%s.part.%d", out, round);
        CHECK_STR_EQ(test_read_file(path), bytes);
    }
}

TEST(what_a_killed_one_left_is_moved_aside_newest_last)
{
    const char *out = in_scratch("t.pftrace"), *session = in_scratch("session");
    char path[600];
    struct sv_claim c, back;
    struct sv_err err = {0};
    mkdir(session, 0700);
    leave_behind(out, session, "first");
    leave_behind(out, NULL, "second");
    leave_behind(out, session, NULL); /* killed before it wrote anything, but its rings are there */
    leave_behind(out, "/nonexistent/session", NULL);
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK(!is_there(c.part));
    snprintf(path, sizeof path, "%s.part.1", out);
    CHECK_STR_EQ(test_read_file(path), "first");
    snprintf(path, sizeof path, "%s.part.2", out);
    CHECK_STR_EQ(test_read_file(path), "second");
    snprintf(path, sizeof path, "%s.session.3", out);
    CHECK(is_there(path));
    snprintf(path, sizeof path, "%s.session.4", out);
    CHECK(!is_there(path));
    CHECK(sv_claim_of_session(out, session, &back));
    CHECK_INT_EQ(back.number, 3);
    snprintf(path, sizeof path, "%s.session.3", out);
    unlink(path);
    CHECK(sv_claim_of_session(out, session, &back));
    CHECK_INT_EQ(back.number, 1);
    snprintf(path, sizeof path, "%s.part.1", out);
    CHECK_STR_EQ(back.part, path);
    CHECK(!sv_claim_of_session(out, "/other", &back));
    CHECK(!sv_claim_of_session(out, "", &back));
    sv_claim_release(&c);
}

struct seen {
    unsigned numbers[16];
    enum sv_claim_state states[16];
    size_t n;
};

static int note(void *ctx, const struct sv_claim *c, enum sv_claim_state state)
{
    struct seen *s = ctx;
    s->numbers[s->n] = c->number;
    s->states[s->n++] = state;
    return s->n == 16;
}

TEST(all_claims_of_a_name_newest_first)
{
    const char *out = in_scratch("t.pftrace");
    char path[600];
    struct sv_claim c;
    struct sv_err err = {0};
    struct seen seen = {0};
    static const char *const others[] = {".session.x",     ".session.01",    ".session.",
                                         ".session.10000", ".session.5.new", ".other.session.2"};
    for (size_t i = 0; i < TEST_COUNT(others); i++) {
        snprintf(path, sizeof path, "%s%s", out, others[i]);
        test_write_file(path, "");
    }
    CHECK_INT_EQ(sv_claims_each(out, note, &seen), 0);
    CHECK_INT_EQ(seen.n, 0);
    leave_behind(out, NULL, "a");
    leave_behind(out, NULL, "b");
    snprintf(path, sizeof path, "%s.session.12", out);
    test_write_file(path, "damaged");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK_INT_EQ(sv_claims_each(out, note, &seen), 0);
    CHECK_INT_EQ(seen.n, 4);
    CHECK_INT_EQ(seen.numbers[0], 0);
    CHECK_INT_EQ(seen.numbers[1], 13);
    CHECK_INT_EQ(seen.numbers[2], 12);
    CHECK_INT_EQ(seen.states[2], SV_CLAIM_DAMAGED);
    CHECK_INT_EQ(seen.numbers[3], 1);
    sv_claim_release(&c);
}

TEST(a_growing_file_without_a_marker_is_kept)
{
    const char *out = in_scratch("t.pftrace");
    char path[600];
    struct sv_claim c;
    struct sv_err err = {0};
    snprintf(path, sizeof path, "%s.part", out);
    test_write_file(path, "all that is left");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK(!is_there(path));
    snprintf(path, sizeof path, "%s.part.1", out);
    CHECK_STR_EQ(test_read_file(path), "all that is left");
    sv_claim_release(&c);
}

/* ---- who cannot be judged ---- */

static int take_from(const char *out, const char *key, const char *line, struct sv_err *err)
{
    struct sv_claim c;
    leave_behind(out, NULL, NULL);
    REQUIRE(sv_claim_read(out, &c) == SV_CLAIM_THERE);
    change_line(c.marker, key, line);
    *err = (struct sv_err){0};
    int code = sv_claim_take(&c, out, &recorder, err);
    if (code >= 0)
        sv_claim_release(&c);
    else
        unlink(c.marker);
    return code;
}

TEST(another_boot_machine_or_namespace)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_err err;
    struct sv_process_id self = sv_process_id_self();
    static const uint8_t none[SV_BOOT_ID_BYTES];
    char line[64];
    if (memcmp(self.machine, none, sizeof none) == 0)
        SKIP("no /etc/machine-id");
    CHECK_INT_EQ(take_from(out, "boot", "boot 00000000-0000-4000-8000-000000000001", &err), 0);
    CHECK_INT_EQ(take_from(out, "pid-namespace", "pid-namespace 1", &err), SV_EHELD);
    CHECK(strstr(err.msg, "another machine or container") && strstr(err.msg, "remove "));
    snprintf(line, sizeof line, "start %llu", (unsigned long long)self.start_ticks + 1);
    CHECK_INT_EQ(take_from(out, "start", line, &err), 0);

    struct sv_claim c;
    leave_behind(out, NULL, NULL);
    REQUIRE(sv_claim_read(out, &c) == SV_CLAIM_THERE);
    change_line(c.marker, "boot", "boot 00000000-0000-4000-8000-000000000001");
    change_line(c.marker, "machine", "machine 00000000-0000-4000-8000-000000000002");
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_claim_take(&c, out, &recorder, &err), SV_EHELD);
    CHECK(strstr(err.msg, c.marker) != NULL);
}

/* ---- nobody else's hand ---- */

static int take_beside(const char *out, struct sv_err *err)
{
    struct sv_claim c;
    *err = (struct sv_err){0};
    int code = sv_claim_take(&c, out, &recorder, err);
    if (code >= 0)
        sv_claim_release(&c);
    return code;
}

TEST(planted_markers)
{
    const char *out = in_scratch("t.pftrace"), *victim = in_scratch("victim");
    char marker[600], part[600];
    struct sv_claim c;
    struct sv_err err = {0};
    snprintf(marker, sizeof marker, "%s.session", out);
    snprintf(part, sizeof part, "%s.part", out);
    leave_behind(out, NULL, NULL);
    REQUIRE(rename(marker, victim) == 0); /* a marker that would be stale, but lies elsewhere */
    char before[8192];
    snprintf(before, sizeof before, "%s", test_read_file(victim));
    test_write_file(part, "x");

    REQUIRE(symlink(victim, marker) == 0);
    CHECK_INT_EQ(sv_claim_read(out, &c), SV_CLAIM_FOREIGN);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    unlink(marker);
    REQUIRE(link(victim, marker) == 0);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    unlink(marker);
    REQUIRE(mkfifo(marker, 0600) == 0);
    CHECK_INT_EQ(sv_claim_read(out, &c), SV_CLAIM_FOREIGN);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK(strstr(err.msg, marker) != NULL);
    unlink(marker);
    REQUIRE(mkdir(marker, 0700) == 0);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    rmdir(marker);
    test_write_file(marker, before);
    chmod(marker, 0660); /* others could have written it */
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK_STR_EQ(test_read_file(victim), before);
    CHECK_STR_EQ(test_read_file(part), "x");
    chmod(marker, 0600);
    CHECK_INT_EQ(take_beside(out, &err), 0);
}

TEST(planted_growing_files)
{
    const char *out = in_scratch("t.pftrace"), *victim = in_scratch("victim");
    char marker[600], part[600];
    struct sv_err err = {0};
    snprintf(marker, sizeof marker, "%s.session", out);
    snprintf(part, sizeof part, "%s.part", out);
    test_write_file(victim, "precious");
    REQUIRE(symlink(victim, part) == 0);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK(strstr(err.msg, part) != NULL);
    CHECK(!is_there(marker)); /* nothing stays behind */
    unlink(part);
    REQUIRE(mkfifo(part, 0600) == 0);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK(!is_there(marker));
    CHECK_STR_EQ(test_read_file(victim), "precious");
}

TEST(another_users_marker)
{
    if (geteuid() != 0)
        SKIP("needs root, to be two users");
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c;
    struct sv_err err = {0};
    leave_behind(out, NULL, NULL);
    REQUIRE(sv_claim_read(out, &c) == SV_CLAIM_THERE);
    REQUIRE(chown(c.marker, 65534, 65534) == 0);
    CHECK_INT_EQ(sv_claim_read(out, &c), SV_CLAIM_FOREIGN);
    CHECK_STR_EQ(c.session, "");
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK(is_there(c.marker));
    unlink(c.marker);
    test_write_file(c.part, "another user's");
    REQUIRE(chown(c.part, 65534, 65534) == 0);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD);
    CHECK_STR_EQ(test_read_file(c.part), "another user's");
}

TEST(names_that_cannot_be)
{
    struct sv_claim c;
    struct sv_err err = {0};
    char path[1100];
    CHECK_INT_EQ(sv_claim_take(&c, "/nonexistent/x.pftrace", &recorder, &err), SV_EIO);
    CHECK_STR_EQ(err.msg, "cannot create: No such file or directory");
    err = (struct sv_err){0};
    mkdir(in_scratch("folder.pftrace"), 0700);
    CHECK_INT_EQ(sv_claim_take(&c, in_scratch("folder.pftrace"), &recorder, &err), SV_EIO);
    CHECK_STR_EQ(err.msg, "is a directory");
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_claim_take(&c, "/dev/null", &recorder, &err), SV_EIO);
    CHECK_STR_EQ(err.msg, "is not a regular file");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_claim_take(&c, path, &recorder, &err), SV_EUSAGE);
    struct sv_claim_wish wish = {.session = "/a\nkind recorder"};
    err = (struct sv_err){0};
    CHECK(sv_claim_take(&c, in_scratch("t.pftrace"), &wish, &err) < 0);
    CHECK(!is_there(c.marker));
}

/* ---- the end ---- */

TEST(only_what_was_there_is_replaced)
{
    const char *out = in_scratch("t.json.gz"), *numbered = in_scratch("t.1.json.gz");
    struct sv_claim c;
    struct sv_err err = {0};
    test_write_file(out, "old");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "new");
    REQUIRE(sv_claim_settle(&c, &err) == 0); /* an older file: replaced */
    CHECK(c.has_replaced);
    CHECK_STR_EQ(c.out, out);
    CHECK_STR_EQ(test_read_file(out), "new");
    CHECK(!is_there(c.marker) && !is_there(c.part));

    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "ours");
    test_write_file(out, "theirs");
    REQUIRE(sv_claim_settle(&c, &err) == 0);
    CHECK_STR_EQ(c.out, numbered);
    CHECK_STR_EQ(test_read_file(out), "theirs");
    CHECK_STR_EQ(test_read_file(numbered), "ours");
    CHECK(!is_there(c.marker));

    unlink(out);
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "again");
    test_write_file(out, "theirs"); /* there was nothing */
    REQUIRE(sv_claim_settle(&c, &err) == 0);
    CHECK_STR_EQ(test_read_file(out), "theirs");
    CHECK_STR_EQ(test_read_file(in_scratch("t.2.json.gz")), "again");
}

TEST(what_was_finished_since_is_kept_under_a_number)
{
    const char *out = in_scratch("k.json.gz"), *kept = in_scratch("k.1.json.gz");
    struct sv_claim_wish wish = recorder;
    struct sv_claim c;
    struct sv_err err = {0};
    wish.keep_since_ns = 1; /* anything */
    test_write_file(out, "first");
    REQUIRE(sv_claim_take(&c, out, &wish, &err) == 0);
    CHECK(c.keeps);
    test_write_file(c.part, "second");
    REQUIRE(sv_claim_settle(&c, &err) == 0);
    CHECK_STR_EQ(c.out, out);
    CHECK_STR_EQ(c.kept, kept);
    CHECK(!c.has_replaced);
    CHECK_STR_EQ(test_read_file(out), "second");
    CHECK_STR_EQ(test_read_file(kept), "first");

    wish.keep_since_ns = INT64_MAX; /* nothing: it is from before */
    REQUIRE(sv_claim_take(&c, out, &wish, &err) == 0);
    CHECK(!c.keeps);
    test_write_file(c.part, "third");
    REQUIRE(sv_claim_settle(&c, &err) == 0);
    CHECK(c.has_replaced && !c.kept[0]);
    CHECK_STR_EQ(test_read_file(out), "third");
    CHECK(!is_there(in_scratch("k.2.json.gz")));
}

/* The C library's, but somebody makes a file just before: the moment that no look at the names
 * before it can know of. */
static const char *intruder; /* NULL: nobody */

static void intrude(void)
{
    const char *path = intruder;
    intruder = NULL;
    if (path)
        test_write_file(path, "theirs");
}

int rename(const char *old, const char *new)
{
    intrude();
    return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

int renameat2(int oldfd, const char *old, int newfd, const char *new, unsigned flags)
{
    intrude();
    return (int)syscall(SYS_renameat2, oldfd, old, newfd, new, flags);
}

TEST(what_comes_at_the_last_moment_is_not_replaced)
{
    const char *out = in_scratch("t.json"), *numbered = in_scratch("t.1.json");
    struct sv_claim c;
    struct sv_err err = {0};
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "ours");
    intruder = out;
    REQUIRE(sv_claim_settle(&c, &err) == 0);
    CHECK(intruder == NULL);
    CHECK_STR_EQ(test_read_file(out), "theirs");
    CHECK_STR_EQ(c.out, numbered);
    CHECK_STR_EQ(test_read_file(numbered), "ours");
}

/* ---- file systems without some of the calls ---- */

/* The C library's, but what waits for somebody else sees this happen. */
static const char *second_name; /* removed at the second wait */
static int lock_fd = -1;        /* released at the third */
static unsigned n_waits;

int nanosleep(const struct timespec *time, struct timespec *remaining)
{
    n_waits++;
    if (n_waits == 2 && second_name)
        unlink(second_name);
    if (n_waits == 3 && lock_fd >= 0)
        flock(lock_fd, LOCK_UN);
    errno = second_name || lock_fd >= 0 ? 0 : clock_nanosleep(CLOCK_MONOTONIC, 0, time, remaining);
    return errno ? -1 : 0;
}

static void try_all_ways(void)
{
    test_run_a_second_one_is_refused_and_hears_who();
    unlink(in_scratch("t.pftrace"));
    test_run_what_a_killed_one_left_is_moved_aside_newest_last();
    test_run_only_what_was_there_is_replaced();
    test_run_what_was_finished_since_is_kept_under_a_number();
    test_run_what_comes_at_the_last_moment_is_not_replaced();
}

static int refused_with;

static void without_renameat2(void)
{
    if (!test_refuse_call(SYS_renameat2, 4, RENAME_NOREPLACE, refused_with))
        SKIP("no filters of system calls here");
    try_all_ways();
}

#ifdef SYS_link
static void without_link(void)
{
    if (!test_refuse_call(SYS_renameat2, 4, RENAME_NOREPLACE, EINVAL) ||
        !test_refuse_call(SYS_link, 0, 0, refused_with))
        SKIP("no filters of system calls here");
    try_all_ways();
}
#endif

static void check_in_child(void (*run)(void), const char *name)
{
    char folder[600];
    snprintf(folder, sizeof folder, "rm -rf %s && mkdir %s", in_scratch(""), in_scratch(""));
    CONTEXT("%s, error %d", name, refused_with);
    if (!test_in_child(run))
        SKIP("no filters of system calls here");
    REQUIRE(system(folder) == 0);
}

TEST(renaming_without_replacing_has_three_ways)
{
    static const int errors[] = {EINVAL, ENOSYS}, of_link[] = {EPERM, EOPNOTSUPP, ENOSYS};
    for (size_t i = 0; i < TEST_COUNT(errors); i++) {
        refused_with = errors[i];
        check_in_child(without_renameat2, "no renameat2");
    }
#ifdef SYS_link
    for (size_t i = 0; i < TEST_COUNT(of_link); i++) {
        refused_with = of_link[i];
        check_in_child(without_link, "no link");
    }
#else
    (void)of_link;
#endif
}

/* Where markers are made by link(), they have two names for a moment. */
TEST(a_marker_that_is_being_made_is_awaited)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, back;
    struct sv_err err = {0};
    REQUIRE(sv_claim_take(&c, out, &(struct sv_claim_wish){0}, &err) == 0);
    second_name = in_scratch("second");
    n_waits = 0;
    REQUIRE(link(c.marker, second_name) == 0);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_THERE);
    CHECK_UINT_EQ(n_waits, 2);
    n_waits = 3; /* it stays: not for ever */
    REQUIRE(link(c.marker, second_name) == 0);
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_FOREIGN);
    CHECK_UINT_EQ(n_waits, 3 + 20);
    unlink(second_name);
    chmod(c.marker, 0620); /* nobody makes it: no wait */
    CHECK_INT_EQ(sv_claim_read(out, &back), SV_CLAIM_FOREIGN);
    CHECK_UINT_EQ(n_waits, 3 + 20);
    second_name = NULL;
}

TEST(whoever_moves_a_stale_claim_is_awaited)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c;
    struct sv_err err = {0};
    leave_behind(out, NULL, "left");
    REQUIRE(sv_claim_read(out, &c) == SV_CLAIM_THERE);
    lock_fd = open(c.marker, O_RDWR | O_CLOEXEC);
    REQUIRE(lock_fd >= 0 && flock(lock_fd, LOCK_EX) == 0);
    n_waits = 3; /* for ever */
    CHECK_INT_EQ(sv_claim_take(&c, out, &recorder, &err), SV_EHELD);
    CHECK_STR_EQ(err.msg, "other processes keep claiming it");
    CHECK(n_waits > 100);
    CHECK_STR_EQ(test_read_file(c.part), "left");
    n_waits = 0; /* for a moment */
    CHECK_INT_EQ(sv_claim_take(&c, out, &recorder, &err), 0);
    CHECK(c.has_left && n_waits == 3);
    sv_claim_release(&c);
    close(lock_fd);
    lock_fd = -1;
}

TEST(an_empty_growing_file_counts_as_nothing)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c;
    struct sv_err err = {0};
    char path[600];
    snprintf(path, sizeof path, "%s.part", out);
    test_write_file(path, "");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK(!c.has_left && !is_there(path));
    snprintf(path, sizeof path, "%s.part.1", out);
    CHECK(!is_there(path));
    sv_claim_release(&c);
    test_write_file(c.part, "x");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    CHECK(c.has_left && is_there(path));
    REQUIRE(mkfifo(c.part, 0600) == 0); /* somebody else's hand */
    CHECK_INT_EQ(sv_claim_settle(&c, &err), SV_EIO);
    CHECK(strstr(err.msg, "has been replaced by another file") != NULL);
    CHECK(is_there(c.marker) && !is_there(out));
    sv_claim_release(&c);
}

/* The rule holds for a later recovery, too. */
TEST(recovery_knows_what_may_be_replaced)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c;
    char name[1024];
    test_write_file(out, "old");
    leave_behind(out, NULL, "killed");
    REQUIRE(sv_claim_read(out, &c) == SV_CLAIM_THERE);
    CHECK(c.found.is_known && c.found.exists);
    CHECK(sv_claim_free_name(&c, name, sizeof name));
    CHECK_STR_EQ(name, out);
    test_write_file(in_scratch("new"), "newer");
    REQUIRE(rename(in_scratch("new"), out) == 0);
    CHECK(sv_claim_free_name(&c, name, sizeof name));
    CHECK_STR_EQ(name, in_scratch("t.1.pftrace"));
}

TEST(a_file_made_from_the_growing_one)
{
    const char *out = in_scratch("t.json"), *made = in_scratch("made");
    struct sv_claim c;
    struct sv_err err = {0};
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "growing");
    test_write_file(made, "made of it");
    REQUIRE(sv_claim_settle_as(&c, made, &err) == 0);
    CHECK_STR_EQ(test_read_file(out), "made of it");
    CHECK(!is_there(c.part) && !is_there(c.marker));
}

TEST(a_claim_that_was_lost_is_not_released)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c, other;
    struct sv_err err = {0};
    REQUIRE(sv_claim_take(&c, out, &(struct sv_claim_wish){.kind = SV_CLAIM_PROGRAM}, &err) == 0);
    unlink(c.marker);
    REQUIRE(sv_claim_take(&other, out, &recorder, &err) == 0);
    test_write_file(other.part, "theirs");
    struct sv_claim late = c;
    CHECK_INT_EQ(sv_claim_settle(&late, &err), SV_EHELD);
    CHECK(!is_there(out));
    sv_claim_abandon(&c);
    CHECK(is_there(other.marker));
    CHECK_STR_EQ(test_read_file(other.part), "theirs");
    sv_claim_release(&other);
    CHECK(!is_there(other.marker));
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    sv_claim_release(&other); /* once more: it is not theirs any longer */
    CHECK(is_there(c.marker));
    sv_claim_release(&c);
}

TEST(a_marker_that_was_removed_costs_nothing)
{
    const char *out = in_scratch("t.pftrace");
    struct sv_claim c;
    struct sv_err err = {0};
    test_write_file(out, "old");
    REQUIRE(sv_claim_take(&c, out, &recorder, &err) == 0);
    test_write_file(c.part, "new");
    unlink(c.marker);
    CHECK_INT_EQ(sv_claim_settle(&c, &err), 0);
    CHECK_STR_EQ(test_read_file(out), "new");
}

TEST(a_claim_made_for_a_session_is_taken_over_by_it)
{
    const char *out = in_scratch("t.pftrace"), *session = in_scratch("session");
    struct sv_claim c;
    struct sv_err err = {0};
    int go[2];
    REQUIRE(pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM, .session = session};
        if (read(go[0], &byte, 1) != 1)
            _exit(9);
        if (sv_claim_take(&c, out, &wish, &err) < 0)
            _exit(1);
        sv_claim_release(&c);
        _exit(is_there(c.marker) ? 2 : 0);
    }
    struct sv_claim_wish wish = {
        .kind = SV_CLAIM_PROGRAM, .session = session, .pid = (uint32_t)child};
    REQUIRE(sv_claim_take(&c, out, &wish, &err) == 0);
    CHECK_INT_EQ(c.holder.pid, child);
    CHECK_INT_EQ(take_beside(out, &err), SV_EHELD); /* not for this process */
    REQUIRE(write(go[1], "g", 1) == 1 && close(go[0]) == 0 && close(go[1]) == 0);
    int status;
    waitpid(child, &status, 0);
    CHECK_INT_EQ(WEXITSTATUS(status), 0);
}
