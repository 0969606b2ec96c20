/* --sync in a recording: what ranks measure becomes metadata of the trace. Called by the recorder;
 * record/sync/sync.h does the work. */
#include "cli/console.h"
#include "record/session/recorder.h"
#include "record/sync/sync.h"

#include <stdlib.h>

enum { JSON_MAX = 1 << 20 };

int sv_record_sync_check(struct sv_record_options *o, struct sv_err *err)
{
    if (!o->use.sync && o->use.sync_address)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--sync-address needs --sync");
    if (!o->use.sync)
        return 0;
    o->sync = sv_alloc(sizeof *o->sync);
    return sv_sync_plan(o->sync, o->out.path, o->use.out_dir, o->use.sync_address, err);
}

int sv_record_sync_open(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_err why = {0};
    if (!r->options->sync)
        return 0;
    r->sync = sv_sync_start(r->options->sync, &why);
    if (why.code == 0)
        return 0;
    r->is_partial = true;
    if (r->options->strict || why.code == SV_EUSAGE)
        return sv_err_set(err, why.code, SV_NO_POS, "%s", why.msg);
    sv_console_note("clocks of the ranks are not related: %s", why.msg);
    return 0;
}

static void describe(struct sv_recorder *r, const struct sv_buf *json)
{
    sv_dict_set_meta(r->dict, SV_META_RELATION, (const char *)json->data, json->len, true);
}

void sv_record_sync_round(struct sv_recorder *r)
{
    struct sv_buf json;
    if (!r->sync)
        return;
    sv_buf_init(&json, JSON_MAX);
    if (sv_sync_poll(r->sync, &json))
        describe(r, &json);
    sv_buf_fini(&json);
}

void sv_record_sync_close(struct sv_recorder *r)
{
    struct sv_buf json;
    char why[256];
    if (!r->sync)
        return;
    sv_buf_init(&json, JSON_MAX);
    if (sv_sync_stop(r->sync, &json, why, sizeof why))
        describe(r, &json);
    sv_buf_fini(&json);
    r->sync = NULL;
    if (why[0] == '\0')
        return;
    r->is_partial = true;
    sv_console_note("the clock of this rank is not related to rank 0's: %s", why);
}
