#!/usr/bin/env python3
"""tests/walls/departures.py - kernels that depart by a bit from the one arithmetic: does a test name each?

usage: departures.py [--short | --long] [--set SET ...] [--bits 32|64] [--room ROOM] [--repeat NUMBER]
                     [--emulator PROGRAM] [--rows]

In a copy of ops/kernels every place that can depart asks a variable whether it shall: multiply-adds that round
twice, sums in another tree, products fused where they are to be rounded, a last bit of a constant. One object of one
instruction set is compiled so, and linked with the tests, so that this set alone departs. Then each departure is
switched on (WEFT_DEPARTURE=number), and suites run until a test fails: bits first, then table_bits, int8 and panels
with that set. A departure that no test names is a failure, and so is a test that fails without one.

--short: one departure of each of two rooms, which change with the day, in f32, of the best set that runs here.
--long: all, of all sets, f32 and f64 (hours). --once: of them, one departure of each room.
--rows prints every departure; else each room's number and one of them. --emulator: how programs of another machine
run, for WEFT_BUILD made by systems.sh. After a build; WEFT_BUILD: its folder (build)."""

import argparse
import datetime
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from departures_of_rooms import EXACT_PRODUCTS, NEVER_SHOWN, OF_F32_ALONE, OF_F64_ALONE, PLACES, WITHOUT_RESULTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("WEFT_BUILD", f"{ROOT}/build"))
KERNELS = os.path.join(ROOT, "ops/kernels")
SETS = ["avx512", "avx2", "neon", "base"]  # the best first

# The suites, in the order in which they run until a test fails.
SUITES = ["bits", "table_bits", "int8", "panels"]

# Follows the types of vector.inc.
SWITCH = r"""
#include <stdlib.h>
static int departure;
__attribute__((constructor)) static void choose_departure(void) {
    const char *number = getenv("WEFT_DEPARTURE");
    departure = number ? atoi(number) : 0;
}
#define DEPARTS(n, kernel, other) (departure == (n) ? (other) : (kernel))
"""
# Follows multiply_add.inc.
TWICE_ROUNDED = r"""
INLINE vec multiply_add_at(int n, vec a, vec b, vec c) {
    return departure == n ? a * b + c : multiply_add(a, b, c);
}
INLINE doubles multiply_add_doubles_at(int n, doubles a, doubles b, doubles c) {
    return departure == n ? a * b + c : multiply_add_doubles(a, b, c);
}
INLINE double multiply_add_one_at(int n, double a, double b, double c) {
    return departure == n ? a * b + c : multiply_add_one(a, b, c);
}
#define FUSED_at(n, a, b, c) multiply_add_at(n, ALL(a), ALL(b), ALL(c))
"""
# C text that is inserted behind the coefficients: it changes the last bit of the first coefficient
# of a polynomial. Where f32 has double coefficients, whose results are rounded, it changes the
# last bit of the upper half.
LAST_BIT = r"""
#define LOW_FIRST (__BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
#define LAST_BYTE(name) ((unsigned char *)name + (LOW_FIRST ? sizeof *name - sizeof(real) : sizeof(real) - 1))
__attribute__((constructor)) static void change_coefficients(void) {
    const char *number = getenv("WEFT_DEPARTURE");
    unsigned char *first = NULL;
    switch (number ? atoi(number) : 0) { %s }
    if (first) *first ^= 1;
}
"""


class Departure:
    def __init__(self, number, room, what):
        self.number, self.room, self.what = number, room, what
        self.of_doubles = room in OF_F64_ALONE or "of doubles" in what
        self.of_floats = "of floats" in what


