/* models/emit/program/plain_training_array.c - the end of the program in the C file of a training
 * that has its weights. embed.sh makes text of this file. */

int main(int argc, char **argv) {
    static _Alignas(64) unsigned char memory[model_MEMORY];
    static model m;
    model_begin(&m, memory);
    return train(&m, last_update(argc, argv));
}
#endif
