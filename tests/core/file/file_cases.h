/* tests/core/file/file_cases.h - headers of safetensors files, one per row: wrong ones, with a part
 * of the message that refuses them, and unusual ones that are read. Only for test_file.c. */
#ifndef WEFT_TESTS_CORE_FILE_FILE_CASES_H
#define WEFT_TESTS_CORE_FILE_FILE_CASES_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define W(dtype, shape, offsets) "{\"w\":" T(dtype, shape, offsets) "}"
#define PART(...) __VA_ARGS__, sizeof(__VA_ARGS__) - 1

static const struct malformed {
    const char *header;
    size_t size;
    int64_t declared;
    size_t data;
    const char *says;
} malformed[] = {
    /* the length of the header */
    { PART("{}"), -3, 0, "not safetensors, but perhaps text: a header has at most 100000000 bytes" },
    { PART("{}"), 99999999, 0, "a header has at most 100000000 bytes" },
    { PART("{}"), 99999998, 0, "header of 100000000 bytes, but only 2 left" },
    { PART("{}"), INT64_MAX - 2, 0, "at most 100000000" },
    { PART("{}"), 1, 0, "only 2 left" },
    { PART("{}"), -2, 0, "'{' expected" },
    { PART("{}"), -1, 0, "string expected" },
    /* UTF-8 */
    { PART("{\"\xff\":1}"), 0, 0, "header byte 2: not UTF-8" },
    { PART("{\"\x80\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xc0\xaf\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xe0\x80\x80\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xed\xa0\x80\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xf4\x90\x80\x80\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xf5\x80\x80\x80\":1}"), 0, 0, "not UTF-8" },
    { PART("{\"\xe2\x82"), 0, 0, "not UTF-8" },
    { PART("\xef\xbb\xbf{}"), 0, 0, "'{' expected" },
    /* JSON */
    { PART(""), 0, 0, "'{' expected" },
    { PART("   "), 0, 0, "'{' expected" },
    { PART("[]"), 0, 0, "'{' expected" },
    { PART("null"), 0, 0, "'{' expected" },
    { PART("{"), 0, 0, "string expected" },
    { PART("{}x"), 0, 0, "header byte 2: text after the end" },
    { PART("{}{}"), 0, 0, "text after the end" },
    { PART("{}\0"), 0, 0, "text after the end" },
    { PART("\0{}"), 0, 0, "'{' expected" },
    { PART("{,}"), 0, 0, "string expected" },
    { PART("{w:1}"), 0, 0, "string expected" },
    { PART("{'w':1}"), 0, 0, "string expected" },
    { PART("{\"w\"}"), 0, 0, "':' expected" },
    { PART("{\"w"), 0, 0, "a string without end" },
    { PART("{\"w\\"), 0, 0, "unknown escape" },
    { PART("{\"w\n\":1}"), 0, 0, "control character" },
    { PART("{\"w\0\":1}"), 0, 0, "control character" },
    { PART("{\"\\x41\":1}"), 0, 0, "unknown escape" },
    { PART("{\"\\u12g4\":1}"), 0, 0, "hexadecimal" },
    { PART("{\"\\u12"), 0, 0, "hexadecimal" },
    { PART("{\"\\ud800\":1}"), 0, 0, "half a surrogate" },
    { PART("{\"\\udc00\":1}"), 0, 0, "half a surrogate" },
    { PART("{\"\\ud800\\u0041\":1}"), 0, 0, "half a surrogate" },
    { PART("{\"\\ud800\\ue000\":1}"), 0, 0, "half a surrogate" },
    { PART("{\"\\ud800\\n\":1}"), 0, 0, "half a surrogate" },
    { PART("{\"\\ud800\\uzzzz\":1}"), 0, 0, "four hexadecimal digits" },
    { PART("{\"w\\u0000\":1}"), 0, 0, "U+0000" },
    { PART("{/**/}"), 0, 0, "string expected" },
    { PART("{\"w\":" T("F32", "[1]", "[0,4]") ",}"), 0, 4, "string expected" },
    { PART("{\"w\":" T("F32", "[1]", "[0,4]") " \"v\":1}"), 0, 4, "'}' expected" },
    /* the fields of a tensor */
    { PART("{\"w\":1}"), 0, 0, "'{' expected" },
    { PART("{\"w\":{}}"), 0, 0, "tensor 'w': no dtype" },
    { PART("{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}"), 0, 4, "tensor 'w': no dtype" },
    { PART("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}"), 0, 4, "tensor 'w': no shape" },
    { PART("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}"), 0, 4, "tensor 'w': no data_offsets" },
    { PART("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"), 0, 4, "dtype occurs twice" },
    { PART("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[],\"data_offsets\":[0,4]}}"), 0, 4, "shape occurs twice" },
    { PART("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}"), 0, 4, "data_offsets occurs twice" },
    { PART("{\"w\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}"), 0, 4, "string expected" },
    { PART(W("F33", "[1]", "[0,4]")), 0, 4, "tensor 'w': unknown dtype 'F33'" },
    { PART(W("f32", "[1]", "[0,4]")), 0, 4, "unknown dtype 'f32'" },
    { PART(W("", "[1]", "[0,4]")), 0, 4, "unknown dtype ''" },
    { PART(W("F32", "1", "[0,4]")), 0, 4, "'[' expected" },
    { PART(W("F32", "[1", "[0,4]")), 0, 4, "an integer" },
    { PART("{\"w\":{\"shape\":[1 2]}}"), 0, 4, "']' expected" },
    { PART(W("F32", "[1,]", "[0,4]")), 0, 4, "an integer" },
    { PART(W("F32", "[-1]", "[0,4]")), 0, 4, "an integer, not negative" },
    { PART(W("F32", "[-0]", "[0,0]")), 0, 0, "an integer, not negative" },
    { PART(W("F32", "[01]", "[0,4]")), 0, 4, "a leading zero" },
    { PART(W("F32", "[00]", "[0,0]")), 0, 0, "a leading zero" },
    { PART(W("F32", "[1.0]", "[0,4]")), 0, 4, "']' expected" },
    { PART(W("F32", "[1e0]", "[0,4]")), 0, 4, "']' expected" },
    { PART(W("F32", "[0x1]", "[0,4]")), 0, 4, "']' expected" },
    { PART(W("F32", "[\"1\"]", "[0,4]")), 0, 4, "an integer" },
    { PART(W("F32", "[9223372036854775808]", "[0,4]")), 0, 4, "above 2^63 - 1" },
    { PART(W("F32", "[99999999999999999999999]", "[0,4]")), 0, 4, "above 2^63 - 1" },
    { PART(W("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]")), 0, 4, "tensor 'w': more than 8 axes" },
    { PART(W("F32", "[9223372036854775807]", "[0,4]")), 0, 4, "tensor 'w': shape [9223372036854775807] is too large" },
    { PART(W("F32", "[4294967296,4294967296]", "[0,0]")), 0, 0, "too large" },
    { PART(W("U8", "[4294967296,4294967296,0]", "[0,0]")), 0, 0, "too large" },
    { PART(W("U8", "[1152921504606846976,2]", "[0,0]")), 0, 0, "too large" },
    { PART(W("F4", "[3]", "[0,2]")), 0, 2, "12 bits: not whole bytes" },
    { PART(W("F6_E2M3", "[2]", "[0,2]")), 0, 2, "12 bits: not whole bytes" },
    /* the place of a tensor */
    { PART(W("F32", "[1]", "[0]")), 0, 4, "',' expected" },
    { PART(W("F32", "[1]", "[0,4,4]")), 0, 4, "']' expected" },
    { PART(W("F32", "[1]", "[]")), 0, 4, "an integer" },
    { PART(W("F32", "[1]", "[-4,0]")), 0, 4, "an integer, not negative" },
    { PART(W("F32", "[1]", "[4,0]")), 0, 4, "run backwards" },
    { PART(W("F32", "[2,3]", "[0,12]")), 0, 12, "tensor 'w': 12 bytes for shape [2,3] of F32, 24 expected" },
    { PART(W("F32", "[1]", "[0,8]")), 0, 8, "8 bytes for shape [1] of F32, 4 expected" },
    { PART(W("F32", "[]", "[0,0]")), 0, 0, "0 bytes for shape [] of F32, 4 expected" },
    { PART(W("F32", "[0]", "[0,4]")), 0, 4, "4 bytes for shape [0] of F32, 0 expected" },
    { PART(W("F32", "[1]", "[9223372036854775803,9223372036854775807]")), 0, 4, "with a gap after 0" },
    { PART(W("F32", "[1]", "[4,8]")), 0, 8, "begins at byte 4 of the data, with a gap after 0" },
    { PART(W("F32", "[0]", "[4,4]")), 0, 4, "with a gap after 0" },
    { PART("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}"), 0, 12, "tensor 'b' begins at byte 8 of the data, with a gap after 4" },
    { PART("{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[1]", "[4,8]") "}"), 0, 8, "tensor 'b' begins at byte 4 of the data, inside the one that ends at 8" },
    { PART("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}"), 0, 4, "tensor 'b' begins at byte 0" },
    { PART("{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[0]", "[4,4]") "}"), 0, 8, "inside the one that ends at 8" },
    { PART(W("F32", "[1]", "[0,4]")), 0, 5, "the tensors hold 4 bytes, the file has 5" },
    { PART(W("F32", "[1]", "[0,4]")), 0, 3, "the tensors hold 4 bytes, the file has 3: it is cut off; copy or download it again" },
    { PART(W("F32", "[1073741824]", "[0,4294967296]")), 0, 4, "the tensors hold 4294967296 bytes, the file has 4" },
    { PART("{}"), 0, 1, "the tensors hold 0 bytes, the file has 1" },
    /* names and metadata */
    { PART("{\"w\":" T("F32", "[1]", "[0,4]") ",\"w\":" T("F32", "[1]", "[4,8]") "}"), 0, 8, "tensor 'w' occurs twice" },
    { PART("{\"w\":" T("F32", "[1]", "[0,4]") ",\"\\u0077\":" T("F32", "[1]", "[4,8]") "}"), 0, 8, "tensor 'w' occurs twice" },
    { PART("{\"w\":" T("F32", "[0]", "[0,0]") ",\"w\":" T("F32", "[0]", "[0,0]") "}"), 0, 0, "tensor 'w' occurs twice" },
    { PART("{\"__metadata__\":{},\"__metadata__\":{}}"), 0, 0, "__metadata__ occurs twice" },
    { PART("{\"__metadata__\":{},\"__metadata\\u005f_\":{}}"), 0, 0, "__metadata__ occurs twice" },
    { PART("{\"__metadata__\":" T("F32", "[1]", "[0,4]") "}"), 0, 4, "string expected" },
    { PART("{\"__metadata__\":null}"), 0, 0, "'{' expected" },
    { PART("{\"__metadata__\":[]}"), 0, 0, "'{' expected" },
    { PART("{\"__metadata__\":{\"a\":1}}"), 0, 0, "string expected" },
    { PART("{\"__metadata__\":{\"a\":{}}}"), 0, 0, "string expected" },
    { PART("{\"__metadata__\":{\"a\":null}}"), 0, 0, "string expected" },
    { PART("{\"__metadata__\":{\"a\":\"1\",}}"), 0, 0, "string expected" },
    { PART("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), 0, 0, "metadata key 'a' occurs twice" },
    { PART("{\"__metadata__\":{\"weft.checksum\":\"0123456789abcdef\"}}"), 0, 0, "damaged: checksum" },
    { PART("{\"__metadata__\":{\"weft.checksun\":\"0123456789abcdef\"}}"), 0, 0, "damaged: header byte 30: 'm' expected" },
    /* fields that are ignored, but must be JSON */
    { PART("{\"w\":{\"x\":}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":nul}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":True}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":NaN}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":+1}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":-}}"), 0, 0, "a digit expected" },
    { PART("{\"w\":{\"x\":1.}}"), 0, 0, "a digit expected" },
    { PART("{\"w\":{\"x\":.5}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":1e}}"), 0, 0, "a digit expected" },
    { PART("{\"w\":{\"x\":02}}"), 0, 0, "'}' expected" },
    { PART("{\"w\":{\"x\":[1,]}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":[1}}}"), 0, 0, "']' expected" },
    { PART("{\"w\":{\"x\":[,]}}"), 0, 0, "a value expected" },
    { PART("{\"w\":{\"x\":{1:2}}}"), 0, 0, "a string expected" },
    { PART("{\"w\":{\"x\":{\"a\":1,}}}"), 0, 0, "a string expected" },
    { PART("{\"w\":{\"x\":{\"a\" 1}}}"), 0, 0, "':' expected" },
    { PART("{\"w\":{\"x\":[[[[{\"a\":[}]]]]}}"), 0, 0, "a value expected" },
};

