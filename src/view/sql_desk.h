/* SQL for the viewer: one connection, used by one request at a time. */
#pragma once

#include "view/answers.h"

struct sv_sql_desk;

struct sv_sql_desk *sv_sql_desk_new(void);
void sv_sql_desk_free(struct sv_sql_desk *d);

void sv_answer_sql(struct sv_sql_desk *d, struct sv_shown *s, const struct sv_web_request *q,
                   struct sv_web_answer *a);
void sv_answer_tables(struct sv_sql_desk *d, struct sv_shown *s, struct sv_web_answer *a);
