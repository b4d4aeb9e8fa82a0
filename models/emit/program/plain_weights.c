/* models/emit/program/plain_weights.c - reading the file of weights, in the program in a C file.
 * embed.sh makes text of this file. In the C file the macro FILE_NAME comes before it. */

#ifdef MODEL_MAIN
#include <stdio.h>
#include <string.h>

/* The path of the file of weights, for messages. */
static char weights_path[4096];

/* FILE_NAME in the folder of the program. */
static void find_weights(const char *program) {
    const char *end = strrchr(program, '/');
    int folder = end ? (int)(end + 1 - program) : 0;
    snprintf(weights_path, sizeof weights_path, "%.*s%s", folder, program, FILE_NAME);
}

/* Read model_FILE bytes of the file, and one more if there is one, which shows that the file is too
 * long. Returns 0, or 1 after a message. */
static int read_weights(const char *path, const char *program, unsigned char *bytes, size_t *size) {
    if (path)
        snprintf(weights_path, sizeof weights_path, "%s", path);
    else
        find_weights(program ? program : "");
    FILE *in = fopen(weights_path, "rb");
    if (in) *size = fread(bytes, 1, model_FILE + 1, in);
    int failed = !in || ferror(in);
    if (in) fclose(in);
    if (failed) fprintf(stderr, "%s: cannot read the weights\n", weights_path);
    return failed;
}

static int refuse_weights(void) {
    fprintf(stderr, "%s: not the weights of this program\n", weights_path);
    return 1;
}
#endif
