/* tests/targets/scores.c - the bits of the scores in what `generate --json` prints: a line of 16
 * hexadecimal digits for each line of input, those of 0 if it has no output. They are as answers.h
 * writes them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin)) {
        const char *score = strstr(line, "\"score\":");
        double value = score ? strtod(score + strlen("\"score\":"), NULL) : 0;
        uint64_t bits;
        if (!strstr(line, "\"event\":\"output\"")) continue;
        memcpy(&bits, &value, sizeof bits);
        printf("%016llx\n", (unsigned long long)bits);
    }
    return 0;
}
