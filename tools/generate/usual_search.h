/* tools/generate/usual_search.h - the default search, for models whose files set none: a beam
 * search as in "Attention Is All You Need" for text, and greedy search for token ids. */
#ifndef WEFT_TOOLS_GENERATE_USUAL_SEARCH_H
#define WEFT_TOOLS_GENERATE_USUAL_SEARCH_H

#include "models/decode.h"

enum { USUAL_BEAM = 4, USUAL_PENALTY = WF_PENALTY_GNMT, USUAL_ROOM = 50 };
/* WF_STOP_FULL would end the search when `beam` outputs have ended. If the vocabulary is small and
 * the model sure, most of these are improbable, and the best output is still open then. */
enum { USUAL_STOP = WF_STOP_PRESENT };
/* maximum length of an output that continues a prompt, in tokens */
enum { USUAL_ROOM_OF_PROMPTS = 200 };
#define USUAL_ALPHA 0.6

static inline wf_decode_options usual_search(bool text) {
    wf_decode_options o = wf_decode_defaults();
    o.stop = (wf_stop)USUAL_STOP;
    if (!text) return o;
    o.beam = USUAL_BEAM;
    o.penalty = (wf_length_penalty)USUAL_PENALTY;
    o.alpha = USUAL_ALPHA;
    o.max_len_b = USUAL_ROOM;
    return o;
}

#endif
