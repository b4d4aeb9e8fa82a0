/* tools/files/convert.c - converts a PyTorch state_dict, in safetensors or as torch.save writes it,
 * to a model and back. It also converts a folder of Hugging Face (convert_hf.c) and a file of
 * Marian (convert_marian.c), and back.
 *
 * It also rounds the weights of a weft model to int8, or converts them back to f32.
 *
 * Names and shapes of tensors determine most of a model's configuration, and options the rest. The
 * program prints the configuration on stderr, so that a wrong guess is seen at once. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert_hf.h"
#include "convert_marian.h"
#include "convert_target.h"
#include "core/file_internal.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/options.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal.h"

enum { FROM_FILE, FROM_HF, FROM_MARIAN };
enum { TO_WEFT, TO_TORCH, TO_HF, TO_MARIAN };

typedef struct settings {
    const char *input, *output, *adapter, *base, *spm_src, *spm_tgt, *scales, *calibrate;
    int from, to, norm, positions, activation, dtype, weights;
    int64_t heads, max_len, pad_id, start_id, end_id;
    double eps;
    bool scale, overwrite, guided;
} settings;

/* Static, because the rows of the option table hold addresses of these settings. */
static settings told = {
    .norm = -1, .positions = -1, .max_len = 512, .pad_id = -1, .eps = 1e-5, .weights = -1
};

static option rows[] = {
    GROUP("Files"),
    CHOICE("from", told.from, "file|hf|marian",
           "kind of FILE, which is converted. file: a model of weft, or a PyTorch state_dict as "
           "safetensors or torch.save wrote it. hf: a folder of Hugging Face's transformers, which "
           "needs no further options, or with --base one of adapters of PEFT. marian: a model.npz "
           "of Marian, or a translator of Firefox (.intgemm.alphas.bin). --spm-src and --spm-tgt "
           "give its vocabularies. The length penalty comes from MODEL.decoder.yml, decoder.yml or "
           "config.intgemm8bitalpha.yml beside it. With --from hf and marian only --to weft is "
           "possible"),
    CHOICE("to", told.to, "weft|torch|hf|marian",
           "kind of the output. weft: a model file for the programs of weft. torch: a state_dict "
           "for load_state_dict of torch.nn.Transformer. hf: a folder for from_pretrained. marian: "
           "a model.npz for Marian, or with --scales or --calibrate a translator of Firefox. For "
           "torch, hf and marian FILE must be a model of weft, of a form that the other side has"),
    NEW_MODEL("output", told.output,
              "file to write; with --to hf a folder. It must be given. An existing file is "
              "replaced only if it is a model, and not the input itself. See also --overwrite",
              .letter = 'o'),
    MODEL("adapter", told.adapter,
          "merge the adapters in this file into the model: write it with their products added to "
          "its weights. train --lora or --from hf wrote them for this model. FILE must be a model "
          "of weft, and --to must be weft"),
    MODEL("base", told.base,
          "with --from hf: model file to which the LoRA adapters in FILE belong. FILE is then a "
          "folder as PEFT writes it, and the output a file of adapters. --to hf writes such a file "
          "as a folder of PEFT, and does not need this option"),
    INPUT("spm-src", told.spm_src,
          "with --from marian: SentencePiece model (.spm) of the sources, and also of the targets "
          "unless --spm-tgt is given. Without both the model reads and writes token ids"),
    INPUT("spm-tgt", told.spm_tgt,
          "with --from marian: SentencePiece model (.spm) of the targets, and also of the sources "
          "unless --spm-src is given"),
    FLAG("guided", told.guided,
         "with --from marian: say that the model was trained with guided alignment, as Firefox's "
         "are. generate --alignment then uses the attention head that learned it"),
    INPUT("scales", told.scales,
          "with --to marian: write an .intgemm.alphas.bin in int8, with the scales of activations "
          "from this file. It is the .intgemm.alphas.bin from which the model was converted before "
          "it was trained further"),
    INPUT("calibrate", told.calibrate,
          "with --to marian: write an .intgemm.alphas.bin in int8, with the scales of activations "
          "that the lines of this file need. They are source text, about a thousand lines. Refused "
          "with --scales"),
    FLAG("overwrite", told.overwrite,
         "replace a training that can be resumed, or with --to hf a model that is in the folder. "
         "Without the option neither is replaced"),

    GROUP("With --to weft: format of the weights"),
    CHOICE("weights", told.weights, "f32|int8",
           "with --to weft: number format of the weight matrices in the output. int8 has a scale "
           "for each row, and takes a quarter of the bytes of f32. If FILE is a model of weft, the "
           "option must be given, unless --adapter is. Refused with --base",
           .fallback = "f32"),

#include "state_dict_rows.inc"

    GROUP("With --to torch"),
    CHOICE("dtype", told.dtype, "f32|bf16",
           "with --to torch: number format of every tensor in the state_dict. bf16 is rounded to "
           "nearest"),
};

