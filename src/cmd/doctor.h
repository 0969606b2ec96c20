/* What stave doctor tries (cmd/doctor_trial.c) apart from what it says (cmd/doctor.c). */
#ifndef SV_CMD_DOCTOR_H
#define SV_CMD_DOCTOR_H

#include "record/kernel/kernel.h"

/* Starts a child, follows it and looks for its calls in the records. The programs record files. */
int sv_doctor_trial(struct sv_kernel *kernel, struct sv_err *err);

#endif
