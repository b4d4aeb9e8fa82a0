/* models/emit/program/plain_training_file.c - the end of the program in the C file of a training
 * whose weights are a file. The program's second argument names this file; without it, it is
 * FILE_NAME in the program's folder. embed.sh makes text of this file. */

int main(int argc, char **argv) {
    static _Alignas(64) unsigned char memory[model_MEMORY], file[model_FILE + 1];
    static model m;
    size_t size;
    if (read_weights(argc > 2 ? argv[2] : 0, argv[0], file, &size)) return 1;
    if (model_begin(&m, memory, file, size)) return refuse_weights();
    return train(&m, last_update(argc, argv));
}
#endif
