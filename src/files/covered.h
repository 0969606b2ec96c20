/* Files of one run that say the same as others of it. */
#pragma once

#include "files/found.h"

/* Of the files that were found in folders, those that hold what another one holds as well or better
 * lose their format and get `covered_by`. */
void sv_files_leave_out(struct sv_files *f);
