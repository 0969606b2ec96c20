/* /api/steps: the training steps and their work by kind, as `stave steps` has them. */
#include "view/answers.h"

#include "why/steps.h"

#define STEPS_MAX 20000u

static void put_words(struct sv_json *j, const char *const *names, size_t n)
{
    sv_json_begin(j, '[');
    for (size_t i = 0; i < n; i++)
        sv_json_text(j, names[i], strlen(names[i]));
    sv_json_end(j);
}

static void put_times(struct sv_json *j, const int64_t *ns, size_t n)
{
    sv_json_begin(j, '[');
    for (size_t i = 0; i < n; i++)
        sv_put_time(j, ns[i]);
    sv_json_end(j);
}

static void put_step(struct sv_json *j, const struct sv_shown *s, const struct sv_step *step)
{
    const char *note = step->is_slow_first  ? "first"
                       : step->is_straggler ? "straggler"
                       : step->is_outlier   ? "outlier"
                                            : "";
    sv_json_begin(j, '{');
    sv_json_lit(j, "slice");
    sv_json_u64(j, step->row);
    sv_json_lit(j, "number");
    sv_put_time(j, step->number);
    sv_json_lit(j, "row");
    sv_json_u64(j, s->rows->row_of_track[step->track]);
    sv_json_lit(j, "ts");
    sv_put_time(j, step->ts_ns);
    sv_json_lit(j, "dur");
    sv_put_time(j, step->dur_ns);
    sv_json_lit(j, "work");
    put_times(j, step->work_ns, SV_N_WORK);
    sv_json_lit(j, "device");
    put_times(j, step->device_ns, SV_N_DEVICE);
    sv_json_lit(j, "note");
    sv_json_text(j, note, strlen(note));
    sv_json_end(j);
}

void sv_answer_steps(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_steps steps;
    struct sv_json j;
    (void)q;
    sv_steps_find(&steps, s->trace, NULL);
    sv_steps_divide(&steps, s->trace);
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "marker");
    sv_json_text(&j, steps.marker ? steps.marker : "", steps.marker ? strlen(steps.marker) : 0);
    sv_json_lit(&j, "median");
    sv_put_time(&j, (int64_t)steps.median_ns);
    sv_json_lit(&j, "limit");
    sv_put_time(&j, (int64_t)steps.limit_ns);
    sv_json_lit(&j, "work");
    put_words(&j, sv_work_names, SV_N_WORK);
    sv_json_lit(&j, "device");
    put_words(&j, sv_device_names, SV_N_DEVICE);
    sv_json_lit(&j, "steps");
    sv_json_begin(&j, '[');
    for (size_t i = 0; i < steps.n && i < STEPS_MAX; i++)
        put_step(&j, s, &steps.steps[i]);
    sv_json_end(&j);
    sv_json_lit(&j, "more");
    sv_json_u64(&j, steps.n > STEPS_MAX ? steps.n - STEPS_MAX : 0);
    sv_json_end(&j);
    sv_steps_fini(&steps);
}
