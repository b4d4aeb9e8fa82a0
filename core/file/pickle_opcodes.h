/* core/file/pickle_opcodes.h - the opcodes of a pickle: those that pickle.c runs, and the names of
 * those that it refuses (Python: Lib/pickletools.py). */
#ifndef WEFT_CORE_FILE_PICKLE_OPCODES_H
#define WEFT_CORE_FILE_PICKLE_OPCODES_H

/* Protocol 2, which is what torch.save writes. */
enum opcode {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINPERSID = 'Q',
    REDUCE = 'R',
    SHORT_BINSTRING = 'U',
    BINUNICODE = 'X',
    APPEND = 'a',
    BUILD = 'b',
    GLOBAL = 'c',
    EMPTY_DICT = '}',
    APPENDS = 'e',
    BINGET = 'h',
    LONG_BINGET = 'j',
    EMPTY_LIST = ']',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    TUPLE = 't',
    EMPTY_TUPLE = ')',
    SETITEMS = 'u',
    BINFLOAT = 'G',
    PROTO = 0x80,
    TUPLE1 = 0x85,
    TUPLE2,
    TUPLE3,
    NEWTRUE,
    NEWFALSE,
    LONG1
};

/* The name of an opcode that is refused; NULL: there is no such opcode. */
const char *wf_pickle_refused(int code);

#endif
