/* A fast fake provider for measuring: epoll, keep-alive, one thread.

   cc -O2 -o upstream upstream.c
   upstream 9001:ok 9002:500 9003:429 9004:reset 9005:hang 9006:trunc

   ok     1 KB of JSON, or 64 events when the body holds "stream":true
   NNN    that status with a small JSON error
   reset  RST instead of an answer
   hang   no answer at all
   trunc  half of the answer, then the connection is closed */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum mode { OK, STATUS, RESET, HANG, TRUNC };

struct port { int fd; enum mode mode; int status; };

/* What was read and not yet understood, what was written and not yet taken. */
struct peer { int fd; struct port *port; char *in, *out; size_t have, room, left, size; };

#define MAX_FD 65536
#define EVENTS 64
static struct port ports[32];
static int port_count, poller;
static struct peer *peers[MAX_FD];
static char plain[4096], stream[EVENTS * 320 + 1024], failure[64][512];
static size_t plain_size, stream_size;

static void watch(int fd, unsigned events, int op) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  epoll_ctl(poller, op, fd, &event);
}

static void drop(struct peer *peer) {
  peers[peer->fd] = NULL;
  close(peer->fd);
  free(peer->in);
  free(peer->out);
  free(peer);
}

static int write_out(struct peer *peer, const char *data, size_t size) {
  if (!peer->left) {
    ssize_t sent = send(peer->fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return -1;
    if (sent < 0) sent = 0;
    data += sent;
    size -= sent;
    if (!size) return 0;
  }
  if (peer->left + size > peer->size) {
    peer->size = 2 * (peer->left + size);
    peer->out = realloc(peer->out, peer->size);
  }
  memcpy(peer->out + peer->left, data, size);
  peer->left += size;
  watch(peer->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  return 0;
}

static int flush_out(struct peer *peer) {
  ssize_t sent = send(peer->fd, peer->out, peer->left, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN ? 0 : -1;
  memmove(peer->out, peer->out + sent, peer->left - sent);
  peer->left -= sent;
  if (!peer->left) watch(peer->fd, EPOLLIN, EPOLL_CTL_MOD);
  return 0;
}

/* -1: close the connection. */
static int answer(struct peer *peer, const char *body, size_t size) {
  int streamed = memmem(body, size, "\"stream\":true", 13) || memmem(body, size, "\"stream\": true", 14);
  const char *data = streamed ? stream : plain;
  size_t all = streamed ? stream_size : plain_size;
  struct linger hard = {1, 0};
  switch (peer->port->mode) {
    case HANG: return 0;
    case RESET: setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard); return -1;
    case STATUS: data = failure[peer->port - ports]; return write_out(peer, data, strlen(data));
    case TRUNC: write_out(peer, data, all / 2); return -1;
    default: return write_out(peer, data, all);
  }
}

static size_t length_of(const char *head, const char *end) {
  for (const char *line = head; line && line < end; line = memchr(line, '\n', end - line), line = line ? line + 1 : NULL)
    if (!strncasecmp(line, "content-length:", 15)) return strtoul(line + 15, NULL, 10);
  return 0;
}

static int understand(struct peer *peer) {
  char *end;
  while ((end = memmem(peer->in, peer->have, "\r\n\r\n", 4))) {
    size_t head = end + 4 - peer->in, body = length_of(peer->in, end), used = head + body;
    if (peer->have < used) return 0;
    if (answer(peer, peer->in + head, body) < 0) return -1;
    memmove(peer->in, peer->in + used, peer->have - used);
    peer->have -= used;
  }
  return 0;
}

static int read_in(struct peer *peer) {
  if (peer->have == peer->room) peer->in = realloc(peer->in, peer->room *= 2);
  ssize_t got = recv(peer->fd, peer->in + peer->have, peer->room - peer->have, 0);
  if (got <= 0) return got < 0 && errno == EAGAIN ? 0 : -1;
  peer->have += got;
  return understand(peer);
}

static void welcome(struct port *port) {
  int fd, on = 1;
  while ((fd = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    if (fd >= MAX_FD) { close(fd); continue; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct peer *peer = calloc(1, sizeof *peer);
    *peer = (struct peer){.fd = fd, .port = port, .room = 16384, .in = malloc(16384)};
    peers[fd] = peer;
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  }
}

static void prepare(void) {
  const char *line = "All the world's a stage, and all the men and women merely players. ";
  char text[800] = "", body[2048];
  while (strlen(text) < 640) strcat(text, line);
  int size = snprintf(body, sizeof body,
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"understudy-1\","
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":130,\"total_tokens\":150}}", text);
  plain_size = snprintf(plain, sizeof plain,
    "HTTP/1.1 200 OK\r\nDate: Thu, 01 Oct 2026 12:00:00 GMT\r\nContent-Type: application/json\r\n"
    "Content-Length: %d\r\nX-Request-Id: req_1\r\nServer: upstream\r\n\r\n%s", size, body);
  stream_size = snprintf(stream, sizeof stream,
    "HTTP/1.1 200 OK\r\nDate: Thu, 01 Oct 2026 12:00:00 GMT\r\nContent-Type: text/event-stream\r\n"
    "Transfer-Encoding: chunked\r\nX-Request-Id: req_1\r\nServer: upstream\r\n\r\n");
  for (int i = 0; i < EVENTS; i++) {
    int last = i == EVENTS - 1;
    char event[320];
    size = snprintf(event, sizeof event,
      "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"understudy-1\","
      "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%02d\"},\"finish_reason\":%s}]}\n\n%s",
      i, last ? "\"stop\"" : "null", last ? "data: [DONE]\n\n" : "");
    stream_size += sprintf(stream + stream_size, "%x\r\n%s\r\n", size, event);
  }
  stream_size += sprintf(stream + stream_size, "0\r\n\r\n");
}

static int listen_on(const char *spec) {
  struct port *port = &ports[port_count];
  const char *colon = strchr(spec, ':'), *mode = colon ? colon + 1 : "ok";
  port->mode = !strcmp(mode, "reset") ? RESET : !strcmp(mode, "hang") ? HANG : !strcmp(mode, "trunc") ? TRUNC
             : (port->status = atoi(mode)) ? STATUS : OK;
  const char *body = "{\"error\":{\"message\":\"made up\",\"type\":\"server_error\"}}";
  snprintf(failure[port_count], sizeof failure[0],
    "HTTP/1.1 %d Made Up\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", port->status, strlen(body), body);
  int on = 1;
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(atoi(spec)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  port->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(port->fd, (void *)&where, sizeof where) || listen(port->fd, 4096)) { perror(spec); return -1; }
  watch(port->fd, EPOLLIN, EPOLL_CTL_ADD);
  port_count++;
  return 0;
}

int main(int count, char **specs) {
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(0);
  prepare();
  for (int i = 1; i < count && port_count < 32; i++)
    if (listen_on(specs[i])) return 1;
  struct epoll_event events[512];
  for (;;) {
    int ready = epoll_wait(poller, events, 512, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      struct port *port = NULL;
      for (int k = 0; k < port_count; k++) if (ports[k].fd == fd) port = &ports[k];
      if (port) { welcome(port); continue; }
      struct peer *peer = peers[fd];
      if (!peer) continue;
      int failed = (events[i].events & EPOLLOUT) && flush_out(peer) < 0;
      if (!failed && (events[i].events & ~EPOLLOUT)) failed = read_in(peer) < 0;
      if (failed) drop(peer);
    }
  }
}
