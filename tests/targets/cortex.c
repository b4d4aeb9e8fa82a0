/* tests/targets/cortex.c - answers the lines of a file on a Cortex-M without a C library: its
 * vectors, its start, and files of the host by semihosting. See answers.h.
 *
 * It reads the file `lines` and writes the file `got` in the emulator's working directory. It says
 * how many instructions a line took on average, and how many bytes of stack were used. With -icount
 * shift=0 the emulator executes an instruction in a nanosecond of its clock, and SysTick counts
 * once in TICK instructions. These are no cycles of a real processor. */
#include "answers.h"

enum { OPEN = 1, CLOSE = 2, SAY = 4, WRITE = 5, READ = 6, EXIT = 32, TO_READ = 1, TO_WRITE = 5 };
enum { UNUSED_WORD = 0x5ac35ac3, MOST_INPUT = 1 << 16, NUMBER_TEXT = 24 };

extern uint32_t stack_bottom[], stack_top[], data_source[], data_begin[], data_end[], bss_begin[],
    bss_end[];

static char input[MOST_INPUT];
static volatile uint32_t wraps; /* of SysTick */

/* ---- the host -------------------------------------------------------------------------------- */

static int call_host(int operation, const void *arguments) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static _Noreturn void end(int status) {
    const uint32_t reason[] = { 0x20026, (uint32_t)status };
    for (;;) call_host(EXIT, reason);
}

static void say(const char *text) {
    call_host(SAY, text);
}

static void say_number(const char *text, uint64_t number) {
    char digits[NUMBER_TEXT], *at = digits + sizeof digits;
    *--at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    say(at);
    say(text);
}

static int open_file(const char *name, int length, int mode) {
    const uint32_t arguments[] = { (uint32_t)(uintptr_t)name, (uint32_t)mode, (uint32_t)length };
    return call_host(OPEN, arguments);
}

/* Returns how many of the bytes were not read or written. */
static int move_bytes(int operation, int file, void *bytes, int n) {
    const uint32_t arguments[] = { (uint32_t)file, (uint32_t)(uintptr_t)bytes, (uint32_t)n };
    return call_host(operation, arguments);
}

/* ---- the processor --------------------------------------------------------------------------- */

static volatile uint32_t *word_at(uint32_t address) {
    return (volatile uint32_t *)(uintptr_t)address;
}

static void count_wrap(void) {
    wraps++;
}

static _Noreturn void fault(void) {
    say("a fault of the processor\n");
    end(2);
}

static void start_counting(void) {
    *word_at(0xe000e014) = 0xffffff;
    *word_at(0xe000e018) = 0;
    *word_at(0xe000e010) = 7;
    while (!*word_at(0xe000e018)) continue;
}

static uint64_t instructions(void) {
    uint32_t before, now;
    do {
        before = wraps;
        now = *word_at(0xe000e018);
    } while (before != wraps);
    return ((uint64_t)before << 24 | (0xffffff - now)) * TICK;
}

/* The bytes of the stack that were ever written. */
static uint32_t used_stack(void) {
    const uint32_t *at = stack_bottom;
    while (at < stack_top && *at == UNUSED_WORD) at++;
    return (uint32_t)(stack_top - at) * 4;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int read_input(void) {
    int file = open_file("lines", 5, TO_READ);
    if (file < 0) return -1;
    return MOST_INPUT - move_bytes(READ, file, input, MOST_INPUT);
}

static void write_answers(int file, int bytes) {
    if (bytes < 0 || move_bytes(WRITE, file, answer_line, bytes)) end(1);
}

static void answer_all(int n) {
    int file = open_file("got", 3, TO_WRITE), lines = 0;
    uint64_t before = instructions();
    if (file < 0) end(1);
    begin_answers();
    for (int at = 0, bytes; at < n; at += bytes + 1, lines++) {
        for (bytes = 0; at + bytes < n && input[at + bytes] != '\n';) bytes++;
        write_answers(file, answer(input + at, bytes));
    }
    write_answers(file, answer_rest());
    say_number(" instructions a line, ", (instructions() - before) / (uint64_t)(lines ? lines : 1));
    say_number(" bytes of stack\n", used_stack());
    const uint32_t arguments[] = { (uint32_t)file };
    call_host(CLOSE, arguments);
}

static void run(void) {
    int n = read_input();
    start_counting();
    if (n < 0) end(1);
    answer_all(n);
    end(0);
}

_Noreturn void reset(void);
_Noreturn void reset(void) {
    uint32_t *from = data_source;
    for (uint32_t *to = data_begin; to < data_end; to++) *to = *from++;
    for (volatile uint32_t *to = bss_begin; to < bss_end; to++) *to = 0;
    for (volatile uint32_t *to = stack_bottom; to < stack_top - 64; to++) *to = UNUSED_WORD;
    /* Turns on the floating-point unit. Without one the bits stay 0. */
    *word_at(0xe000ed88) |= UINT32_C(0xf) << 20;
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    run();
    for (;;) end(1);
}

typedef void (*handler)(void);
__attribute__((section(".vectors"), used)) static const struct vectors {
    uint32_t *stack;
    handler at[15];
} vectors = { stack_top,
              { reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault,
                fault, fault, count_wrap } };
