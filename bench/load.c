/* Load for gateways: connections that are kept and ask the same thing again and again.

   cc -O2 -o load load.c
   load -p PORT -f BODY [-P PATH] [-H 'Name: value']... [-c CONNECTIONS] [-r OPENED_A_SECOND]
        [-d SECONDS | -n REQUESTS] [-e EVENTS]

   Each connection asks again as soon as it was answered. At the end nothing new is asked and what
   is under way is waited for, so that CPU time divided by `requests` is exact. One line of JSON:

   rate      answers a second while it ran; of the slow, who finished less than one round of
             connections in that time, until all had ended
   requests  answers in all, refused ones included
   errors    connections that broke, answers that never ended
   refused   answers other than 2xx              short     streams with other than EVENTS events
   seconds   that `rate` is about                elapsed   until the last answer had ended
   open      most answers begun and not ended at one time
   p50 ...   microseconds to the end of an answer, first50 ... to the first byte of its body */

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

#define HEAD_MAX 16384
#define PATIENCE 60.0 /* seconds what is under way gets at the end */
#define ENOUGH 20000  /* errors after which there is nothing to measure */

enum state { CLOSED, CONNECTING, IDLE, HEAD, LENGTH, SIZE, CHUNK, CHUNK_END, TRAILER, TO_CLOSE };

struct link {
  int fd;
  enum state state;
  char *head;
  size_t have, left;
  int status, keeps, newlines, begun;
  long events;
  double asked, first;
};

/* A growing list of times. */
struct times { double *all; size_t count, room; };

static struct { int port, connections; long requests, events; double seconds, rate; } want = {.connections = 1, .seconds = 1};
static char *question;
static size_t question_size;
static int poller;
static struct times ends, firsts;
static long fired, answered, errors, refused, shorts, open_now, open_most, events_all;
static double started;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void note(struct times *times, double value) {
  if (times->count == times->room) {
    times->room = times->room ? 2 * times->room : 65536;
    times->all = realloc(times->all, times->room * sizeof(double));
  }
  times->all[times->count++] = value;
}

static int by_value(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static double percentile(const struct times *times, double part) {
  return times->count ? 1e6 * times->all[(size_t)((times->count - 1) * part)] : 0;
}

/* -- connections ------------------------------------------------------------------------------- */

static int is_over(void) {
  return want.requests ? fired >= want.requests : now() - started >= want.seconds;
}

static void watch(struct link *link, unsigned events, int op) {
  struct epoll_event event = {.events = events, .data.ptr = link};
  epoll_ctl(poller, op, link->fd, &event);
}

static void connect_to(struct link *link) {
  int on = 1;
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(want.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  link->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (link->fd < 0) { perror("socket"); exit(2); }
  setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  link->state = CONNECTING;
  connect(link->fd, (void *)&where, sizeof where); /* how it went is told by epoll */
  watch(link, EPOLLOUT, EPOLL_CTL_ADD);
}

static void hang_up(struct link *link, int failed) {
  close(link->fd);
  if (link->begun) open_now--;
  link->begun = 0;
  link->state = CLOSED;
  errors += failed;
  if (!is_over() && errors < ENOUGH) connect_to(link);
}

static void ask(struct link *link) {
  if (is_over()) { link->state = IDLE; return; }
  fired++;
  link->state = HEAD;
  link->have = 0;
  link->events = link->newlines = 0;
  link->asked = now();
  link->first = 0;
  if (send(link->fd, question, question_size, MSG_NOSIGNAL) != (ssize_t)question_size) hang_up(link, 1);
}

static void connected(struct link *link) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error) { hang_up(link, 1); return; }
  watch(link, EPOLLIN, EPOLL_CTL_MOD);
  ask(link);
}

/* -- answers ----------------------------------------------------------------------------------- */

