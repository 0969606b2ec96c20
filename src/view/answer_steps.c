/* /api/steps: the training steps and their work by kind, as `stave steps` has them. */
#include "view/answers.h"

#include "subjects/comm/figures.h"
#include "why/steps.h"

#define STEPS_MAX 20000u

static void put_words(struct sv_json *j, const char *const *names, size_t n)
{
    sv_json_begin(j, '[');
    for (size_t i = 0; i < n; i++)
        sv_json_cstr(j, names[i]);
    sv_json_end(j);
}

static void put_times(struct sv_json *j, const int64_t *ns, size_t n)
{
    sv_json_begin(j, '[');
    for (size_t i = 0; i < n; i++)
        sv_json_i64_text(j, ns[i]);
    sv_json_end(j);
}

static void put_step(struct sv_json *j, const struct sv_shown *s, const struct sv_step *step)
{
    const char *note = step->is_slow_first  ? "first"
                       : step->is_straggler ? "straggler"
                       : step->is_outlier   ? "outlier"
                                            : "";
    sv_json_begin(j, '{');
    sv_json_put(j, "slice", u64, step->row);
    sv_json_put(j, "number", i64_text, step->number);
    sv_json_put(j, "row", u64, s->rows->row_of_track[step->track]);
    sv_json_put(j, "ts", i64_text, step->ts_ns);
    sv_json_put(j, "dur", i64_text, step->dur_ns);
    sv_json_lit(j, "work");
    put_times(j, step->work_ns, SV_N_WORK);
    sv_json_lit(j, "device");
    put_times(j, step->device_ns, SV_N_DEVICE);
    sv_json_put(j, "note", cstr, note);
    sv_json_end(j);
}

void sv_answer_steps(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_steps steps;
    struct sv_json j;
    (void)q;
    sv_steps_find(&steps, s->trace, NULL);
    sv_steps_divide(&steps, s->trace);
    sv_comm_keep_stragglers(&steps, s->trace);
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "marker", text, steps.marker ? steps.marker : "",
                steps.marker ? strlen(steps.marker) : 0);
    sv_json_put(&j, "median", i64_text, (int64_t)steps.median_ns);
    sv_json_put(&j, "limit", i64_text, (int64_t)steps.limit_ns);
    sv_json_lit(&j, "work");
    put_words(&j, sv_work_names, SV_N_WORK);
    sv_json_lit(&j, "device");
    put_words(&j, sv_device_names, SV_N_DEVICE);
    sv_json_put(&j, "steps", begin, '[');
    for (size_t i = 0; i < steps.n && i < STEPS_MAX; i++)
        put_step(&j, s, &steps.steps[i]);
    sv_json_end(&j);
    sv_json_put(&j, "more", u64, steps.n > STEPS_MAX ? steps.n - STEPS_MAX : 0);
    sv_json_end(&j);
    sv_steps_fini(&steps);
}