static program self = {
    .name = "convert",
    .purpose = "converts a model from a PyTorch state_dict (safetensors, or torch.save's .bin), a "
               "folder of Hugging Face or a file of Marian, and back",
    .examples =
        "  convert --heads 8 --norm post --positions sinusoidal --scale-embedding in.safetensors "
        "-o model.weft\n"
        "  convert --heads 4 --norm pre --positions sinusoidal pytorch_model.bin -o model.weft\n"
        "  convert --to torch model.weft -o state_dict.safetensors\n"
        "  convert --from hf opus-mt-en-de -o en-de.weft\n"
        "  convert --from marian model.ende.intgemm.alphas.bin --spm-src vocab.ende.spm -o "
        "student.weft\n"
        "  convert --to marian student.weft -o model.npz\n"
        "  convert --to marian --calibrate lines.txt student.weft -o student.intgemm.alphas.bin\n"
        "  convert --to hf en-de.weft -o folder\n"
        "  convert --weights int8 model.weft -o small.weft\n"
        "  convert --adapter own.weft base.weft -o merged.weft\n"
        "  convert --from hf --base en-de.weft peft-folder -o tuned.weft\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "FILE",
    .operand = &told.input,
    .operand_use = USE_MODEL,
};

/* ---- what is asked ------------------------------------------------------------------------- */

static void refuse_said(bool refused, const char *because) {
    option_no_effect(&self,
                     "heads|norm|positions|scale-embedding|activation|pad-id|start-id|end-id|layer-"
                     "norm-eps|max-len",
                     refused, because);
}

static void check_options(const settings *set) {
    static const char of_marian[] = "a model.npz is written in f32, an .intgemm.alphas.bin in int8";
    if (!set->input) usage_error(&self, "say which file to convert");
    if (!set->output)
        usage_error(&self, "say where to: -o %s",
                    set->to == TO_HF ? "FOLDER, which is made" : "FILE");
    if (set->from != FROM_FILE && set->to != TO_WEFT)
        usage_error(&self, "--from %s makes a model; convert that one --to torch, hf or marian",
                    set->from == FROM_HF ? "hf" : "marian");
    refuse_said(set->to == TO_TORCH, "--to torch takes it from the model");
    refuse_said(set->to == TO_HF, "--to hf takes it from the model");
    refuse_said(set->to == TO_MARIAN, "--to marian takes it from the model");
    refuse_said(set->from == FROM_HF, "--from hf takes it from config.json");
    refuse_said(set->from == FROM_MARIAN, "--from marian takes it from the file");
    option_no_effect(&self, "spm-src|spm-tgt|guided", set->from != FROM_MARIAN,
                     "it is for --from marian");
    option_no_effect(&self, "scales|calibrate", set->to != TO_MARIAN, "it is for --to marian");
    option_no_effect(&self, "calibrate", set->scales, "--scales has the scales");
    option_no_effect(&self, "adapter", set->from != FROM_FILE, "import the model first");
    option_no_effect(&self, "adapter", set->to != TO_WEFT, "merge it into a model first");
    option_no_effect(&self, "base", set->from != FROM_HF, "it is for --from hf");
    option_no_effect(&self, "weights", set->base, "adapters are written in f32");
    option_no_effect(&self, "dtype", set->to == TO_WEFT, "a model is written in f32 or int8");
    option_no_effect(&self, "dtype", set->to == TO_HF, "a folder's weights are written in f32");
    option_no_effect(&self, "dtype|weights", set->to == TO_MARIAN, of_marian);
    option_no_effect(&self, "weights", set->to == TO_TORCH, "--dtype is for a state_dict");
    option_no_effect(&self, "weights", set->to == TO_HF, "a folder's weights are written in f32");
}

static bool is_weft(const wf_file *f) {
    return wf_file_meta(f, "weft.config.d_model");
}

static void check_state_dict_options(const settings *set) {
    if (!set->heads)
        usage_error(&self, "say how many heads: --heads N, which is no tensor's shape");
    if (set->norm < 0) usage_error(&self, "say where the norms are: --norm pre|post");
}

