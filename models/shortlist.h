/* weft/models/shortlist.h - lexical shortlists: for each token of a source, the tokens that are
 * likely in its translation.
 *
 * A search that is given one (wf_decode_options.shortlist) chooses among few tokens instead of the
 * whole vocabulary. The file is Marian's binary form, lex.s2t.bin, as Firefox's translators have
 * it. Reading it needs no model. Here both sides share a vocabulary of 32,000 tokens:
 *
 *     wf_shortlist *l = wf_shortlist_read(bytes, n, 32000, 32000, true, message);
 *     wf_decode_options o = wf_decode_defaults();
 *     o.shortlist = l;
 *     bool ok = wf_decode(d, 1, 12, source, &length, NULL, &o, &result);
 *     wf_shortlist_free(l);
 *
 * Files are not handled here: the caller reads the bytes. */
#ifndef WEFT_MODELS_SHORTLIST_H
#define WEFT_MODELS_SHORTLIST_H

#include "../core/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_shortlist wf_shortlist;

/* Read a list from the bytes of a file, which the caller may free afterwards. src_vocab and
 * tgt_vocab are the sizes of the vocabularies; shared: both sides have one vocabulary. NULL with
 * message (256 bytes, or NULL): the bytes are no such list, are damaged, or have tokens that these
 * vocabularies lack. */
WF_API wf_shortlist *wf_shortlist_read(const void *data, size_t bytes, int64_t src_vocab,
                                       int64_t tgt_vocab, bool shared, char *message);
/* NULL is allowed. */
WF_API void wf_shortlist_free(wf_shortlist *l);

#ifdef __cplusplus
}
#endif
#endif
