/* Sessions of this very process: see sdk_scene.h. */
#include "tests/unit/sdk_scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sdk_fresh(struct sdk_scene *s)
{
    memset(s, 0, sizeof *s);
    stave_finish();
    sv_self = &sv_nobody;
    if (sv_process) /* what the kernel and the handler of fork do */
        memset(sv_process, 0, sizeof *sv_process);
    snprintf(s->out, sizeof s->out, "%s", test_scratch("t.pftrace"));
    snprintf(s->dir, sizeof s->dir, "%s", test_scratch("sessions"));
    mkdir(s->dir, 0700);
    setenv("STAVE_SESSION_DIR", s->dir, 1);
    sv_buf_init(&s->text, (size_t)1 << 28);
}

void sdk_start(struct sdk_scene *s, const struct stave_options *options)
{
    struct stave_options o = options ? *options : (struct stave_options){0};
    sdk_fresh(s);
    o.size = sizeof o;
    o.out = s->out;
    REQUIRE(stave_start(&o, NULL) == 0);
}

static void put_path(struct sv_buf *b, const struct sv_dict *d, sv_track t)
{
    const struct sv_track_info *info = &d->tracks[t];
    if (info->kind == SV_TRACK_THREAD && info->tid == gettid()) {
        sv_buf_str(b, "thread");
        return;
    }
    if (info->kind == SV_TRACK_PROCESS && info->pid == getpid()) {
        sv_buf_str(b, "process");
        return;
    }
    if (info->parent && d->tracks[info->parent].kind != SV_TRACK_PROCESS) {
        put_path(b, d, info->parent);
        sv_buf_byte(b, '/');
    }
    struct sv_text name = sv_dict_text(d, info->name);
    sv_buf_escaped(b, name.bytes, name.len);
}

static void put_track(struct sv_buf *b, const struct sv_dict *d, sv_track t)
{
    struct sv_buf own, other;
    sv_buf_init(&own, 1 << 20);
    sv_buf_init(&other, 1 << 20);
    put_path(&own, d, t);
    sv_buf_str(b, sv_buf_cstr(&own));
    for (sv_track i = 1; i < t; i++) {
        sv_buf_clear(&other);
        put_path(&other, d, i);
        if (strcmp(sv_buf_cstr(&own), sv_buf_cstr(&other)) == 0)
            sv_buf_byte(b, '\'');
    }
    sv_buf_fini(&own);
    sv_buf_fini(&other);
}

static void forget_file(struct sdk_scene *s)
{
    if (s->is_read)
        done(&s->file, NULL);
    s->is_read = false;
}

const char *sdk_read(struct sdk_scene *s, const char *path)
{
    forget_file(s);
    sv_buf_clear(&s->text);
    FILE *f = fopen(path, "r");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        if (f)
            fclose(f);
        return "(absent)";
    }
    char *bytes = malloc((size_t)st.st_size + 1);
    REQUIRE(bytes && fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
    fclose(f);
    read_bytes(&s->file, bytes, (size_t)st.st_size, 0);
    s->is_read = true;
    CHECK_INT_EQ(s->file.rc, 0);
    check_no_damage(&s->file);
    for (size_t i = 0; i < s->file.got.n; i++) {
        const struct sv_event *e = &s->file.got.events[i];
        const char *line = dump(&s->file.text, s->file.dict, e, 1);
        sv_buf_printf(&s->text, "%s ", sv_kind_name(e->kind));
        put_track(&s->text, s->file.dict, e->track);
        sv_buf_str(&s->text, strchr(line, '#') + 17);
    }
    free(bytes);
    return sv_buf_cstr(&s->text);
}

const char *sdk_stop(struct sdk_scene *s)
{
    CHECK_INT_EQ(stave_stop(), 0);
    return sdk_read(s, s->out);
}

void sdk_done(struct sdk_scene *s)
{
    stave_finish();
    CHECK_UINT_EQ(sdk_entries(s->dir), 0);
    forget_file(s);
    sv_buf_fini(&s->text);
    unsetenv("STAVE_SESSION_DIR");
}

void sdk_hold(void)
{
    atomic_fetch_add(&sv_process->forks, 1);
    while (atomic_load(&sv_process->writer_works))
        usleep(100);
}

void sdk_release(void)
{
    atomic_fetch_sub(&sv_process->forks, 1);
}

static int usual_stderr = -1;

void sdk_hear(void)
{
    int fd = open(test_scratch("stderr"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    usual_stderr = dup(STDERR_FILENO);
    REQUIRE(fd >= 0 && usual_stderr >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    close(fd);
    sv_say_begin();
}

const char *sdk_heard(void)
{
    dup2(usual_stderr, STDERR_FILENO);
    close(usual_stderr);
    sv_say_begin();
    return test_read_file(test_scratch("stderr"));
}

uint64_t sdk_kept(void)
{
    return sv_self->full_limit - sv_self->limit;
}

size_t sdk_entries(const char *folder)
{
    DIR *d = opendir(folder);
    size_t n = 0;
    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
