/* tests/core/file/torch_cases.h - pickles of test_torch_file.c: the parts of a valid state_dict,
 * and hostile pickles with opcodes or values that no state_dict needs.
 *
 * Written by hand: Python's pickletools.dis shows what most of them hold. */
#ifndef WEFT_TESTS_CORE_FILE_TORCH_CASES_H
#define WEFT_TESTS_CORE_FILE_TORCH_CASES_H

#define PROTOCOL "\x80\x02"
#define TEXT1(letter) "X\1\0\0\0" letter
#define ORDERED_DICT "ccollections\nOrderedDict\n)R"
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define STORAGE_ID(type, key, count)                                                               \
    "(X\7\0\0\0storagectorch\n" type "\n" TEXT1(key) "X\3\0\0\0cpu" count "t"
#define STORAGE(type, key, count) STORAGE_ID(type, key, count) "Q"
#define PAIR(a, b) "K" a "K" b "\x86"
#define TENSOR_AT(storage, offset, shape, strides)                                                 \
    REBUILD "(" storage offset shape strides "\x89" ORDERED_DICT "tR"
#define FLOATS STORAGE("FloatStorage", "0", "K\6")
/* [2,3] of storage 0, which has six elements: the file's data are 24 bytes. */
#define TENSOR TENSOR_AT(FLOATS, "K\0", PAIR("\2", "\3"), PAIR("\3", "\1"))
#define DICT(items) PROTOCOL "}(" items "u."
#define STATE DICT(TEXT1("w") TENSOR)

struct refused_pickle {
    const char *pickle;
    size_t size;
    const char *says;
};
#define PICKLE(text) text, sizeof(text) - 1

