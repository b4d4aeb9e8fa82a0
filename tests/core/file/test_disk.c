/* tests/core/file/test_disk.c - writes, flushes, reads and other system calls of a save and of a
 * load that fail or are interrupted: the old file or the new one is there, whole, and the message
 * says which step failed.
 *
 * The calls fail in faults.c. test_file.c has writes beyond a limit of the system, and processes
 * that are killed while they write. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

TESTS(disk)

static char folder[] = "/tmp/weft-disk-XXXXXX", path[64];

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w", folder);
}

static void remove_folder(void) {
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* fails if a save left another file */
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static bool save(float value, char *message) {
    const wf_entry e = { "w", "F32", 1, { 1 }, &value, sizeof value };
    return wf_file_save(path, &e, 1, &(wf_meta){ "k", "v" }, 1, message);
}

/* Returns the number in the file. Fails the test if the file is not whole. */
static float saved(void) {
    float value;
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_checked(f), "%s", wf_file_error(f));
    memcpy(&value, wf_file_find(f, "w")->data, sizeof value);
    wf_file_free(f);
    return value;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static const struct {
    disk_fault fault;
    float left;       /* 1: the old file, 2: the new one */
    const char *says; /* NULL: saved all the same */
} saves[] = {
    { { "write", EINTR, 0, 3 }, 2, NULL },
    { { "write", ENOSPC, 0, 1 }, 1, "w: cannot be written: No space" },
    { { "write", ENOSPC, 1, 1 }, 1, "w: cannot be written: No space" },
    { { "write", 0, 1, 1 }, 1, "w: cannot be written" },
    { { "fchmod", EPERM, 0, 1 }, 1, "w: the permissions of the old file cannot be kept" },
    { { "fsync", EINTR, 0, 3 }, 2, NULL },
    { { "fsync", EIO, 0, 1 }, 1, "w: cannot be flushed to the disk" },
    { { "pread", EINTR, 0, 3 }, 2, NULL },
    { { "pread", EIO, 0, 1 }, 1, "w: read back, the file is not as written: cannot be read" },
    { { "pread", EIO, 1, 1 }, 1, "w: read back, the file is not as written: cannot be read" },
    { { "pread", 0, 2, 1 }, 1, "w: read back, the file is not as written: became shorter" },
    { { "close", EINTR, 0, 9 }, 2, NULL },
    { { "close", EIO, 0, 9 }, 1, "w: cannot be closed" },
    { { "renameat", EXDEV, 0, 1 }, 1, "w: cannot be renamed" },
    { { "fsync", EINVAL, 1, 1 }, 2, NULL }, /* some file systems flush no folders */
    { { "fsync", EIO, 1, 1 }, 2, "w: written, but its folder cannot be flushed" },
};

SETUP(make_folder, remove_folder)

TEST_ROWS(a_failed_save_says_what_failed, COUNT_OF(saves)) {
    char message[WF_MESSAGE] = "";
    ck_assert_msg(save(1, message), "%s", message);
    ck_assert_int_eq(chmod(path, 0606), 0); /* which no new file has */
    faults_disk(saves[_i].fault);
    bool ok = save(2, message);
    faults_disk((disk_fault){ 0 });
    ck_assert_msg(ok == !saves[_i].says, "%s", message);
    if (!ok) assert_contains(message, saves[_i].says);
    ck_assert_float_eq(saved(), saves[_i].left);
    ck_assert_msg(save(3, message), "%s", message); /* and the next one is as ever */
    ck_assert_float_eq(saved(), 3);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const struct {
    disk_fault fault;
    const char *says;
} readings[] = {
    { { "pread", EINTR, 0, 3 }, NULL },
    { { "pread", EIO, 0, 1 }, "w: cannot be read: " },
    { { "pread", EIO, 1, 1 }, "w: cannot be read: " },
    { { "pread", EIO, 2, 1 }, "w: cannot be read: " },
    { { "pread", 0, 0, 1 }, "w: became shorter while it was read" },
    { { "pread", 0, 1, 1 }, "w: became shorter while it was read" },
    { { "pread", 0, 2, 1 }, "w: became shorter while it was read" },
};

TEST_ROWS(a_failed_reading_says_what_failed, COUNT_OF(readings)) {
    char message[WF_MESSAGE] = "";
    ck_assert_msg(save(1, message), "%s", message);
    faults_disk(readings[_i].fault);
    wf_file *f = wf_file_open(path);
    faults_disk((disk_fault){ 0 });
    ck_assert_msg(wf_file_ok(f) == !readings[_i].says, "%s", wf_file_error(f));
    if (readings[_i].says) {
        assert_contains(wf_file_error(f), readings[_i].says);
        ck_assert_ptr_null(wf_file_find(f, "w"));
    }
    wf_file_free(f);
    ck_assert_float_eq(saved(), 1);
}