static wf_transformer_config asked(const settings *set) {
    wf_transformer_config c = wf_transformer_defaults();
    c.num_heads = set->heads;
    c.max_len = set->max_len;
    c.norm_first = set->norm == WF_NORM_PRE;
    c.positions = set->positions < 0 ? WF_POSITIONS_NONE : (wf_positions)set->positions;
    c.activation = (wf_activation)set->activation;
    c.scale_embedding = set->scale;
    c.layer_norm_eps = set->eps;
    c.pad_id = (int32_t)set->pad_id;
    c.start_id = (int32_t)set->start_id;
    c.end_id = (int32_t)set->end_id;
    return c;
}

/* An error message if --positions or --max-len does not suit the positions that the file has; NULL:
 * both suit them. */
static const char *wrong_positions(const settings *set, wf_positions found) {
    if (found == WF_POSITIONS_LEARNED && option_find(&self, "max-len")->seen)
        return "has tables of positions, which say it: --max-len would have no effect";
    if (set->positions < 0 && found != WF_POSITIONS_LEARNED)
        return "has no table of positions: --positions sinusoidal|none says which kind it has";
    return set->positions < 0 || set->positions == (int)found
               ? NULL
               : "has tables of positions: --positions learned";
}

/* ---- what is done -------------------------------------------------------------------------- */

static const char *final_norms(const wf_transformer_config *c) {
    if (c->encoder_norm && c->decoder_norm) return "final norms";
    if (c->encoder_norm) return "a final norm on the encoder";
    return c->decoder_norm ? "a final norm on the decoder" : "no final norms";
}

static void tell_in_words(const wf_model *m) {
    char text[WF_MESSAGE], parameters[OPTION_TEXT_SIZE];
    wf_model_text(m, text);
    fprintf(stderr, "%s; %s parameters\n", text,
            thousands((double)wf_model_parameter_count(m), parameters));
}

static const char *position_words(const wf_transformer_config *c) {
    if (c->relative_buckets) return "relative";
    return c->positions ? wf_positions_name((int)c->positions) : "no";
}

static void tell(const wf_model *m) {
    static const char *const ties[] = { [WF_TIE_NONE] = "not tied",
                                        [WF_TIE_DECODER] = "tied in the decoder",
                                        [WF_TIE_ALL] = "all tied",
                                        [WF_TIE_INPUTS] = "of the inputs tied" };
    const wf_transformer_config *c = &wf_transformer_of(m)->config;
    char parameters[OPTION_TEXT_SIZE];
    fprintf(stderr,
            "%s-norm, width %" PRId64 ", %" PRId64 " heads, %" PRId64 " + %" PRId64
            " layers, feed-forward %" PRId64 " (%s%s), %s%s\n",
            c->norm_first ? "pre" : "post", c->d_model, c->num_heads, c->encoder_layers,
            c->decoder_layers, c->dim_feedforward, c->gated ? "gated " : "",
            wf_activation_name((int)c->activation), final_norms(c), c->bias ? "" : ", no biases");
    fprintf(stderr,
            "vocabularies %" PRId64 " and %" PRId64
            ", tables %s, embeddings %sscaled, %s positions, up to %" PRId64 " tokens; "
            "%s parameters\n",
            c->src_vocab, c->tgt_vocab, ties[c->tie], c->scale_embedding ? "" : "not ",
            position_words(c), c->max_len,
            thousands((double)wf_model_parameter_count(m), parameters));
}

/* The number of values that are not finite in the written file. bf16 has no number for values near
 * the largest f32. */
static int64_t not_finite(const wf_tensor *t, bool bf16) {
    float least = bf16 ? 0x1.FFp127f : INFINITY;
    int64_t count = wf_count(t), n = 0;
    float *values = malloc(wf_bytes(t) + 1);
    if (!values || !wf_read(t, values, wf_bytes(t))) fail(&self, "out of memory");
    for (int64_t i = 0; i < count; i++) n += !(fabsf(values[i]) < least);
    free(values);
    return n;
}

/* Warns about values that are not finite. A file may have them, but the user should know. */
static void tell_not_finite(const wf_model *m, bool bf16) {
    const char *first = NULL;
    char number[OPTION_TEXT_SIZE];
    int64_t all = 0;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        int64_t n = t->kind == WF_PARAM ? not_finite(t, bf16) : 0;
        if (n && !first) first = t->name;
        all += n;
    }
    if (all)
        warn(&self, "values that are NaN or infinite: %s, the first in '%s'",
             thousands((double)all, number), first);
}

