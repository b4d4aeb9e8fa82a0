/* tools/train/settings/settings_file.h - the settings and the progress of a training in a
 * checkpoint's metadata: written by a save, read by a resume. */
#ifndef WEFT_TOOLS_TRAIN_SETTINGS_SETTINGS_FILE_H
#define WEFT_TOOLS_TRAIN_SETTINGS_SETTINGS_FILE_H

#include "settings.h"

/* The metadata of a checkpoint, as pairs of texts. It owns all but the value of --freeze. */
enum { SETTINGS_META = 64 };
typedef struct settings_meta {
    wf_meta pairs[SETTINGS_META];
    char keys[SETTINGS_META][OPTION_TEXT_SIZE], values[SETTINGS_META][OPTION_TEXT_SIZE];
    int n;
} settings_meta;

/* The progress of a training, as a checkpoint keeps it. */
typedef struct training_state {
    int64_t step;
    double best;        /* lowest validation loss per token; infinite before the first */
    int64_t since_best; /* validations since then, without a lower loss */
} training_state;

/* Write the settings and the progress as metadata. */
void settings_to_meta(const settings *set, const training_state *at, const dataset *m,
                      settings_meta *meta);
/* Reads the progress of a training. Exits if the file does not have it. */
training_state settings_state(const settings *set, const wf_file *f);

/* Take the stored settings from the file. Exits if the command line contradicts them. */
void settings_from_file(settings *set, const wf_file *f);
/* Exits if an option was given that the model's file determines. */
void settings_refuse_sizes(const char *because);
/* Set how many training pairs are held out; none if --valid is given. f: the checkpoint of a
 * resume, which holds out the same pairs. It exits if a --valid of then is missing now, or if
 * --alignments was given only then or only now. NULL: a new training. */
void settings_complete_held(settings *set, const wf_file *f);
/* Exit if a resume has other data to train on or to validate with than before. */
void settings_check_data(const settings *set, const wf_file *f, const dataset *m);

/* The setting "train.<name>" in the file; NULL: the file does not have it. */
const char *setting_in_file(const wf_file *f, const char *name);

#endif
