// What systemd does for a service with a socket unit, and no more: holds a listening socket of the loopback interface,
// runs a program with it as descriptor 3 (sd_listen_fds(3)), and runs it again whenever it has ended. Says on standard
// output which port, which process started and how each ended. What it runs ends with it.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int listening(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  if (fd == -1 || bind(fd, (struct sockaddr *)&address, length) == -1 || listen(fd, 4096) == -1 ||
      getsockname(fd, (struct sockaddr *)&address, &length) == -1) {
    perror("listening");
    exit(1);
  }
  printf("port %d\n", ntohs(address.sin_port));
  return fd;
}

static void become(int fd, char **command) {
  char pid[20];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Were it 3 already, dup2 would leave it to be closed.
  int other = fd == 3 ? dup(fd) : fd;
  dup2(other, 3);
  snprintf(pid, sizeof pid, "%d", getpid());
  setenv("LISTEN_PID", pid, 1);
  setenv("LISTEN_FDS", "1", 1);
  execvp(command[0], command);
  perror(command[0]);
  _exit(127);
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  int fd = listening();
  for (;;) {
    pid_t child = fork();
    if (child == 0) become(fd, arguments + 1);
    printf("started %d\n", child);
    int status = 0;
    waitpid(child, &status, 0);
    printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}
