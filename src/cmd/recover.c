/* stave recover: the trace of a program that was killed, from its growing file and its rings. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "cmd/recover_events.h"
#include "cmd/recover_join.h"
#include "core/base/mem.h"
#include "core/files/out_name.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "listen/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct recover {
    struct sv_output_choice out;
    struct sv_words discard;
    bool keep, clean, yes, force, dry_run;
};

#define NOTHING_RECORDED "%s: the program was killed before it recorded anything; its files were %s"

static void print_problems(const struct sv_leftovers *l)
{
    for (size_t i = 0; i < l->n_problems; i++)
        sv_console_note("%s", l->problems[i]);
}

/* ---- the list ---- */

static const char *state_of(const struct sv_leftover *o)
{
    uint32_t pid;
    enum sv_process_state own = o->has_session ? o->dead.process : sv_leftover_state(o, &pid);
    if (own == SV_PROCESS_RUNS)
        return "running";
    if (own == SV_PROCESS_UNKNOWN)
        return "in another container or on another machine";
    if (o->has_session && o->dead.clients == SV_PROCESS_RUNS)
        return "exited, but another process of it is running";
    if (o->has_session && o->dead.clients == SV_PROCESS_UNKNOWN)
        return "exited, but another process of it may be running";
    if (o->has_session && sv_abandoned_is_kept(&o->dead))
        return "recovered and kept";
    return o->has_session && !sv_abandoned_has_trace(&o->dead) ? "finished" : "exited";
}

static void print_head(const struct sv_leftover *o)
{
    const char *what = o->dead.dir[0] ? o->dead.dir : o->part[0] ? o->part : o->claim.marker;
    uint32_t pid = o->has_session ? o->dead.session.process.pid
                   : o->has_claim ? o->claim.holder.pid
                                  : 0;
    sv_print(stdout, "%s", what);
    if (pid)
        sv_print(stdout, "  pid %u (%s)", pid, state_of(o));
    if (o->problem[0])
        sv_print(stdout, "  cannot be read: %s", o->problem);
    if (o->has_session && o->dead.n_clients)
        sv_print(stdout, " and %u other%s", o->dead.n_clients, o->dead.n_clients == 1 ? "" : "s");
    const char *command = o->has_claim     ? o->claim.command
                          : o->has_session ? o->dead.session.command
                                           : "";
    if (*command)
        sv_print(stdout, "\n  %s", command);
    sv_print(stdout, "\n");
}

static void print_one(const struct sv_leftover *o)
{
    char part[32], rings[32], lost[32];
    print_head(o);
    if ((o->has_session && !sv_abandoned_has_trace(&o->dead)) || (o->problem[0] && !o->part[0]) ||
        sv_leftover_is_bare(o))
        return;
    sv_print(stdout, "  %s: %s written", o->out[0] ? o->out : "no file",
             sv_human_bytes(part, o->part_bytes));
    if (o->has_session)
        sv_print(stdout, ", %s in rings", sv_human_bytes(rings, o->dead.ring_bytes));
    if (o->spool_bytes)
        sv_print(stdout, ", %s of records not decoded yet", sv_human_bytes(rings, o->spool_bytes));
    if (o->has_session && o->dead.ring_losses)
        sv_print(stdout, ", %s lost since then", sv_human_count(lost, o->dead.ring_losses));
    sv_print(stdout, "\n");
}

static int list(void)
{
    struct sv_leftovers l = {0};
    sv_leftovers_everywhere(&l);
    for (size_t i = 0; i < l.n; i++)
        print_one(l.all[i]);
    print_problems(&l);
    if (sv_recover_events_list() + l.n == 0)
        sv_console_note("no sessions on this machine, and no files to recover in this directory");
    sv_leftovers_fini(&l);
    return SV_EXIT_OK;
}

/* ---- the name of the result ---- */

/* Takes a name that nobody has, by an empty file: WANTED, or WANTED with ".recovered" and a number
 * before the suffix. */
static int take_name(const char *wanted, char *to, size_t size, struct sv_err *err)
{
    char text[32] = "";
    for (unsigned i = 0; i < 10000; i++) {
        if (i > 0)
            snprintf(text, sizeof text, i == 1 ? ".recovered" : ".recovered.%u", i);
        if (snprintf(to, size, "%s", wanted) >= (int)size || !sv_name_insert(to, size, text))
            return sv_error(err, SV_EIO, "%s: the name is too long", wanted);
        int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            return sv_err_sys(err, "%s: cannot create", to);
    }
    return sv_error(err, SV_EIO, "%s: no unused file name found", wanted);
}

