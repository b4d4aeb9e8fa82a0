/* models/emit/program/plain_main_array.c - the end of the program in the C file of a model that has
 * its weights. embed.sh makes text of this file. */

int main(void) {
    static _Alignas(64) unsigned char memory[model_MEMORY];
    static model m;
    model_start(&m, memory);
    return answer_lines(&m);
}
#endif
