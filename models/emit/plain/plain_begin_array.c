/* models/emit/plain/plain_begin_array.c - the beginning of a training whose C file has its weights.
 * embed.sh makes text of this file. */

void model_begin(model *m, void *memory) {
    unsigned char *bytes = memory;
    model_start(m, memory, (float *)(void *)(bytes + WEIGHTS_AT));
    training *t = training_of(m);
    t->steps = STEPS_BEFORE;
    set_inputs(m, t->rates, t->at, t->average_rate);
}