static void finish(struct link *link) {
  double time = now();
  answered++;
  if (link->begun) open_now--;
  link->begun = 0;
  events_all += link->events;
  if (link->status < 200 || link->status > 299) refused++;
  else if (want.events && link->events != want.events) shorts++;
  note(&ends, time - link->asked);
  if (link->first) note(&firsts, link->first - link->asked);
  if (link->keeps) ask(link);
  else hang_up(link, 0);
}

/* Events are what ends in an empty line. */
static void body(struct link *link, const char *data, size_t size) {
  if (!link->begun) {
    link->begun = 1;
    link->first = now();
    if (++open_now > open_most) open_most = open_now;
  }
  const char *end = data + size;
  for (const char *at = data; at < end; at++) {
    const char *line = memchr(at, '\n', end - at);
    if (!line) { link->newlines = 0; return; }
    if (line > at) link->newlines = 0;
    if (++link->newlines == 2) { link->events++; link->newlines = 0; }
    at = line;
  }
}

static const char *value_of(const char *head, const char *name) {
  const char *found = strcasestr(head, name);
  return found ? found + strlen(name) : NULL;
}

/* Takes the head, which may come in parts; how many bytes were its. -1: not HTTP. */
static ssize_t read_head(struct link *link, const char *data, size_t size) {
  size_t old = link->have, room = HEAD_MAX - 1 - old, taken = size < room ? size : room;
  memcpy(link->head + old, data, taken);
  link->have += taken;
  link->head[link->have] = 0;
  char *end = memmem(link->head, link->have, "\r\n\r\n", 4);
  if (!end) return taken < size ? -1 : (ssize_t)taken;
  *end = 0;
  if (strncmp(link->head, "HTTP/1.1 ", 9)) return -1;
  link->status = atoi(link->head + 9);
  link->keeps = !strcasestr(link->head, "\nconnection: close");
  const char *length = value_of(link->head, "\ncontent-length:");
  link->left = length ? strtoul(length, NULL, 10) : 0;
  link->state = length ? LENGTH : strcasestr(link->head, "\ntransfer-encoding: chunked") ? SIZE : TO_CLOSE;
  return end + 4 - link->head - old;
}

/* One byte of chunked framing. */
static void framing(struct link *link, char byte) {
  if (link->state == SIZE) {
    if (byte == '\n') link->state = link->left ? CHUNK : TRAILER;
    else if (byte >= '0' && byte <= '9') link->left = 16 * link->left + byte - '0';
    else if ((byte | 32) >= 'a' && (byte | 32) <= 'f') link->left = 16 * link->left + (byte | 32) - 'a' + 10;
  } else if (byte == '\n') {
    if (link->state == TRAILER) finish(link);
    else link->state = SIZE;
  }
}

/* What comes after the end of an answer is nobody's: no request is sent before it was read. */
static void hear(struct link *link, const char *data, size_t size) {
  while (size && link->state >= HEAD) {
    size_t used = 1;
    if (link->state == HEAD) {
      ssize_t taken = read_head(link, data, size);
      if (taken < 0) { hang_up(link, 1); return; }
      used = taken;
      if (link->state == LENGTH && !link->left) { finish(link); return; }
    } else if (link->state == LENGTH || link->state == CHUNK) {
      used = size < link->left ? size : link->left;
      body(link, data, used);
      link->left -= used;
      if (!link->left && link->state == LENGTH) { finish(link); return; }
      if (!link->left) link->state = CHUNK_END;
    } else if (link->state == TO_CLOSE) {
      used = size;
      body(link, data, used);
    } else {
      int last = link->state == TRAILER && *data == '\n';
      framing(link, *data);
      if (last) return;
    }
    data += used;
    size -= used;
  }
}

static void happened(struct link *link) {
  static char buffer[262144];
  if (link->state == CLOSED) return;
  if (link->state == CONNECTING) { connected(link); return; }
  ssize_t got = recv(link->fd, buffer, sizeof buffer, 0);
  if (got > 0) hear(link, buffer, got);
  else if (got < 0 && errno == EAGAIN) return;
  else if (!got && link->state == TO_CLOSE) { link->keeps = 0; finish(link); }
  else hang_up(link, link->state != IDLE);
}