class Rooms:
    """The kernels' sources with a switch at every place that can depart."""

    def __init__(self, folder):
        self.folder, self.departures = folder, {}
        self.text = {name: open(os.path.join(KERNELS, name)).read()
                     for name in os.listdir(KERNELS) if name.endswith((".inc", ".h", ".c"))}
        for room in sorted(self.text):
            if room.endswith(".inc") and room not in ("multiply_add.inc", "multiply_add_far.inc"):
                self.unfuse(room)
        self.by_hand = len(self.departures)
        for room, old, new, what in PLACES:
            self.replace(room, old, new, what)
        self.change_coefficients()
        self.put_after("vector.inc", "typedef vec vec_anywhere", SWITCH)
        self.put_after("vector.inc", '#include "multiply_add.inc"', TWICE_ROUNDED)
        os.makedirs(folder)
        for name, text in self.text.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)

    def new(self, room, what):
        number = len(self.departures) + 1
        self.departures[number] = Departure(number, room, what)
        return number

    def replace(self, room, old, new, what):
        """`new` is the expression that departs, or with $N in it all that stands in the place of `old`."""
        if self.text[room].count(old) != 1:
            sys.exit(f"departures: {room}: not there once: {old}")
        # compiled() finds the switches by this text.
        if "$N" in new and "departure == ($N)" not in new:
            sys.exit(f"departures: {room}: does not ask for departure == ($N): {new}")
        number = self.new(room, what)
        text = new.replace("$N", str(number)) if "$N" in new else f"DEPARTS({number}, {old}, {new})"
        self.text[room] = self.text[room].replace(old, text)

    def unfuse(self, room):
        def one(found):
            if any(found.string.startswith(begin, found.start()) for r, begin in EXACT_PRODUCTS + NEVER_SHOWN if r == room):
                return found.group()
            line = found.string.count("\n", 0, found.start()) + 1
            begin = found.string.rfind("\n", 0, found.start()) + 1
            shown = found.string[begin:found.string.find("\n", begin)].strip(" \\")
            of_floats = any(found.string.startswith(begin, found.start()) for r, begin in OF_F32_ALONE if r == room)
            number = self.new(room, f"line {line} rounds twice{', of floats' * of_floats}: {shown}")
            return f"{found.group(1)}_at({number}, "

        calls = r"\b(multiply_add|multiply_add_doubles|multiply_add_one|FUSED)\("
        self.text[room] = re.sub(calls, one, self.text[room])

    def change_coefficients(self):
        room, cases = "coefficients.inc", {}
        for name in re.findall(r"static const (?:real|double) (\w+)\[\]", self.text[room]):
            if name not in cases:
                number = self.new(room, f"the last bit of {name}[0]")
                cases[name] = number
        self.text[room] = re.sub(r"static const (real|double) ", r"static \1 ", self.text[room])
        # A table may be of one type alone: only those that were defined are changed.
        body = "".join(f"\n#ifdef HAS_{name}\n case {n}: first = LAST_BYTE({name}); break;\n#endif\n"
                       for name, n in cases.items())
        self.text[room] = re.sub(r"(static (?:real|double) (\w+)\[\])", r"#define HAS_\2\n\1", self.text[room])
        self.text[room] += LAST_BIT % body

    def put_after(self, room, beginning, text):
        at = self.text[room].index(beginning)
        end = self.text[room].index("\n", at) + 1
        self.text[room] = self.text[room][:end] + text + self.text[room][end:]


def command_of(target, ending):
    """The command of a build, on the way to a target, that matches the ending."""
    lines = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], stdout=subprocess.PIPE, text=True, check=True)
    return [line for line in lines.stdout.splitlines() if re.search(ending, line)][-1]


class Tests:
    """bits-tests of which one object has the switches."""

    def __init__(self, rooms, kernels, real, emulator):
        self.kernels, self.emulator = kernels, emulator
        self.program = os.path.join(rooms.folder, f"tests-{kernels}-f{real}")
        name = f"{kernels}_f{real}.c"
        source, built = os.path.join(rooms.folder, name), os.path.join(rooms.folder, name + ".o")
        compile_ = shlex.split(command_of(f"libkernels-{kernels}.a", f" -c .*{name}$"))
        output = compile_.index("-o") + 1
        drop = {compile_.index(flag) + k for flag in ("-MQ", "-MF") for k in (0, 1)} | {compile_.index("-MD")}
        compile_ = [word for i, word in enumerate(compile_) if i not in drop and not re.fullmatch("-O.", word)
                    and i not in (output, output - 1) and not word.endswith(name)]
        # gcc 12 has an internal error where it optimises switches between vectors of two doubles.
        level = "-O0" if (kernels, real) == ("base", 64) else "-O1"
        compile_ += [level, "-w", "-iquote", ROOT, source]
        self.run(compile_ + ["-o", built])
        self.numbers = self.compiled(self.run(compile_ + ["-E", "-P", "-o", "-"]))
        link = shlex.split(command_of("tests/bits-tests", " -o tests/bits-tests "))
        at = link.index("-o")
        self.run(link[:at] + ["-o", self.program, built] + link[at + 2:])

    @staticmethod
    def run(command):
        done = subprocess.run(command, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("departures: %s\n%s" % (" ".join(command[:3]), done.stderr[-2000:]))
        return done.stdout

    @staticmethod
    def compiled(text):
        """The numbers of the switches that are left for this set and type, where they are not only defined."""
        found = re.findall(r"_at\((\d+), ", text) + re.findall(r"departure == \((\d+)\)", text)
        return {int(n) for n in found} | {int(n) for n in re.findall(r"case (\d+): first = ", text)}

    def first_failure(self, suite, number):
        """None, or the test that failed first and what it says. The rest of the suite is not waited for."""
        readable, writable = os.pipe()
        environment = dict(os.environ, WEFT_DEPARTURE=str(number), WEFT_TOOLS=os.path.join(BUILD, "tools"))
        if suite != "bits":  # which compares all sets; the others look at the one in use
            environment["WEFT_ISA"] = self.kernels
        if self.emulator:
            # The tests of another machine are run by systems/plain_check.c, which prints a failure as it happens.
            environment["CK_FORK"] = "no"
            command, output, failure = [self.emulator, self.program, suite], writable, r".*:\d+:F:[^:]*:(\w+):\d+: (.*)"
        else:
            environment["CK_TAP_LOG_FILE_NAME"] = f"/dev/fd/{writable}"
            command, output, failure = [self.program, suite], subprocess.DEVNULL, r"not ok \d+ - [^:]*:\w+:(\w+): (.*)"
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, pass_fds=[writable],
                                   start_new_session=True)
        os.close(writable)
        with os.fdopen(readable, errors="replace") as log:
            for line in log:
                failed = re.match(failure, line)
                if failed:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return failed.groups()
        return ("ends by itself", "") if process.wait() else None

    def names(self, number, suites=SUITES):
        """The first test that fails with this departure: suite, name and what it says; None: no one."""
        for suite in suites:
            failed = self.first_failure(suite, number)
            if failed:
                return (suite, *failed)
        return None


