/* models/emit/plain/plain_begin_file.c - the beginning of a training whose weights are a file.
 * embed.sh makes text of this file. */

/* Returns 0; 1: the bytes at `file` are not the weights that belong to this C file. */
int model_begin(model *m, void *memory, const void *file, size_t size) {
    unsigned char *bytes = memory;
    int failed = model_start(m, memory, (float *)(void *)(bytes + WEIGHTS_AT), file, size);
    training *t = training_of(m);
    t->steps = STEPS_BEFORE;
    set_inputs(m, t->rates, t->at, t->average_rate);
    return failed;
}
