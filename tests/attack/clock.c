// A clock that is wrong by the seconds in the mapped file NEWSEMBED_TEST_CLOCK, for LD_PRELOAD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *wrong;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("NEWSEMBED_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) wrong = found;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int code = syscall(SYS_clock_gettime, clock, now);
  if (!code && wrong && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *wrong;
  return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec found;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
  now->tv_sec = found.tv_sec, now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}
