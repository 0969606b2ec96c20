/* The names by which steps are known: who looks for steps in a trace (why/steps.c) and who watches
 * them while they are recorded (record/when/) look for the same. */
#pragma once

/* The markers that are tried, in this order. */
#define SV_STEP_MARKERS                                                                            \
    "ProfilerStep#*", "ProfilerStep*", "[Tt]rain_step*", "[Tt]raining step*", "[Ss]tep[ _#:]*",    \
        "[Ss]tep[0-9]*", "[Ss]tep", "[Ii]teration*", "[Ii]ter[ _#:]*", "[Ii]ter[0-9]*", "[Ii]ter", \
        "train_batch*", "[Bb]atch[ _#:]*", "*block_start", "*epoch_start", "[Ee]poch*"