/* A pipe or a device: there is nothing to overwrite. */
static bool is_stream(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool is_to_stream(const struct recover *r)
{
    return r->out.path && (strcmp(r->out.path, "-") == 0 || is_stream(r->out.path));
}

/* A stream whose name says no format gets the one that the program would have written. */
static struct sv_output_choice choice_for(const struct recover *r, const struct sv_leftover *o)
{
    static const char *const packed[] = {[SV_PLAIN] = NULL, [SV_GZIP] = "gzip", [SV_ZSTD] = "zstd"};
    struct sv_output_choice out = r->out;
    enum sv_compression around = SV_PLAIN;
    if (is_to_stream(r) && !sv_format_for_path(out.path, &around)) {
        const struct sv_format *f = sv_format_for_path(o->out, &around);
        out.to = f ? f->name : NULL;
        out.compress = f ? packed[around] : NULL;
    }
    return out;
}

/* Into the name that was taken; when that fails, for want of memory too, nobody has it. */
static int join_taken(struct sv_leftover *o, const struct sv_output_choice *out, int fd,
                      struct sv_recovered *found, struct sv_err *err)
{
    struct stat ours;
    bool is_known = fstat(fd, &ours) == 0;
    close(fd);
    jmp_buf jump, *outer = sv_no_memory;
    if (setjmp(jump) != 0) {
        sv_no_memory = outer;
        if (is_known)
            sv_trusted_remove(out->path, ours.st_dev, ours.st_ino); /* unless it was replaced */
        sv_out_of_memory(0);
    }
    sv_no_memory = &jump;
    int code = sv_recover_join(o, out, found, err);
    sv_no_memory = outer;
    if (code < 0 && is_known)
        sv_trusted_remove(out->path, ours.st_dev, ours.st_ino);
    return code;
}

/* What is known of the result: whether the inputs may go. */
enum verdict { HOLDS_ALL, NOT_CHECKED, IS_EMPTY };

static void describe_result(const struct sv_leftover *o, const char *wanted, const char *path)
{
    char part[32], rings[32];
    if (strcmp(path, wanted) != 0)
        sv_console_note("%s exists and is kept; the trace was written to %s", wanted, path);
    sv_console_note("%s: joined %s of %s and %s of rings", path,
                    sv_human_bytes(part, o->part_bytes), o->part[0] ? o->part : "no file",
                    sv_human_bytes(rings, o->has_session ? o->dead.ring_bytes : 0));
    if (o->spool_bytes)
        sv_console_note("%s: decoded %s of records of the kernel from %s", path,
                        sv_human_bytes(part, o->spool_bytes), o->spool);
    if (o->has_claim && o->claim.session[0] && !o->has_session)
        sv_console_note("%s: events that were only in rings are missing: the session %s is %s",
                        path, o->claim.session, o->problem[0] ? o->problem : "gone");
}

/* Nothing in the inputs, and all of them could be read: no file is made, unless one was asked for
 * by name. */
static bool is_empty(const struct recover *r, const struct sv_leftover *o,
                     const struct sv_recovered *found)
{
    return !r->out.path && sv_tally_held(&found->inputs) == 0 &&
           sv_tally_held(&found->plain) == 0 && !found->is_damaged && !o->problem[0];
}

static bool can_be_read_back(const char *path)
{
    const struct sv_format *f = sv_format_for_path(path, &(enum sv_compression){SV_PLAIN});
    return f && sv_format_reads(f);
}

static int join_new(const struct recover *r, struct sv_leftover *o, enum verdict *verdict,
                    struct sv_err *err)
{
    char path[SV_PATH_MAX + 32];
    struct sv_output_choice out = choice_for(r, o);
    struct sv_recovered found;
    const char *wanted = out.path ? out.path : o->out;
    *verdict = NOT_CHECKED;
    if (is_to_stream(r))
        return sv_recover_join(o, &out, &found, err);
    int fd = take_name(wanted, path, sizeof path, err);
    if (fd < 0)
        return fd;
    out.path = path;
    int code = join_taken(o, &out, fd, &found, err);
    if (code < 0)
        return code;
    if (is_empty(r, o, &found)) {
        unlink(path);
        *verdict = IS_EMPTY;
        return 0;
    }
    if (can_be_read_back(path)) {
        code = sv_recover_check(o, path, &found, err);
        *verdict = HOLDS_ALL;
    }
    if (code < 0 && !r->out.path)
        unlink(path);
    else
        describe_result(o, wanted, path);
    return code;
}

/* ---- --dry-run ---- */

static void print_input(const char *what, const char *where, const struct sv_tally *t)
{
    char text[160];
    if (where[0])
        sv_print(stdout, "  %s %s: %s\n", what, where, sv_tally_text(t, text, sizeof text));
}

/* What would be read, written and removed; nothing is changed. */
static int describe(const struct recover *r, struct sv_leftover *o, struct sv_err *err)
{
    struct sv_recovered found;
    struct stat st;
    char text[160];
    const char *wanted = r->out.path ? r->out.path : o->out;
    int code = sv_recover_join(o, NULL, &found, err);
    if (code < 0)
        return code;
    print_head(o);
    print_input("growing file", o->part, &found.part);
    print_input("spool", o->spool_bytes ? o->spool : "", &found.spool);
    print_input("rings in", o->has_session ? o->dead.dir : "", &found.rings);
    if (is_empty(r, o, &found)) {
        sv_print(stdout, "  would be removed: nothing was recorded\n");
        return 0;
    }
    bool is_file = !is_to_stream(r);
    sv_print(stdout, "  would be written to %s%s: %s\n", wanted,
             is_file && lstat(wanted, &st) == 0 ? ", which exists, with .recovered in its name"
                                                : "",
             sv_tally_text(&found.inputs, text, sizeof text));
    sv_print(stdout, "  %s\n",
             r->keep || !is_file || !can_be_read_back(wanted)
                 ? "the above would be kept"
                 : "the above would be removed when the trace has been read back and counted");
    return 0;
}

/* ---- one of them ---- */

static int check_state(const struct recover *r, const struct sv_leftover *o, const char *name,
                       struct sv_err *err)
{
    uint32_t pid = 0;
    enum sv_process_state state = sv_leftover_state(o, &pid);
    bool is_writer = !o->has_session || o->dead.process != SV_PROCESS_GONE;
    if (o->has_session && is_writer && !sv_abandoned_has_trace(&o->dead))
        return 0; /* it has finished this one */
    if (state == SV_PROCESS_RUNS)
        return sv_error(
            err, SV_EHELD,
            is_writer
                ? "%s: process %u is still writing it; recover it after that process has exited"
                : "%s: process %u, which traces into it, is still running; recover it after that "
                  "process has exited",
            name, pid);
    if (state == SV_PROCESS_UNKNOWN && !r->force)
        return sv_error(err, SV_EHELD,
                        "%s: process %u of another container or machine may still write to it; use "
                        "--force if that process has exited",
                        name, pid);
    return 0;
}

/* Two recoveries of one session would take the rings away from each other. Returns the lock, a
 * descriptor. */
static int take_lock(const struct sv_leftover *o, struct sv_err *err)
{
    bool is_dir = o->has_session || (o->problem[0] && !o->part[0]);
    const char *what = is_dir ? o->dead.dir : o->part[0] ? o->part : o->claim.marker;
    int fd = is_dir ? sv_trusted_folder(AT_FDCWD, what, SV_TRUST_PRIVATE)
                    : sv_trusted_file(AT_FDCWD, what, O_RDONLY, SV_TRUST_OWN, 0);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return sv_error(err, SV_EINPUT, "%s: another process is recovering it", what);
}

/* As it is now that nobody else has it. */
static int look_again(struct sv_leftover *o, struct sv_err *err)
{
    struct sv_abandoned now;
    if (!o->has_session)
        return 0;
    int code = sv_abandoned_look(o->dead.dir, &now, err);
    if (code >= 0)
        o->dead = now;
    return code;
}

/* What a killed `stave listen` has received is no trace yet. */
static bool is_spool(const struct sv_leftover *o)
{
    return o->has_claim && o->claim.kind == SV_CLAIM_LISTENER;
}

/* Into a name of its own, like any other. */
static int finish_spool(const struct recover *r, struct sv_leftover *o, struct sv_err *err)
{
    char path[SV_PATH_MAX + 32];
    struct sv_output_choice out = choice_for(r, o);
    const char *wanted = out.path ? out.path : o->out;
    bool is_file = !is_to_stream(r);
    if (r->dry_run) {
        print_head(o);
        sv_print(stdout, "  would be written to %s: what the listener received, %llu bytes\n",
                 wanted, (unsigned long long)o->file_bytes);
        return 0;
    }
    int fd = is_file ? take_name(wanted, path, sizeof path, err) : -1;
    if (is_file && fd < 0)
        return fd;
    bool is_checked = is_file && can_be_read_back(path);
    out.path = is_file ? path : wanted;
    int code = sv_spool_finish(
        &o->claim, &out,
        (is_checked ? SV_SPOOL_CHECK : SV_SPOOL_KEEP) | (r->keep ? SV_SPOOL_KEEP : 0u), err);
    if (is_file)
        close(fd);
    if (code >= 0 && is_file && strcmp(path, wanted) != 0)
        sv_console_note("%s exists and is kept; the trace was written to %s", wanted, path);
    if (code < 0 && is_file && !r->out.path)
        unlink(path);
    return code;
}

/* The inputs go when the result is known to hold them; otherwise they stay. */
static int join_and_remove(const struct recover *r, const char *name, struct sv_leftover *o,
                           struct sv_err *err)
{
    enum verdict verdict;
    int code = join_new(r, o, &verdict, err);
    if (code < 0)
        return code;
    if (verdict == IS_EMPTY)
        sv_console_note(NOTHING_RECORDED, name, r->keep ? "kept" : "removed");
    if (verdict == NOT_CHECKED && !r->keep)
        sv_console_note("%s: what was left is kept, since the result cannot be read back", name);
    if (!r->keep && verdict != NOT_CHECKED)
        sv_leftover_remove(o, false);
    else if (o->has_session)
        sv_abandoned_note_kept(&o->dead);
    return 0;
}

static int recover_one(const struct recover *r, const char *name, struct sv_leftover *o,
                       struct sv_err *err)
{
    int code = check_state(r, o, name, err);
    if (code < 0)
        return code;
    if (o->problem[0] && (o->dead.is_other_version || !o->part[0]))
        return sv_error(err, SV_EINPUT, "%s: the session is %s", o->dead.dir, o->problem);
    if (!r->out.path && !sv_format_for_path(o->out, &(enum sv_compression){SV_PLAIN}))
        return sv_error(err, SV_EUSAGE, "%s has no output file; use -o FILE",
                        o->has_session && o->dead.session.out[0] ? o->dead.session.out
                                                                 : "its trace");
    int lock = take_lock(o, err);
    if (lock < 0)
        return lock;
    if (is_spool(o))
        code = finish_spool(r, o, err);
    else
        code = look_again(o, err);
    if (code >= 0 && !is_spool(o))
        code = r->dry_run ? describe(r, o, err) : join_and_remove(r, name, o, err);
    close(lock);
    return code;
}

/* What is finished has its trace already, and a claim may lead to nothing. */
static bool has_something(const struct sv_leftover *o)
{
    return !sv_leftover_is_bare(o) && (!o->has_session || sv_abandoned_has_trace(&o->dead));
}

/* What programs left that were killed between their claim and their first event. False: there is
 * none. */
static bool remove_empty(const struct recover *r, struct sv_leftovers *l)
{
    bool is_some = false;
    for (size_t i = 0; i < l->n; i++) {
        struct sv_leftover *o = l->all[i];
        uint32_t pid;
        int lock = o->has_claim && sv_leftover_state(o, &pid) == SV_PROCESS_GONE
                       ? take_lock(o, &(struct sv_err){0})
                       : -1;
        if (lock < 0)
            continue;
        is_some = true;
        if (!r->keep)
            sv_leftover_remove(o, false);
        close(lock);
    }
    return is_some;
}

/* All that the name leads to, newest first. What fails does not keep the others from being
 * recovered; the first failure is returned. */
static int recover_all(const struct recover *r, const char *name, struct sv_leftovers *l,
                       struct sv_err *err)
{
    struct sv_err each = {0};
    size_t n_tried = 0, n_there = 0;
    int first = 0;
    for (size_t i = 0; i < l->n; i++)
        n_there += has_something(l->all[i]);
    if (n_there > 1 && r->out.path && strcmp(r->out.path, "-") == 0)
        return sv_error(
            err, SV_EUSAGE,
            "%s: there are %zu traces to recover, which standard output cannot hold; use -o FILE",
            name, n_there);
    for (size_t i = 0; i < l->n; i++) {
        if (!has_something(l->all[i]))
            continue;
        n_tried++;
        each = (struct sv_err){0};
        int code = recover_one(r, name, l->all[i], &each);
        if (code < 0 && first < 0)
            sv_console_error(NULL, SV_NO_POS, each.msg);
        if (code < 0 && first == 0) {
            first = code;
            *err = each;
        }
    }
    if (n_tried > 0)
        return first;
    if (remove_empty(r, l)) {
        sv_console_note(NOTHING_RECORDED, name, r->keep ? "kept" : "removed");
        return 0;
    }
    return sv_error(err, SV_EINPUT,
                    "%s: nothing to recover: no killed program wrote it (run 'stave recover' "
                    "without a name for a list)",
                    name);
}

/* ---- cleaning ---- */

static bool is_named(const struct sv_leftover *o, const char *name)
{
    char path[SV_PATH_MAX];
    return sv_leftovers_absolute(name, path, sizeof path) &&
           (strcmp(path, o->out) == 0 || strcmp(path, o->part) == 0 ||
            strcmp(path, o->dead.dir) == 0);
}

static bool is_discarded(const struct recover *r, const struct sv_leftover *o)
{
    for (size_t i = 0; i < r->discard.n; i++)
        if (is_named(o, r->discard.items[i]))
            return true;
    return false;
}

/* True: it could be removed. */
static bool clean_one(const struct recover *r, struct sv_leftover *o)
{
    uint32_t pid;
    bool is_discard = is_discarded(r, o), is_done = sv_leftover_is_done(o);
    print_one(o);
    enum sv_process_state state = sv_leftover_state(o, &pid);
    if (state != SV_PROCESS_GONE && !(state == SV_PROCESS_UNKNOWN && is_discard && r->force)) {
        sv_print(stdout, "  kept: process %u %s\n", pid,
                 state == SV_PROCESS_RUNS ? "is running" : "may be running elsewhere");
        return false;
    }
    if (!is_done && !is_discard) {
        sv_print(stdout, "  kept: not recovered; recover it, or add --discard and its name\n");
        return false;
    }
    int lock = r->yes ? take_lock(o, &(struct sv_err){0}) : -1;
    if (r->yes && lock >= 0)
        sv_leftover_remove(o, true);
    if (lock >= 0)
        close(lock);
    sv_print(stdout, "  %s: %s\n",
             !r->yes     ? "would be removed"
             : lock >= 0 ? "removed"
                         : "kept",
             r->yes && lock < 0 ? "another process is recovering it"
             : is_done          ? "it holds nothing that is not in the trace"
                                : "as requested, including events that were not recovered");
    return true;
}

static struct sv_recover_events events_of(const struct recover *r)
{
    return (struct sv_recover_events){r->keep, r->dry_run, r->yes, &r->discard};
}

static int clean(const struct recover *r, struct sv_err *err)
{
    struct sv_recover_events events = events_of(r);
    struct sv_leftovers l = {0};
    sv_leftovers_everywhere(&l);
    for (size_t i = 0; i < r->discard.n; i++)
        sv_leftovers_of_name(&l, r->discard.items[i]);
    int code = 0;
    for (size_t i = 0; code >= 0 && i < r->discard.n; i++) {
        bool is_there = false;
        for (size_t k = 0; k < l.n && !is_there; k++)
            is_there = is_named(l.all[k], r->discard.items[i]);
        is_there |= sv_recover_events_has(r->discard.items[i]);
        if (!is_there)
            code = sv_error(err, SV_EINPUT, "--discard: no files or sessions of '%s' found",
                            r->discard.items[i]);
    }
    size_t n_removable = 0;
    for (size_t i = 0; code >= 0 && i < l.n; i++)
        n_removable += clean_one(r, l.all[i]);
    print_problems(&l);
    size_t n_events = code >= 0 ? sv_recover_events_clean(&events, &n_removable) : 0;
    if (code >= 0 && l.n + n_events == 0)
        sv_console_note("no sessions on this machine, and no files to recover in this directory");
    else if (code >= 0 && !r->yes)
        sv_console_note(n_removable ? "nothing was removed; --yes removes the above"
                                    : "nothing was removed: there is nothing that can be removed");
    sv_leftovers_fini(&l);
    return code < 0 ? code : SV_EXIT_OK;
}

/* ---- the command ---- */

static int check_options(const struct recover *r, const struct sv_words *operands,
                         struct sv_err *err)
{
    if (r->clean && (operands->n > 0 || r->keep || r->out.path || r->dry_run))
        return sv_error(err, SV_EUSAGE,
                        "--clean cannot be combined with a file, -o, --keep or --dry-run; use "
                        "--discard NAME to remove what was not recovered");
    if (!r->clean && (r->yes || r->discard.n > 0))
        return sv_error(err, SV_EUSAGE, "--%s needs --clean", r->yes ? "yes" : "discard");
    if (!r->clean && operands->n == 0 && (r->keep || r->out.path || r->force || r->dry_run))
        return sv_error(
            err, SV_EUSAGE,
            "no name given: give the output of the killed program, or its session directory");
    return operands->n == 0
               ? 0
               : sv_expect_operands(operands, 1, 1, "output of the killed program", err);
}

static int recover(const struct recover *r, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_leftovers l = {0};
    struct stat st;
    int code = check_options(r, operands, err);
    if (code < 0 || operands->n == 0)
        return code < 0 ? code : r->clean ? clean(r, err) : list();
    const char *name = operands->items[0];
    struct sv_recover_events events = events_of(r);
    if (sv_recover_events_has(name))
        return r->out.path
                   ? sv_error(err, SV_EUSAGE,
                              "%s is completed in its place, without -o; convert it then", name)
                   : sv_recover_events(&events, name, err);
    if (stat(name, &st) == 0 && S_ISDIR(st.st_mode))
        code = sv_leftovers_of_session(&l, name, err);
    else
        sv_leftovers_of_name(&l, name);
    if (code >= 0 && l.failed.code != 0) {
        *err = l.failed;
        code = err->code;
    } else {
        print_problems(&l);
    }
    if (code >= 0)
        code = recover_all(r, name, &l, err);
    sv_leftovers_fini(&l);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct recover *r = options;
    sv_recording_umask();
    int code = recover(r, operands, err);
    sv_words_free(&r->discard);
    return code;
}

static const struct sv_option options[] = {
    {'o', "output", "FILE", SV_OPT_OUTPUT, offsetof(struct recover, out.path),
     "the file to write (default: the name that the program would have written)", NULL, NULL},
    {0, "keep", NULL, SV_OPT_FLAG, offsetof(struct recover, keep),
     "keep the partial file and the session directory", NULL, NULL},
    {0, "dry-run", NULL, SV_OPT_FLAG, offsetof(struct recover, dry_run),
     "say what would be read, written and removed, with the numbers of events; change nothing",
     NULL, NULL},
    {0, "force", NULL, SV_OPT_FLAG, offsetof(struct recover, force),
     "recover even if a process of another container or machine, which cannot be seen from here, "
     "may still write to it",
     NULL, NULL},
    {0, "clean", NULL, SV_OPT_FLAG, offsetof(struct recover, clean),
     "without a file: list what can be removed (finished, recovered or empty), and why the rest "
     "cannot",
     NULL, NULL},
    {0, "yes", NULL, SV_OPT_FLAG, offsetof(struct recover, yes), "with --clean: remove it", NULL,
     NULL},
    {0, "discard", "NAME", SV_OPT_LIST, offsetof(struct recover, discard),
     "with --clean: also remove what was not recovered of this output or session directory; may be "
     "given several times",
     NULL, NULL},
    {0},
};

static const struct sv_example examples[] = {
    {"stave recover", "what can be recovered on this machine"},
    {"stave recover trace.pftrace", "after kill -9: the complete trace under its name"},
    {"stave recover --dry-run trace.pftrace", "what that would do"},
    {"stave recover trace.pftrace -o part.json", "somewhere else, in another format"},
    {"stave recover --clean", "what could be removed"},
    {"stave recover --clean --yes --discard old.pftrace",
     "remove it, and the unrecovered rest of old.pftrace"},
    {0},
};

const struct sv_command sv_command_recover = {
    .name = "recover",
    .operands = "[OUT]",
    .summary = "recover the trace of a killed program",
    .description =
        "When a program that traces with libstave, 'stave record' or 'stave listen' is killed, "
        "OUT.part holds the trace as far as it was written, and rings in shared memory hold "
        "everything later, up to the last event. This verb joins both into one valid trace: every "
        "event that was recorded is in it once, or is counted in it as lost.\n\n"
        "OUT is the name that was given in STAVE_OUT or with -o, or a session directory. A file of "
        "ferrum's writer (STAVE_TRACE_OUT) is completed in its place. "
        "Everything that belongs to the name is recovered, newest first, each trace into its own "
        "file. No file is overwritten: if OUT exists, '.recovered' is put before its suffix. "
        "What was left is removed only after the result was read back and its events were counted: "
        "if it holds fewer than what was left, everything stays and the exit code is 4. "
        "Without a name, everything that can be recovered is listed: the sessions of this user on "
        "this machine, and files in the current directory. Files that another user could have "
        "written are never read or removed.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct recover),
    .run = run,
};