static const struct {
    const char *header;
    size_t size, data;
    int count;
} unusual[] = { /* but right */
    { PART("{}"), 0, 0 },
    { PART(" \t\r\n{ } \n"), 0, 0 },
    { PART("{\"__metadata__\":{}}"), 0, 0 },
    { PART(" { \"w\" : { \"dtype\" : \"F32\" , \"shape\" : [ 1 , 1 ] , \"data_offsets\" : [ 0 , 4 ] } } "), 4, 1 },
    { PART("{\"w\":" T("F32", "[]", "[0,4]") "}"), 4, 1 },
    { PART("{\"\":" T("F32", "[]", "[0,4]") "}"), 4, 1 },
    { PART("{\"b\":" T("U8", "[3]", "[4,7]") ",\"a\":" T("F32", "[1]", "[0,4]") "}"), 7, 2 },
    { PART("{\"b\":" T("F64", "[1]", "[3,11]") ",\"a\":" T("U8", "[3]", "[0,3]") "}"), 11, 2 },
    { PART("{\"b\":" T("U8", "[0]", "[3,3]") ",\"a\":" T("U8", "[3]", "[0,3]") ",\"c\":" T("U8", "[2,0]", "[3,3]") "}"), 3, 3 },
    { PART("{\"b\":" T("U8", "[0]", "[0,0]") ",\"a\":" T("U8", "[3]", "[0,3]") "}"), 3, 2 },
    { PART(W("F32", "[0,9223372036854775807,9223372036854775807]", "[0,0]")), 0, 1 },
    { PART(W("F32", "[1,1,1,1,1,1,1,1]", "[0,4]")), 4, 1 },
    { PART(W("F6_E3M2", "[4]", "[0,3]")), 3, 1 },
    { PART("{\"w\":{\"x\":[],\"x\":{},\"y\":[{\"a\":[1,-2.5e+3,true,false,null,\"\\ud83d\\ude00\"]},{}],\"z\":-0,"
           "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"), 4, 1 },
};
/* clang-format on */

#endif
