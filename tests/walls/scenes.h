/* tests/walls/scenes.h - the scenes of power.c and kills.c: commands that write files, the promise
 * of each file, and the commands with which a user continues after a power cut or a kill. */
#ifndef WEFT_TESTS_WALLS_SCENES_H
#define WEFT_TESTS_WALLS_SCENES_H

#include "disk.h"

typedef enum promise {
    MODEL, /* a model's file is the old one (or absent) or a new one, whole and readable */
    WHOLE, /* a text file is the old one (or absent) or a new one, whole */
    LINES, /* a log: each line is written at once, and stays. It is not flushed, so a power cut may
              remove the lines written since the program began */
} promise;

enum { OUTPUTS = 4, WORDS = 96, VERSIONS = 64 };

typedef struct output {
    const char *name;
    promise promised;
} output;

typedef struct scene {
    const char *name;
    const char *prepare; /* shell commands in the folder, which has the files "pairs" and "lines" */
    const char *command; /* the command that is recorded or killed */
    const char *again;   /* continues if the first output does not exist; NULL: the command does */
    const char *resume;  /* continues if the first output exists; NULL: as if it did not */
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

/* Makes a fresh folder with the scene's input files, and runs `prepare` in it. remove_folder
 * removes it. */
bool prepare_folder(const scene *s, char folder[64]);
void remove_folder(const char *folder);

/* Makes the folder hold these files, with these contents, and no others. Folders and links in it
 * stay. */
bool fill_folder(const char *folder, const recording *r, const int *names,
                 const content *const *contents);
bool read_file(const char *folder, const char *name, content *c); /* false: not there */

/* Puts the folder WEFT_TOOLS first in PATH, and goes to the folder in which the scenes' folders are
 * made: TMPDIR; else /dev/shm, because nothing here needs a real disk; else /tmp. Returns false
 * without WEFT_TOOLS. */
bool enter(void);

/* Continues the scene to its end. Returns false if the command failed; its output is in the file
 * FOLDER.said. */
bool go_on(const scene *s, const char *folder);

int left_behind(const char *folder); /* temporary files in it */

/* Are the outputs in the two folders the same, except for logs, and is no temporary file left in
 * the first folder? */
bool same_end(const scene *s, const char *folder, const char *undisturbed);

/* The versions of one file in a recording: the one before the program ran, and each that a save
 * made. A version may be found from operation `from` on. After `sure` operations an older one may
 * not be found any more. */
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

/* Returns a fault of the recording itself, or "": no version was written, a version of a model is
 * not readable, or the file did not exist for a while. */
const char *fault_of_life(const life *l, const recording *r, promise promised, char message[256]);

/* Returns why the reader refuses the bytes, or "". */
const char *unreadable(const content *c, char message[256]);

double now(void);
int end_of_wall(const char *name, int64_t cases, int64_t failures, double began);

#endif
