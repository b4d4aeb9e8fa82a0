/* tests/core/file/test_replace.c - a save and the files that are in its folder already: the
 * permissions of the old file are kept, and temporary files that killed processes left are removed,
 * but no other files. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"

TESTS(replace)

static char folder[] = "/tmp/weft-replace-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) remove(in_folder(e->d_name));
    closedir(dir);
    rmdir(folder);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static void save(const char *name) {
    char message[256] = "";
    const wf_entry e = { "w", "U8", 1, { 1 }, "x", 1 };
    ck_assert_msg(wf_file_save(in_folder(name), &e, 1, NULL, 0, message), "%s", message);
}

static unsigned mode_of(const char *name) {
    struct stat status;
    ck_assert_int_eq(stat(in_folder(name), &status), 0);
    return status.st_mode & 07777;
}

SETUP(make_folder, remove_folder)

TEST(the_old_permissions_are_kept_exactly) {
    static const unsigned modes[] = { 0600, 0640, 0644, 0664, 0666, 0660, 0400, 0444, 0755, 0000 };
    static const unsigned masks[] = { 0000, 0002, 0022, 0027, 0077, 0777 };
    for (int k = 0; k < COUNT_OF(masks); k++) {
        mode_t before = umask(masks[k]);
        save("new");
        ck_assert_uint_eq(mode_of("new"), 0666 & ~masks[k]);
        for (int i = 0; i < COUNT_OF(modes); i++) {
            ck_assert_int_eq(chmod(in_folder("new"), modes[i]), 0);
            save("new");
            ck_assert_msg(mode_of("new") == modes[i], "%03o instead of %03o under umask %03o",
                          mode_of("new"), modes[i], masks[k]);
        }
        remove(in_folder("new"));
        umask(before);
    }
}

static void touch(const char *name) {
    FILE *f = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(f);
    fputs("mine", f);
    fclose(f);
}

static bool is_there(const char *name) {
    return access(in_folder(name), F_OK) == 0;
}

/* Returns the id of a process that has ended. */
static long dead(void) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (long)child;
}

TEST(only_what_a_killed_save_left_is_removed) {
    static const char *const users[] = {
        "m.safetensors.tmp-2026-11-22",        "m.safetensors.tmp-20240101-good",
        "m.safetensors.tmp-2024-11",           "m.safetensors.tmp-weft-%ld-0.bak",
        "m.safetensors.tmp-weft-%ld-0 (copy)", "m.safetensors.tmp-weft-%ld-",
        "m.safetensors.tmp-weft-%ld",          "m.safetensors.tmp-weft-0%ld-0",
        "m.safetensors.tmp-weft-+%ld-0",       "m.safetensors.tmp-weft- %ld-0",
        "m.safetensors.tmp-weft-%ld-00",       "m.safetensors.tmp-weft-%ld-x",
        "m.safetensors.tmp-weft-%ld--1",       "m.safetensors2.tmp-weft-%ld-0",
        "am.safetensors.tmp-weft-%ld-0",       "m.safetensors.tmp-weft-99999999999999999999-0",
    };
    char name[128];
    long pid = dead();
    for (int i = 0; i < COUNT_OF(users); i++)
        snprintf(name, sizeof name, users[i], pid), touch(name);
    snprintf(name, sizeof name, "m.safetensors.tmp-weft-%ld-0", (long)getpid());
    touch(name); /* a temporary file of a running process, which may still write it */
    char left[2][128];
    for (int i = 0; i < 2; i++)
        snprintf(left[i], sizeof left[i], "m.safetensors.tmp-weft-%ld-%d", pid, 37 * i),
            touch(left[i]);
    save("m.safetensors");
    for (int i = 0; i < 2; i++) ck_assert_msg(!is_there(left[i]), "%s is still there", left[i]);
    ck_assert(is_there(name));
    for (int i = 0; i < COUNT_OF(users); i++) {
        snprintf(name, sizeof name, users[i], pid);
        ck_assert_msg(is_there(name), "%s was deleted", name);
    }
}

/* wf_file_remove_left removes temporary files that killed saves to a path left, with or without a
 * folder in it; the file itself need not exist, and is not written. */
TEST(what_is_left_is_removed_without_a_save) {
    char left[2][128], outside[] = "/tmp";
    for (int with_folder = 0; with_folder < 2; with_folder++) {
        for (int i = 0; i < 2; i++) {
            snprintf(left[i], sizeof left[i], "%c.tmp-weft-%ld-0", 'm' + i, dead());
            touch(left[i]);
        }
        wf_file_remove_left(NULL);
        wf_file_remove_left("");
        wf_file_remove_left("no/such/folder/m");
        ck_assert(is_there(left[0]) && is_there(left[1]));
        ck_assert_int_eq(chdir(folder), 0);
        wf_file_remove_left(with_folder ? in_folder("m") : "m");
        ck_assert_int_eq(chdir(outside), 0);
        ck_assert_msg(!is_there(left[0]), "%s is still there", left[0]);
        ck_assert_msg(is_there(left[1]) && !is_there("m"), "%s was deleted", left[1]);
    }
}

/* The process id in a temporary file's name may belong to a process of another container, so a
 * writer holds a lock on the file. A symbolic link is not removed either. */
TEST(what_somebody_writes_is_not_removed) {
    char written[128], link[128], byte;
    int ready[2], done[2];
    snprintf(written, sizeof written, "m.safetensors.tmp-weft-%ld-0", dead());
    snprintf(link, sizeof link, "m.safetensors.tmp-weft-%ld-1", dead());
    ck_assert_int_eq(symlink("nowhere", in_folder(link)), 0);
    ck_assert(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int fd = open(in_folder(written), O_RDWR | O_CREAT, 0600);
        close(done[1]);
        bool ok = fd >= 0 && lockf(fd, F_LOCK, 0) == 0 && write(ready[1], "x", 1) == 1;
        _exit(ok && read(done[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    save("m.safetensors");
    ck_assert(is_there(written));
    close(done[1]), waitpid(child, NULL, 0);
    save("m.safetensors");
    ck_assert(!is_there(written));
    struct stat status;
    ck_assert_int_eq(lstat(in_folder(link), &status), 0);
    close(ready[0]), close(done[0]);
}
