/* A fast fake provider for measuring: epoll, keep-alive, one thread.

   cc -O2 -o upstream upstream.c
   upstream 9001:ok 9002:500 9003:429 9004:reset 9005:hang 9006:trunc 9007:ok:5000

   ok     1 KB of JSON, or 64 events when the body holds "stream":true; written in one go
   ok:N   each event is sent by itself, N microseconds after the one before it (0: at once)
   ok:N:M the same, with M events
   NNN    that status with a small JSON error; 429 says when to come back
   reset  RST instead of an answer
   hang   no answer at all
   trunc  half of the answer, then the connection is closed

   Under /v1/messages the answers are Anthropic's, anywhere else OpenAI's. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 65536
#define EVENTS 64
#define TOGETHER -1 /* all events in one write */

enum mode { OK, STATUS, RESET, HANG, TRUNC };

/* Bytes of an answer; piece i ends at ends[i], and the head is piece 0. */
struct script { char data[EVENTS * 400 + 1024]; size_t size, ends[EVENTS + 1]; };

struct peer;
struct port { int fd; enum mode mode; int status, events; long pace; struct peer *first, *last; };

/* What was read and not yet understood, what was written and not yet taken; a paced one stands
   in its port's line, in the order in which their next events are due. */
struct peer {
  int fd;
  struct port *port;
  char *in, *out;
  size_t have, room, left, size;
  const struct script *script;
  int piece;
  long due;
  struct peer *before, *after;
};

static struct port ports[32];
static int port_count, poller;
static struct peer *peers[MAX_FD];
static char failure[32][512];
static struct script chat, chat_stream, messages, messages_stream;

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

static void watch(int fd, unsigned events, int op) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  epoll_ctl(poller, op, fd, &event);
}

/* -- the line of paced streams ----------------------------------------------------------------- */

static void stand_in_line(struct peer *peer) {
  struct port *port = peer->port;
  peer->before = port->last;
  peer->after = NULL;
  *(port->last ? &port->last->after : &port->first) = peer;
  port->last = peer;
}

static void leave_line(struct peer *peer) {
  *(peer->before ? &peer->before->after : &peer->port->first) = peer->after;
  *(peer->after ? &peer->after->before : &peer->port->last) = peer->before;
}

static void drop(struct peer *peer) {
  if (peer->script) leave_line(peer);
  peers[peer->fd] = NULL;
  close(peer->fd);
  free(peer->in);
  free(peer->out);
  free(peer);
}

/* -- writing ----------------------------------------------------------------------------------- */

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

static int write_piece(struct peer *peer, const struct script *script, int piece) {
  size_t start = piece ? script->ends[piece - 1] : 0;
  return write_out(peer, script->data + start, script->ends[piece] - start);
}

/* A short stream leaves out events before the last one, which is the end mark's. */
static int piece_after(const struct port *port, int piece) {
  return piece + 1 >= port->events ? EVENTS : piece + 1;
}

static int play(struct peer *peer, const struct script *script) {
  struct port *port = peer->port;
  if (port->pace == TOGETHER) return write_out(peer, script->data, script->size);
  if (write_piece(peer, script, 0) < 0) return -1;
  if (port->pace) {
    peer->script = script;
    peer->piece = 0;
    peer->due = now() + port->pace;
    stand_in_line(peer);
    return 0;
  }
  for (int piece = 0; piece < EVENTS;) {
    piece = piece_after(port, piece);
    if (write_piece(peer, script, piece) < 0) return -1;
  }
  return 0;
}

/* -1: close the connection. */
static int answer(struct peer *peer, int anthropic, const char *body, size_t size) {
  int streamed = memmem(body, size, "\"stream\":true", 13) || memmem(body, size, "\"stream\": true", 14);
  const struct script *plain = anthropic ? &messages : &chat;
  const struct script *stream = anthropic ? &messages_stream : &chat_stream;
  const struct script *script = streamed ? stream : plain;
  const char *error = failure[peer->port - ports];
  struct linger hard = {1, 0};
  switch (peer->port->mode) {
    case HANG: return 0;
    case RESET: setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard); return -1;
    case STATUS: return write_out(peer, error, strlen(error));
    case TRUNC: write_out(peer, script->data, script->size / 2); return -1;
    default: return streamed ? play(peer, script) : write_out(peer, script->data, script->size);
  }
}

/* -- reading ----------------------------------------------------------------------------------- */

static size_t length_of(const char *head, const char *end) {
  for (const char *line = head; line && line < end; line = memchr(line, '\n', end - line), line = line ? line + 1 : NULL)
    if (!strncasecmp(line, "content-length:", 15)) return strtoul(line + 15, NULL, 10);
  return 0;
}

static int understand(struct peer *peer) {
  char *end;
  while (!peer->script && (end = memmem(peer->in, peer->have, "\r\n\r\n", 4))) {
    size_t head = end + 4 - peer->in, body = length_of(peer->in, end), used = head + body;
    if (peer->have < used) return 0;
    int anthropic = head > 17 && !memcmp(peer->in, "POST /v1/messages", 17);
    if (answer(peer, anthropic, peer->in + head, body) < 0) return -1;
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
    *peer = (struct peer){.fd = fd, .port = port, .room = 4096, .in = malloc(4096)};
    peers[fd] = peer;
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  }
}

