/* --out-dir: every recording gets a folder of its own, DIR/run-0001 and so on, so that nothing is
 * overwritten and all of a run is together.
 *
 * Called by `stave record` before the recording begins. */
#include "record/session/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS_MAX = 999999 };

static int number_of(const char *name)
{
    char *end;
    if (strncmp(name, "run-", 4) != 0 || name[4] < '0' || name[4] > '9')
        return 0;
    long n = strtol(name + 4, &end, 10);
    return n > 0 && n < RUNS_MAX && (*end == 0 || *end == '.') ? (int)n : 0;
}

/* Archives count, too: a run whose folder was removed keeps its number. */
static int last_run(const char *dir, struct sv_err *err)
{
    DIR *d = opendir(dir);
    int last = 0;
    if (!d)
        return sv_err_sys(err, "--out-dir: %s", dir);
    for (const struct dirent *e; (e = readdir(d));) {
        int n = number_of(e->d_name);
        last = n > last ? n : last;
    }
    (void)closedir(d);
    return last;
}

/* mkdir decides who gets a number: two recordings that begin together have two folders. */
static int make_folder(struct sv_record_place *p, const char *dir, struct sv_err *err)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return sv_err_sys(err, "--out-dir: cannot make %s", dir);
    for (int n = last_run(dir, err) + 1; err->code == SV_OK && n <= RUNS_MAX; n++) {
        snprintf(p->folder, sizeof p->folder, "%.800s/run-%04d", dir, n);
        snprintf(p->name, sizeof p->name, "run-%04d", n);
        if (mkdir(p->folder, 0777) == 0)
            return 0;
        if (errno != EEXIST)
            return sv_err_sys(err, "--out-dir: cannot make %s", p->folder);
    }
    return sv_err_set(err, SV_EIO, SV_NO_POS, "--out-dir: no number is left in %s", dir);
}

static int place_in_folder(struct sv_record_options *o, struct sv_record_place *p,
                           struct sv_err *err)
{
    const char *name = o->out.path ? o->out.path : "trace.pftrace";
    if (strchr(name, '/') || strlen(name) > 200)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--out-dir: -o is the name of the trace inside the run's folder; '%s' "
                          "is a path",
                          name);
    int code = make_folder(p, o->use.out_dir, err);
    if (code < 0)
        return code;
    snprintf(p->trace, sizeof p->trace, "%s/%s", p->folder, name);
    snprintf(p->out_log, sizeof p->out_log, "%s/stdout.log", p->folder);
    snprintf(p->err_log, sizeof p->err_log, "%s/stderr.log", p->folder);
    snprintf(p->archive, sizeof p->archive, "%s.tar.zst", p->folder);
    o->out.path = p->trace;
    return 0;
}

int sv_record_place(struct sv_record_options *o, struct sv_record_place *p, struct sv_err *err)
{
    char stem[1024];
    if (o->use.out_dir)
        return place_in_folder(o, p, err);
    /* train.json.gz is train */
    snprintf(stem, sizeof stem, "%.*s", (int)sv_format_stem(o->out.path), o->out.path);
    const char *slash = strrchr(stem, '/');
    snprintf(p->name, sizeof p->name, "%.200s", slash ? slash + 1 : stem);
    snprintf(p->trace, sizeof p->trace, "%.1023s", o->out.path);
    snprintf(p->out_log, sizeof p->out_log, "%.1000s.stdout.log", stem);
    snprintf(p->err_log, sizeof p->err_log, "%.1000s.stderr.log", stem);
    snprintf(p->archive, sizeof p->archive, "%.1000s.tar.zst", stem);
    return 0;
}
