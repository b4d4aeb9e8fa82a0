/* tests/walls/scenes.h - what is watched by the walls of power loss and of kills: programs that
 * write files, what they promise of each, and how one goes on after an end that was not theirs. */
#ifndef WEFT_TESTS_WALLS_SCENES_H
#define WEFT_TESTS_WALLS_SCENES_H

#include "disk.h"

typedef enum promise {
    MODEL, /* absent as before, or wholly old, or wholly new: and readable, checksum and all */
    WHOLE, /* the same of a text */
    LINES, /* a log: each line is written at once and stays; not flushed, so a power cut may take
              what came since the program began */
} promise;

enum { OUTPUTS = 4, WORDS = 96, VERSIONS = 64 };

typedef struct output {
    const char *name;
    promise promised;
} output;

typedef struct scene {
    const char *name;
    const char *prepare; /* in the folder, by the shell; "pairs" and "lines" are there */
    const char *command; /* what is recorded, and killed */
    const char *again;   /* to go on when the first output is not there; NULL: the command, */
    const char *resume;  /* and when it is; NULL: as when it is not */
    output outputs[OUTPUTS];
    bool brief; /* part of the short form */
} scene;

extern const scene scenes[];
extern const int n_scenes;

/* A command's words; they live as long as the line. */
typedef struct line {
    char text[2048];
    char *words[WORDS];
} line;
line *split(line *l, const char *text);

/* A fresh folder, removed by remove_folder. */
bool prepare_folder(const scene *s, char folder[64]);
void remove_folder(const char *folder);

/* Only these files, with these contents, in the folder; folders and links in it stay. */
bool fill_folder(const char *folder, const recording *r, const int *names,
                 const content *const *contents);
bool read_file(const char *folder, const char *name, content *c); /* false: not there */

/* The folder WEFT_TOOLS comes first in PATH; the folders of the scenes are made in TMPDIR or, as
 * nothing here needs a real disk, in memory. False: no WEFT_TOOLS. */
bool enter(void);

/* Go on, to the end. False: a program failed; what it said is in the file "said". */
bool go_on(const scene *s, const char *folder);

int left_behind(const char *folder); /* temporary files in it */

/* Are the files of the two folders the same, and is no temporary file left in the first? */
bool same_end(const scene *s, const char *folder, const char *undisturbed);

/* One file's life in a recording: what it was, then each content it was given. A version may be
 * seen from the operation `from` on, and only it or later ones once `sure` operations were made. */
typedef struct version {
    bool there;
    uint64_t hash;
    int from, sure;
} version;

typedef struct life {
    int name; /* in the recording */
    version versions[VERSIONS];
    int n;
} life;
void write_life(life *l, const recording *r, const char *name);

/* "" or what is wrong with a life however it ends: nothing was written, a version of a model is
 * not readable, or a file was gone for a while. */
const char *fault_of_life(const life *l, const recording *r, promise promised, char message[256]);

/* "" or why the reader refuses the bytes. */
const char *unreadable(const content *c, char message[256]);

double now(void);
int end_of_wall(const char *name, int64_t cases, int64_t failures, double began);

#endif
