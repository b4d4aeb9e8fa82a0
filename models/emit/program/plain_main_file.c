/* models/emit/program/plain_main_file.c - the end of the program in the C file of a model whose
 * weights are a file: its argument, or FILE_NAME in the program's folder. embed.sh makes text of
 * this file. */

int main(int argc, char **argv) {
    static _Alignas(64) unsigned char memory[model_MEMORY], file[model_FILE + 1];
    static model m;
    size_t size;
    if (read_weights(argc > 1 ? argv[1] : 0, argv[0], file, &size)) return 1;
    if (model_start(&m, memory, file, size)) return refuse_weights();
    return answer_lines(&m);
}
#endif
