/* core/file/pickle_opcodes.c - names of the opcodes that no state_dict needs; see
 * pickle_opcodes.h. */
#include "pickle_opcodes.h"

#include <stddef.h>

/* Opcodes of protocols 0 to 5 that pickle.c does not run. */
static const struct {
    unsigned char code;
    const char *name;
} refused[] = {
    { '0', "POP" },           { '1', "POP_MARK" },     { '2', "DUP" },
    { 'F', "FLOAT" },         { 'I', "INT" },          { 'L', "LONG" },
    { 'P', "PERSID" },        { 'S', "STRING" },       { 'T', "BINSTRING" },
    { 'V', "UNICODE" },       { 'd', "DICT" },         { 'g', "GET" },
    { 'i', "INST" },          { 'l', "LIST" },         { 'o', "OBJ" },
    { 'p', "PUT" },           { 'B', "BINBYTES" },     { 'C', "SHORT_BINBYTES" },
    { 0x81, "NEWOBJ" },       { 0x82, "EXT1" },        { 0x83, "EXT2" },
    { 0x84, "EXT4" },         { 0x8B, "LONG4" },       { 0x8C, "SHORT_BINUNICODE" },
    { 0x8D, "BINUNICODE8" },  { 0x8E, "BINBYTES8" },   { 0x8F, "EMPTY_SET" },
    { 0x90, "ADDITEMS" },     { 0x91, "FROZENSET" },   { 0x92, "NEWOBJ_EX" },
    { 0x93, "STACK_GLOBAL" }, { 0x94, "MEMOIZE" },     { 0x95, "FRAME" },
    { 0x96, "BYTEARRAY8" },   { 0x97, "NEXT_BUFFER" }, { 0x98, "READONLY_BUFFER" },
};

const char *wf_pickle_refused(int code) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].code == code) return refused[i].name;
    return NULL;
}
