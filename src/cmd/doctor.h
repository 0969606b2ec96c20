/* What stave doctor tries (cmd/doctor_trial.c) apart from what it says (cmd/doctor.c). */
#pragma once

#include "record/kernel/kernel.h"

/* Starts a child, follows it and looks for its calls in the records. The programs record files. */
int sv_doctor_trial(struct sv_kernel *kernel, struct sv_err *err);

/* Is there StarPU, and can it record itself? */
enum sv_starpu { SV_STARPU_NONE, SV_STARPU_PLAIN, SV_STARPU_FXT };
enum sv_starpu sv_doctor_starpu(void);