static const struct refused_pickle refused_pickles[] = {
    /* nothing is executed */
    { PICKLE(PROTOCOL "cos\nsystem\nX\4\0\0\0true\x85R."), "GLOBAL os.system: " },
    { PICKLE(PROTOCOL "c__builtin__\neval\n)R."), "GLOBAL __builtin__.eval: " },
    { PICKLE(DICT(TEXT1("w") "cposix\nsystem\n")), "GLOBAL posix.system: " },
    { PICKLE(PROTOCOL "ctorch._utils\n_rebuild_tensor\n."), "GLOBAL torch._utils._rebuild_tensor" },
    { PICKLE(PROTOCOL "ctorch\n\x1b[2J\n."), "GLOBAL torch.: " },
    { PICKLE(PROTOCOL "ctorch\nQUInt8Storage\n."), "GLOBAL torch.QUInt8Storage: " },
    { PICKLE(PROTOCOL "(X\2\0\0\0osX\6\0\0\0system\x93."), "opcode STACK_GLOBAL: " },
    { PICKLE(PROTOCOL "(S'true'\nios\nsystem\n."), "opcode STRING: " },
    { PICKLE(PROTOCOL "(ios\nsystem\n."), "opcode INST: " },
    { PICKLE(PROTOCOL "ccollections\nOrderedDict\n)\x81."), "opcode NEWOBJ: " },
    { PICKLE(PROTOCOL "}\x94."), "opcode MEMOIZE: " },
    { PICKLE(PROTOCOL "\x82\1."), "opcode EXT1: " },
    { PICKLE(PROTOCOL "}0."), "opcode POP: " },
    { PICKLE("\x80\x04\x95\1\0\0\0\0\0\0\0}."), "PROTO 4: " },
    { PICKLE(PROTOCOL "\xff."), "ff is no opcode" },
    { PICKLE(PROTOCOL ORDERED_DICT ")R."), "a dict where a name is needed" },
    { PICKLE(PROTOCOL "ctorch\nFloatStorage\n)R."), "a type of storage is called" },
    { PICKLE(PROTOCOL "ccollections\nOrderedDict\n]\x85R."), "OrderedDict of arguments" },
    /* items are set in dicts alone (GHSA-63cw-57p8-fm3p), and appended to lists */
    { PICKLE(PROTOCOL "]K\0K\1s."), "a list where a dict is needed" },
    { PICKLE(PROTOCOL "](K\0K\1u."), "a list where a dict is needed" },
    { PICKLE(PROTOCOL "K\5(K\0K\1u."), "an integer where a dict is needed" },
    { PICKLE(PROTOCOL ")K\0K\1s."), "a tuple where a dict is needed" },
    { PICKLE(PROTOCOL TENSOR "K\0K\1s."), "a tensor where a dict is needed" },
    { PICKLE(PROTOCOL FLOATS "K\0K\1s."), "a storage where a dict is needed" },
    { PICKLE(PROTOCOL "ccollections\nOrderedDict\nK\0K\1s."), "a name where a dict is needed" },
    { PICKLE(PROTOCOL "}K\0a."), "a dict where a list is needed" },
    { PICKLE(PROTOCOL ")(K\0e."), "a tuple where a list is needed" },
    { PICKLE(PROTOCOL "]}b."), "a list where a dict is needed" },
    { PICKLE(PROTOCOL "})b."), "a tuple where a dict is needed" },
    { PICKLE(PROTOCOL TENSOR "}b."), "a tensor where a dict is needed" },
    /* the stack and the memo */
    { PICKLE(PROTOCOL "."), "makes no single value" },
    { PICKLE(PROTOCOL "}}."), "makes no single value" },
    { PICKLE(PROTOCOL "(."), "makes no single value" },
    { PICKLE(PROTOCOL "K\0K\1s."), "nothing where a dict is needed" },
    { PICKLE(PROTOCOL "u."), "no mark on the stack" },
    { PICKLE(PROTOCOL "}K\0(s."), "too few values" },
    { PICKLE(PROTOCOL "}(K\0u."), "a key without a value" },
    { PICKLE(PROTOCOL "t."), "no mark on the stack" },
    { PICKLE(PROTOCOL "K\0\x86."), "too few values" },
    { PICKLE(PROTOCOL "q\0."), "too few values" },
    { PICKLE(PROTOCOL "(q\0."), "too few values" },
    { PICKLE(PROTOCOL "h\0."), "not in the memo" },
    { PICKLE(PROTOCOL "}q\3h\2."), "not in the memo" },
    { PICKLE(PROTOCOL "j\xff\xff\xff\xff."), "not in the memo" },
    { PICKLE(PROTOCOL "}r\xff\xff\xff\x7f."), "a number of the memo that is too large" },
    { PICKLE(PROTOCOL "X\1\0\0\0\xff."), "not UTF-8" },
    { PICKLE(PROTOCOL "X\1\0\0\0\0."), "a zero byte" },
    { PICKLE(PROTOCOL "\x8a\x09\1\2\3\4\5\6\7\1\1."), "more than 8 bytes" },
    /* storages and tensors */
    { PICKLE(PROTOCOL ")Q."), "BINPERSID of what is no storage" },
    { PICKLE(PROTOCOL "K\0Q."), "an integer where a tuple is needed" },
    { PICKLE(PROTOCOL STORAGE("FloatStorage", "0", "J\xff\xff\xff\xff") "."), "no storage" },
    { PICKLE(PROTOCOL STORAGE("FloatStorage", "0", "}") "."), "no storage" },
    { PICKLE(PROTOCOL "(X\7\0\0\0storagectorch._utils\n_rebuild_tensor_v2\nX\1\0\0\0000X\3\0\0\0cpu"
                      "K\6tQ."),
      "no storage" },
    { PICKLE(PROTOCOL "(X\7\0\0\0torages"
                      "ctorch\nFloatStorage\n" TEXT1("0") TEXT1("c") "K\6tQ."),
      "no storage" },
    { PICKLE(PROTOCOL REBUILD ")R."),
      "_rebuild_tensor_v2 with other arguments than are read here" },
    { PICKLE(PROTOCOL TENSOR_AT("N", "K\0", ")", ")") "."),
      "with other arguments than are read here" },
    { PICKLE(PROTOCOL TENSOR_AT(FLOATS, "J\xff\xff\xff\xff", ")", ")") "."),
      "with other arguments than are read here" },
    { PICKLE(PROTOCOL TENSOR_AT(FLOATS, "K\0", "K\6\x85", ")") "."),
      "with other arguments than are read here" },
    { PICKLE(PROTOCOL TENSOR_AT(FLOATS, "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85") "."),
      "with other arguments than are read here" },
    { PICKLE(PROTOCOL TENSOR_AT(FLOATS, "K\0", "N\x85", "K\1\x85") "."),
      "with other arguments than are read here" },
    { PICKLE(PROTOCOL "ctorch._utils\n_rebuild_parameter\n}\x88}\x87R."), "is no tensor" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0", PAIR("\3", "\2"), PAIR("\1", "\3")))),
      "tensor 'w' [3,2] is a transposed or strided view: save its .contiguous()" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0", "K\3\x85", "K\2\x85"))), "strided view" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0", "K\3\x85", "K\0\x85"))), "strided view" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\1", PAIR("\2", "\3"), PAIR("\3", "\1")))),
      "tensor 'w': 6 elements from 1 on of storage '0', which has 6" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                                       "K\1\x85", "K\1\x85"))),
      "of storage '0', which has 6" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0",
                                       "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85", "K\1\x85"))),
      "of storage '0', which has 6" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0", "\x8a\5\0\0\0\0\1\x8a\5\0\0\0\0\1\x86",
                                       PAIR("\1", "\1")))),
      "[4294967296,4294967296] is too large" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(FLOATS, "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
                                       "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"))),
      "tensor 'w': more than 8 axes" },
    { PICKLE(DICT(TEXT1("w") TENSOR TEXT1("w") TENSOR)), "tensor 'w' occurs twice" },
    { PICKLE(DICT(TEXT1("w") TENSOR TEXT1("v")
                      TENSOR_AT(STORAGE("HalfStorage", "0", "K\6"), "K\0", "K\1\x85", "K\1\x85"))),
      "storage '0' is declared in two ways" },
    { PICKLE(DICT(TEXT1("w") TENSOR TEXT1("v")
                      TENSOR_AT(STORAGE("FloatStorage", "0", "K\7"), "K\0", "K\1\x85", "K\1\x85"))),
      "storage '0' is declared in two ways" },
    { PICKLE(DICT(TEXT1("w") TENSOR_AT(
          STORAGE("FloatStorage", "0", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "K\0",
          "K\1\x85", "K\1\x85"))),
      "storage '0' is too large" },
    /* what is no state_dict */
    { PICKLE(PROTOCOL "]."), "it holds a list, not a state_dict" },
    { PICKLE(PROTOCOL TENSOR "."), "it holds a tensor, not a state_dict" },
    { PICKLE(DICT(TEXT1("w") TENSOR "X\5\0\0\0epochK\3")),
      "'epoch' is an integer, not a tensor: save the state_dict alone" },
    { PICKLE(DICT("X\5\0\0\0model}")),
      "'model' is a dict, not a tensor: save that state_dict alone" },
    { PICKLE(DICT(TEXT1("r") "G\0\0\0\0\0\0\0\0")), "'r' is a float, not a tensor" },
    { PICKLE(DICT(TEXT1("n") "N")), "'n' is None, not a tensor" },
    { PICKLE(DICT(TEXT1("b") "\x88")), "'b' is a bool, not a tensor" },
    { PICKLE(DICT(TEXT1("s") TEXT1("t"))), "'s' is a string, not a tensor" },
    { PICKLE(DICT("K\1" TENSOR)), "a key is an integer" },
};

#endif
