/* powercut.c keeps a copy of what a power cut would leave: LD_PRELOAD it.
 *
 * Of each file right in POWERCUT_DIR it remembers which ranges were written. A
 * file's own fsync or fdatasync carries them over to the file of the same name in
 * POWERCUT_SHADOW, and an fsync of the directory writes the names that are in it
 * then to .names there: a file that is not named was never made, or was removed.
 * Nothing is really synced, since the copy stands for the disk. A process that is
 * killed while it syncs leaves a part of that sync in the copy, as a disk may.
 *
 * It sees what goes through the C library, which is all that SQLite does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct range {
  struct range *next;
  off_t at;
  size_t len;
};

struct file {
  struct file *next;
  ino_t ino;
  char name[256];
  struct range *dirty, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  abort();
}

/* name_of finds what fd is: 1 a file in the directory, 2 the directory, 0 neither. */
static int name_of(int fd, char name[256]) {
  const char *dir = getenv("POWERCUT_DIR");
  char link[64], path[4096];
  if (!dir) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  size_t d = strlen(dir);
  if (n < (ssize_t)d || strncmp(path, dir, d)) return 0;
  path[n] = 0;
  if (path[d] == 0) return 2;
  if (path[d] != '/' || strchr(path + d + 1, '/') || strlen(path + d + 1) > 255) return 0;
  strcpy(name, path + d + 1);
  return 1;
}

/* file_of finds the record of a file. A new file under an old name begins anew. */
static struct file *file_of(int fd, const char *name) {
  struct stat st;
  must(fstat(fd, &st) == 0, "fstat");
  struct file *f = files;
  while (f && strcmp(f->name, name)) f = f->next;
  if (!f) {
    must((f = calloc(1, sizeof *f)) != NULL, "calloc");
    strcpy(f->name, name);
    f->next = files;
    files = f;
  }
  if (f->ino != st.st_ino) {
    f->ino = st.st_ino;
    f->dirty = NULL;
    f->last = &f->dirty;
  }
  return f;
}

static void wrote(int fd, off_t at, ssize_t len) {
  char name[256];
  if (len <= 0 || name_of(fd, name) != 1) return;
  pthread_mutex_lock(&lock);
  struct file *f = file_of(fd, name);
  struct range *r = calloc(1, sizeof *r);
  must(r != NULL, "calloc");
  r->at = at;
  r->len = (size_t)len;
  *f->last = r;
  f->last = &r->next;
  pthread_mutex_unlock(&lock);
}

static void path_in_shadow(char path[4096], const char *name) {
  const char *shadow = getenv("POWERCUT_SHADOW");
  must(shadow && snprintf(path, 4096, "%s/%s", shadow, name) < 4096, "POWERCUT_SHADOW");
}

static void carry(int from, int to, const struct range *r) {
  static char buf[1 << 16];
  for (size_t done = 0; done < r->len;) {
    size_t want = r->len - done < sizeof buf ? r->len - done : sizeof buf;
    ssize_t n = pread(from, buf, want, r->at + (off_t)done);
    if (n <= 0) return; /* it was cut off since */
    must(syscall(SYS_pwrite64, to, buf, n, r->at + (off_t)done) == n, "write the copy");
    done += (size_t)n;
  }
}

static void sync_file(int fd, const char *name) {
  char path[4096];
  struct stat st;
  struct file *f = file_of(fd, name);
  path_in_shadow(path, name);
  int to = open(path, O_RDWR | O_CREAT, 0600);
  must(to >= 0 && fstat(fd, &st) == 0, path);
  while (f->dirty) {
    struct range *r = f->dirty;
    carry(fd, to, r);
    f->dirty = r->next;
    free(r);
  }
  f->last = &f->dirty;
  must(syscall(SYS_ftruncate, to, st.st_size) == 0, "truncate the copy");
  close(to);
}

static void sync_names(void) {
  char path[4096], temporary[4096];
  path_in_shadow(path, ".names");
  path_in_shadow(temporary, ".names.new");
  DIR *d = opendir(getenv("POWERCUT_DIR"));
  FILE *out = fopen(temporary, "w");
  must(d && out, temporary);
  for (struct dirent *e; (e = readdir(d));) fprintf(out, "%s\n", e->d_name);
  closedir(d);
  must(fclose(out) == 0 && rename(temporary, path) == 0, path);
}

static int sync_any(int fd) {
  char name[256];
  int what = name_of(fd, name);
  pthread_mutex_lock(&lock);
  if (what == 1) sync_file(fd, name);
  if (what == 2) sync_names();
  pthread_mutex_unlock(&lock);
  return 0;
}

int fsync(int fd) { return sync_any(fd); }
int fdatasync(int fd) { return sync_any(fd); }

ssize_t write(int fd, const void *b, size_t len) {
  off_t at = lseek(fd, 0, SEEK_CUR);
  ssize_t n = syscall(SYS_write, fd, b, len);
  if (at >= 0) wrote(fd, at, n);
  return n;
}

ssize_t pwrite(int fd, const void *b, size_t len, off_t at) {
  ssize_t n = syscall(SYS_pwrite64, fd, b, len, at);
  wrote(fd, at, n);
  return n;
}

ssize_t pwrite64(int fd, const void *b, size_t len, off64_t at) { return pwrite(fd, b, len, at); }
