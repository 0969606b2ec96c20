/* What stave doctor tries (cmd/doctor_trial.c) apart from what it says (cmd/doctor.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "record/kernel/kernel.h"

/* Starts a child, follows it and looks for its calls in the records. The programs record files. */
int sv_doctor_trial(struct sv_kernel *kernel, struct sv_err *err);

/* Is there StarPU, and can it record itself? */
enum sv_starpu { SV_STARPU_NONE, SV_STARPU_PLAIN, SV_STARPU_FXT };
enum sv_starpu sv_doctor_starpu(void);

/* What a user without root can record (doctor_user.c). True: states, waits and stacks. */
bool sv_doctor_looks(char *text, size_t size);
/* Python's hooks; `hooks` is the folder for PYTHONPATH, NULL: not here. */
enum sv_doctor_python { SV_DOCTOR_NO_PYTHON, SV_DOCTOR_NO_HOOKS, SV_DOCTOR_HAS_HOOKS };
enum sv_doctor_python sv_doctor_python(const char *hooks, char *text, size_t size);