/* -- the run ----------------------------------------------------------------------------------- */

static int under_way(const struct link *links, int opened) {
  int count = 0;
  for (int i = 0; i < opened; i++) count += links[i].state == CONNECTING || links[i].state >= HEAD;
  return count;
}

static void run(void) {
  struct link *links = calloc(want.connections, sizeof *links);
  struct epoll_event events[512];
  int opened = 0;
  long within = -1;
  double time, ran = 0;
  started = now();
  while (errors < ENOUGH) {
    time = now();
    int allowed = want.rate ? (int)((time - started) * want.rate) + 1 : want.connections;
    for (; opened < allowed && opened < want.connections && !is_over(); opened++) {
      links[opened].head = malloc(HEAD_MAX);
      connect_to(&links[opened]);
    }
    if (within < 0 && is_over()) { within = answered; ran = now() - started; }
    if (within >= 0 && (!under_way(links, opened) || now() - started > ran + PATIENCE)) break;
    int ready = epoll_wait(poller, events, 512, opened < want.connections ? 1 : 20);
    for (int i = 0; i < ready; i++) happened(events[i].data.ptr);
  }
  double elapsed = now() - started;
  errors += under_way(links, opened);
  if (want.requests || within < want.connections) { within = answered; ran = elapsed; }
  qsort(ends.all, ends.count, sizeof(double), by_value);
  qsort(firsts.all, firsts.count, sizeof(double), by_value);
  printf("{\"rate\":%.2f,\"requests\":%ld,\"errors\":%ld,\"refused\":%ld,\"short\":%ld,\"open\":%ld,"
    "\"seconds\":%.4f,\"elapsed\":%.4f,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f,\"first50\":%.1f,\"first99\":%.1f,\"events\":%.2f}\n",
    ran > 0 ? within / ran : 0, answered, errors, refused, shorts, open_most, ran, elapsed,
    percentile(&ends, .5), percentile(&ends, .9), percentile(&ends, .99), percentile(&ends, 1),
    percentile(&firsts, .5), percentile(&firsts, .99), answered ? (double)events_all / answered : 0);
}

static void compose(const char *path, const char *headers, const char *file) {
  char *text = calloc(1, 1 << 20);
  FILE *source = fopen(file, "r");
  if (!source) { perror(file); exit(2); }
  size_t size = fread(text, 1, (1 << 20) - 1, source);
  fclose(source);
  while (size && text[size - 1] == '\n') text[--size] = 0;
  question_size = asprintf(&question,
    "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nAccept: */*\r\n"
    "User-Agent: load\r\n%sContent-Length: %zu\r\n\r\n%s", path, want.port, headers, size, text);
  free(text);
}

int main(int count, char **words) {
  const char *path = "/v1/chat/completions", *file = NULL;
  char headers[8192] = "";
  int option;
  while ((option = getopt(count, words, "p:c:d:n:r:e:P:f:H:")) > 0) switch (option) {
    case 'p': want.port = atoi(optarg); break;
    case 'c': want.connections = atoi(optarg); break;
    case 'd': want.seconds = atof(optarg); break;
    case 'n': want.requests = atol(optarg); break;
    case 'r': want.rate = atof(optarg); break;
    case 'e': want.events = atol(optarg); break;
    case 'P': path = optarg; break;
    case 'f': file = optarg; break;
    case 'H':
      if (strlen(headers) + strlen(optarg) + 3 > sizeof headers) return 2;
      strcat(strcat(headers, optarg), "\r\n");
      break;
    default: return 2;
  }
  if (!want.port || !file) { fprintf(stderr, "load: -p PORT and -f BODY are needed\n"); return 2; }
  signal(SIGPIPE, SIG_IGN);
  compose(path, headers, file);
  poller = epoll_create1(0);
  run();
  return 0;
}
