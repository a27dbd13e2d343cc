/* A client of a Redis that writes its history, in C: client ADDRESS
 *
 *   cc -static -O2 -o client client.c
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int history = 1;
static long process, value;
static uint64_t state;

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? (long)strtoul(text, NULL, 10) : otherwise;
}

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* One line, in one write. It returns when the host has the line. */
static void tell(const char *type, const char *f, const char *key, const char *value_text)
{
    char line[256];
    int length = snprintf(line, sizeof line, "{\"process\":%ld,\"type\":\"%s\",\"f\":\"%s\",\"key\":\"%s\",\"value\":%s}\n",
                          process, type, f, key, value_text);
    for (int done = 0; done < length;) {
        ssize_t written = write(history, line + done, length - done);
        if (written < 0)
            exit(1);
        done += written;
    }
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(6379), .sin_addr.s_addr = inet_addr(address)};
    struct timeval to_send = {.tv_usec = 200000}, to_answer = {.tv_sec = 1};
    int redis = socket(AF_INET, SOCK_STREAM, 0);
    /* This is the limit of connecting, too. */
    setsockopt(redis, SOL_SOCKET, SO_SNDTIMEO, &to_send, sizeof to_send);
    setsockopt(redis, SOL_SOCKET, SO_RCVTIMEO, &to_answer, sizeof to_answer);
    if (connect(redis, (struct sockaddr *)&to, sizeof to) == 0)
        return redis;
    close(redis);
    return -1;
}

/* The answer's lines in `answer`; false if nobody knows what became of the request. */
static int ask(int redis, const char *request, char *answer, size_t size)
{
    size_t length = 0;
    if (send(redis, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return 0;
    for (;;) {
        ssize_t got = recv(redis, answer + length, size - 1 - length, 0);
        if (got <= 0)
            return 0;
        answer[length += got] = 0;
        /* "$3\r\n123\r\n" has two lines, everything else that is asked for here one. */
        char *end = strstr(answer, "\r\n");
        if (end && answer[0] == '$' && answer[1] != '-')
            end = strstr(end + 2, "\r\n");
        if (end)
            return answer[0] != '-';
    }
}

int main(int argc, char **argv)
{
    char request[256], answer[256], text[64], seen[32] = "null";
    int redis = -1;
    long round = number("EVERETT_ROUND", 0);
    /* Outside of Everett the history goes to standard output. */
    history = number("EVERETT_HISTORY", 1);
    /* No other client of this node has these numbers, and none of them comes back in a later round. */
    process = 2000 + round * 100000;
    value = process * 1000000;
    state = number("EVERETT_SEED", 1) ^ (uint64_t)round << 32;
    if (argc != 2)
        return 2;
    for (;;) {
        /* Who has no connection has not asked for anything. */
        if (redis < 0 && (redis = connect_to(argv[1])) < 0) {
            usleep(20000);
            continue;
        }
        const char *key = draw(2) ? "x" : "y", *f = draw(2) ? "read" : "write";
        int reads = strcmp(f, "read") == 0;
        if (reads) {
            strcpy(text, "null");
            snprintf(request, sizeof request, "GET %s\r\n", key);
        } else {
            snprintf(text, sizeof text, "%ld", ++value);
            snprintf(request, sizeof request, "SET %s %s\r\n", key, text);
        }
        tell("invoke", f, key, text);
        if (ask(redis, request, answer, sizeof answer)) {
            if (reads && answer[1] == '-')
                strcpy(seen, "null");
            else if (reads)
                sscanf(strstr(answer, "\r\n") + 2, "%31[0-9]", seen);
            tell("ok", f, key, reads ? seen : text);
        } else {
            /* It may have happened, or may yet. Whoever does not know takes a new number. */
            tell("info", f, key, "null");
            process++;
            close(redis);
            redis = -1;
        }
        usleep(draw(10000));
    }
}