static wf_model *from_torch(const settings *set, wf_file *f) {
    char message[WF_MESSAGE];
    check_state_dict_options(set);
    wf_transformer_config c = asked(set);
    wf_model *m = wf_transformer_from_state_dict(f, &c, WF_F32, message);
    if (!m) fail(&self, "%s: %s", set->input, message);
    const char *why = wrong_positions(set, wf_transformer_of(m)->config.positions);
    if (!why) return m;
    wf_model_free(m), wf_file_free(f);
    usage_error(&self, "%s %s", set->input, why);
}

static wf_layout layout_of(const settings *set) {
    return set->weights == 1 ? WF_PANELS_INT8 : WF_ROW_MAJOR;
}

/* Adds the products of --adapter to the model's weights, if it is given. */
static bool merge(const settings *set, wf_model *m, const char *hash, char *message) {
    if (!set->adapter) return true;
    wf_file *f = wf_file_open(set->adapter);
    bool ok = wf_model_merge_adapters(m, f, message);
    if (!ok) fail(&self, "%s: %s", set->adapter, message);
    const char *base = wf_file_meta(f, WF_ADAPTER_BASE);
    if (base && strcmp(base, hash) != 0)
        warn(&self,
             "warning: %s was trained beside other weights than those in %s; it is merged all the "
             "same, and outputs may be worse",
             set->adapter, set->input);
    wf_file_free(f);
    return ok;
}

/* Packs the weights before loading, so that each is written once, in its final layout. With an
 * adapter they are packed afterwards, because adapters are merged into f32. */
static wf_model *repacked(const settings *set, const wf_file *f, const char *hash) {
    char message[WF_MESSAGE], text[WF_MESSAGE];
    wf_layout before = set->adapter ? WF_ROW_MAJOR : layout_of(set);
    wf_adapters adapters;
    if (!set->adapter && wf_model_read_adapters(f, &adapters, NULL))
        fail(&self,
             "%s has adapters without their model: convert --adapter %s MODEL -o FILE merges them",
             set->input, set->input);
    if (set->weights < 0 && !set->adapter)
        fail(&self,
             "%s is a model of weft already; --to torch makes a state_dict of it, --to hf a folder "
             "for transformers, --weights int8|f32 a model",
             set->input);
    refuse_said(true, "the model says it");
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, message);
    if (!m || !wf_pack_weights(m->graph, before, message) ||
        !wf_model_load_weights(m, f, message) || !merge(set, m, hash, message) ||
        !wf_pack_weights(m->graph, layout_of(set), message) || !wf_model_describe(f, text, message))
        fail(&self, "%s: %s", set->input, message);
    fprintf(stderr, "%s\n", text);
    return m;
}

/* True for metadata that wf_model_save writes itself. */
static bool written_anew(const wf_model *m, const char *key) {
    for (int i = 0; i < m->n_tied; i++)
        if (strcmp(key, m->tied[i]) == 0) return true;
    return strncmp(key, "weft.", 5) == 0;
}

/* Saves the model with its vocabulary and all other metadata of the file. */
static bool save_repacked(const wf_model *m, const wf_file *f, const char *target, char *message) {
    int n = 0, count = wf_file_meta_count(f);
    wf_meta *meta = memory_or_fail(&self, calloc((size_t)count + 1, sizeof *meta));
    for (int i = 0; i < count; i++)
        if (!written_anew(m, wf_file_meta_at(f, i).key)) meta[n++] = wf_file_meta_at(f, i);
    bool saved = wf_model_save(m, target, NULL, meta, n, message);
    free(meta);
    return saved;
}

static wf_model *from_weft(const settings *set, const wf_file *f) {
    char message[WF_MESSAGE];
    wf_model *m = wf_model_load(f, NULL, WF_F32, 0, message);
    if (!m) fail(&self, "%s: %s", set->input, message);
    return m;
}

/* Prints the sizes of the model's file before and after. */
static void tell_sizes(const char *from, const char *to) {
    char before[OPTION_TEXT_SIZE], after[OPTION_TEXT_SIZE];
    struct stat a, b;
    if (stat(from, &a) != 0 || stat(to, &b) != 0) return;
    fprintf(stderr, "%s: %s, %s: %s\n", from, bytes_text((double)a.st_size, before), to,
            bytes_text((double)b.st_size, after));
}