/* Send what is due; milliseconds until there is more to do, -1 if nothing is planned. */
static int keep_pace(void) {
  long time = now(), soonest = -1;
  for (struct port *port = ports; port < ports + port_count; port++) {
    struct peer *peer;
    while ((peer = port->first) && peer->due <= time) {
      leave_line(peer);
      const struct script *script = peer->script;
      peer->script = NULL;
      peer->piece = piece_after(port, peer->piece);
      if (write_piece(peer, script, peer->piece) < 0) { drop(peer); continue; }
      if (peer->piece < EVENTS) {
        peer->script = script;
        peer->due += port->pace;
        stand_in_line(peer);
      } else if (understand(peer) < 0) drop(peer);
    }
    if (peer && (soonest < 0 || peer->due < soonest)) soonest = peer->due;
  }
  return soonest < 0 ? -1 : (int)((soonest - time + 999) / 1000);
}

/* -- what is said ------------------------------------------------------------------------------ */

#define HEAD "HTTP/1.1 200 OK\r\nDate: Thu, 01 Oct 2026 12:00:00 GMT\r\nX-Request-Id: req_1\r\nServer: upstream\r\n"

static void whole(struct script *script, const char *body) {
  script->size = sprintf(script->data,
    HEAD "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static void begin(struct script *script) {
  script->size = sprintf(script->data,
    HEAD "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  script->ends[0] = script->size;
}

static void add(struct script *script, int piece, const char *event) {
  const char *end = piece == EVENTS ? "0\r\n\r\n" : "";
  script->size += sprintf(script->data + script->size, "%zx\r\n%s\r\n%s", strlen(event), event, end);
  script->ends[piece] = script->size;
}

static void prepare_chat(const char *text) {
  char body[2048], event[400];
  snprintf(body, sizeof body,
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"understudy-1\","
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":130,\"total_tokens\":150}}", text);
  whole(&chat, body);
  begin(&chat_stream);
  for (int i = 1; i <= EVENTS; i++) {
    int last = i == EVENTS;
    snprintf(event, sizeof event,
      "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"understudy-1\","
      "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%02d\"},\"finish_reason\":%s}]}\n\n%s",
      i, last ? "\"stop\"" : "null", last ? "data: [DONE]\n\n" : "");
    add(&chat_stream, i, event);
  }
}

static void prepare_messages(const char *text) {
  char body[2048], event[400];
  snprintf(body, sizeof body,
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"understudy-1\","
    "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,"
    "\"usage\":{\"input_tokens\":20,\"output_tokens\":130}}", text);
  whole(&messages, body);
  begin(&messages_stream);
  add(&messages_stream, 1,
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\","
    "\"role\":\"assistant\",\"model\":\"understudy-1\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
    "\"usage\":{\"input_tokens\":20,\"output_tokens\":1}}}\n\n");
  add(&messages_stream, 2,
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
  for (int i = 3; i < EVENTS; i++) {
    snprintf(event, sizeof event,
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
      "\"delta\":{\"type\":\"text_delta\",\"text\":\" word%02d\"}}\n\n", i);
    add(&messages_stream, i, event);
  }
  add(&messages_stream, EVENTS,
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
    "\"stop_sequence\":null},\"usage\":{\"output_tokens\":130}}\n\n"
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void prepare_failure(const struct port *port) {
  const char *body = "{\"error\":{\"message\":\"made up\",\"type\":\"server_error\"}}";
  const char *hint = port->status == 429 ? "Retry-After: 300\r\n" : "";
  snprintf(failure[port - ports], sizeof failure[0],
    "HTTP/1.1 %d Made Up\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
    port->status, hint, strlen(body), body);
}

static int listen_on(const char *spec) {
  struct port *port = &ports[port_count];
  const char *colon = strchr(spec, ':'), *mode = colon ? colon + 1 : "ok";
  const char *pace = strchr(mode, ':'), *events = pace ? strchr(pace + 1, ':') : NULL;
  port->mode = !strcmp(mode, "reset") ? RESET : !strcmp(mode, "hang") ? HANG : !strcmp(mode, "trunc") ? TRUNC
             : (port->status = atoi(mode)) ? STATUS : OK;
  port->pace = pace ? atol(pace + 1) : TOGETHER;
  port->events = events ? atoi(events + 1) : EVENTS;
  prepare_failure(port);
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
  const char *line = "All the world's a stage, and all the men and women merely players. ";
  char text[800] = "";
  while (strlen(text) < 640) strcat(text, line);
  prepare_chat(text);
  prepare_messages(text);
  for (int i = 1; i < count && port_count < 32; i++)
    if (listen_on(specs[i])) return 1;
  struct epoll_event events[512];
  for (;;) {
    int ready = epoll_wait(poller, events, 512, keep_pace());
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