def chosen(options, rooms, numbers, real):
    """In the short form the first of two rooms; of a room with several kinds the hand-written ones come first."""
    wanted, rooms_had = [], set()
    for n in sorted(numbers, key=lambda n: (n <= rooms.by_hand, n)):
        room = rooms.departures[n].room
        if options.room and room != options.room or options.repeat and n != options.repeat:
            continue
        of_other_type = rooms.departures[n].of_doubles if real == 32 else rooms.departures[n].of_floats
        if (options.short or options.once) and room in rooms_had or of_other_type:
            continue
        rooms_had.add(room)
        wanted.append(rooms.departures[n])
    if options.short:
        today = datetime.date.today().toordinal()
        wanted = [wanted[(2 * today + k) % len(wanted)] for k in (0, 1)]
    return wanted


def sets_here(emulator):
    there = [name for name in SETS if os.path.exists(os.path.join(BUILD, f"libkernels-{name}.a"))]
    bench = os.path.join(BUILD, "tools/bench")

    def runs(name):
        command = ([emulator] if emulator else []) + [bench, "--help"]
        environment = dict(os.environ, WEFT_ISA=name)
        return not os.path.exists(bench) or not subprocess.run(command, env=environment, stdout=subprocess.DEVNULL,
                                                               stderr=subprocess.DEVNULL).returncode
    return [name for name in there if runs(name)]


class Count:
    """What was named, by room, and what was not."""

    def __init__(self, rows):
        self.rows, self.cases, self.failures, self.by_room = rows, 0, 0, {}

    def add(self, tests, real, departure, named):
        self.cases += 1
        self.failures += named is None
        where = f"{departure.room:22s} {tests.kernels:7s} f{real} {departure.number:4d}"
        said = "NOT NAMED" if named is None else f"{named[0]}: {named[1]}: {named[2]}"[:150]
        if self.rows or named is None:
            print(f"{where} {departure.what[:90]} | {said}", flush=True)
        self.by_room.setdefault(departure.room, []).append((tests.kernels, real, departure, named))

    def table(self):
        for room, all_of_it in sorted(self.by_room.items()):
            named = [one for one in all_of_it if one[3]]
            line = f"{room:24s} {len(named)} of {len(all_of_it)} named"
            if named and not self.rows:
                kernels, real, departure, test = named[0]
                line += f"; {kernels} f{real}, {departure.what[:60]}: {test[0]}, {test[1]}"
            print(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--set", action="append")
    parser.add_argument("--bits", type=int, choices=[32, 64])
    parser.add_argument("--room")
    parser.add_argument("--repeat", type=int, metavar="NUMBER")
    parser.add_argument("--emulator")
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    options.short = options.short or not (options.long or options.once or options.repeat or options.room)
    began, count = time.monotonic(), Count(options.rows)
    folder = tempfile.mkdtemp(prefix="weft-wall-")
    try:
        subprocess.run(["ninja", "-C", BUILD, "tests/bits-tests"], stdout=subprocess.DEVNULL, check=True)
        rooms, met = Rooms(os.path.join(folder, "ops/kernels")), set()
        untouched = {r for r in rooms.text if r.endswith(".inc")} - WITHOUT_RESULTS - {d.room for d in rooms.departures.values()}
        if untouched:
            sys.exit(f"departures: rooms without a departure: {' '.join(sorted(untouched))}")
        for kernels in options.set or sets_here(options.emulator)[: 1 if options.short else None]:
            for real in [options.bits] if options.bits else [32] if options.short else [32, 64]:
                tests = Tests(rooms, kernels, real, options.emulator)
                wrong = tests.names(0, SUITES[:1] if options.short else SUITES)
                if wrong:
                    sys.exit(f"departures: without any, {kernels} f{real}: {wrong}")
                for departure in chosen(options, rooms, tests.numbers, real):
                    met.add(departure.number)
                    count.add(tests, real, departure, tests.names(departure.number))
        count.table()
        if options.long and not (options.set or options.bits or options.room):
            for n in sorted(set(rooms.departures) - met):
                print(f"{rooms.departures[n].room}: {rooms.departures[n].what}: in no set that runs here")
    finally:
        shutil.rmtree(folder)
    print(f"departures: {count.cases} cases, {count.failures} failures, {time.monotonic() - began:.0f} s")
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