static void convert_from_hf(const settings *set) {
    char message[WF_MESSAGE], target[PATH_SIZE];
    wf_hf hf;
    self.operand_use = USE_NONE; /* the input is a folder */
    check_source(&self, set->input, set->base != NULL);
    find_target(&self, set->output, set->overwrite, target);
    if (set->base) {
        import_adapters(&self, set->input, set->base, target);
        return;
    }
    import_folder(&self, set->input, &hf);
    if (!wf_pack_weights(hf.model->graph, layout_of(set), message) ||
        !save_imported(&hf, NULL, target, message))
        fail(&self, "%s", message);
    (wf_transformer_of(hf.model) ? tell : tell_in_words)(hf.model);
    wf_hf_free(&hf);
}

static void tell_penalty(const wf_generation *g, const char *decoder) {
    char number[OPTION_TEXT_SIZE];
    if (!g->options.penalty) return;
    fprintf(stderr, "length penalty %s, as %s says\n", shortest(g->options.alpha, number), decoder);
}

static void convert_from_marian(const settings *set) {
    char message[WF_MESSAGE], target[PATH_SIZE], decoder[PATH_SIZE];
    wf_hf hf;
    check_uses(&self, NULL, 0);
    find_target(&self, set->output, set->overwrite, target);
    import_marian(&self, set->input, set->spm_src, set->spm_tgt, &hf, decoder);
    if (!wf_pack_weights(hf.model->graph, layout_of(set), message) ||
        !save_imported(&hf, set->guided ? "0" : NULL, target, message))
        fail(&self, "%s", message);
    tell(hf.model);
    tell_penalty(&hf.generation, decoder);
    wf_hf_free(&hf);
}

static void convert_to_hf(const settings *set) {
    option_find(&self, "output")->use = USE_NONE;
    check_destination(&self, set->output, set->overwrite);
    if (!export_adapters(&self, set->input, set->output))
        export_folder(&self, set->input, set->output);
}

static void convert_file(const settings *set) {
    char message[WF_MESSAGE], target[PATH_SIZE], hash[WF_MODEL_HASH] = "";
    check_uses(&self, NULL, 0);
    wf_file *f = wf_file_open(set->input);
    if (!wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    if (set->adapter) wf_model_hash(f, hash); /* reads the whole file */
    wf_file_drop_loaded(f);
    find_target(&self, set->output, set->overwrite, target);
    if (set->adapter && !is_weft(f))
        usage_error(&self, "--adapter: %s is no model of weft; convert it first", set->input);
    bool saved, repacks = set->to == TO_WEFT && is_weft(f);
    wf_model *m;
    if (repacks) {
        m = repacked(set, f, hash);
        saved = save_repacked(m, f, target, message);
    } else if (set->to == TO_MARIAN) {
        m = from_weft(set, f);
        marian_form form = { set->input, set->scales, set->calibrate, "" };
        export_marian(&self, f, m, &form, target);
        fputs(form.said, stderr);
        saved = true;
    } else if (set->to == TO_TORCH) {
        m = from_weft(set, f);
        if (!wf_transformer_of(m))
            fail(&self,
                 "%s: no torch.nn.Transformer can load this kind of model; --to hf makes a folder "
                 "for transformers",
                 set->input);
        saved = wf_pack_weights(m->graph, layout_of(set), message) &&
                wf_transformer_save_state_dict(m, target, set->dtype == 1, message);
    } else {
        m = from_torch(set, f);
        saved = wf_pack_weights(m->graph, layout_of(set), message) &&
                wf_model_save(m, target, NULL, NULL, 0, message);
    }
    if (!saved) fail(&self, "%s", message);
    if (repacks)
        tell_sizes(set->input, set->output);
    else
        tell(m);
    if (repacks && wf_file_meta(f, "weft.kind") &&
        strcmp(wf_file_meta(f, "weft.kind"), "checkpoint") == 0)
        fprintf(stderr, "without the moments of its optimizer: training can't go on from it\n");
    if (set->to == TO_TORCH) tell_way_back(stderr, m, set->output);
    tell_not_finite(m, set->dtype == 1);
    wf_model_free(m);
    wf_file_free(f);
}

int main(int argc, char **argv) {
    const settings *set = &told;
    terminal_open();
    options_parse(&self, argc, argv);
    check_options(set);
    if (set->from == FROM_HF)
        convert_from_hf(set);
    else if (set->from == FROM_MARIAN)
        convert_from_marian(set);
    else if (set->to == TO_HF)
        convert_to_hf(set);
    else
        convert_file(set);
    return close_stdout(&self, EXIT_DONE);
}
