/* A store of numbers with a mirror, and its client.
 *
 *   mirror main MIRROR    the store; sends each number on to the mirror before it acknowledges it
 *   mirror copy           the mirror
 *   mirror put MAIN       puts numbers into the store, one after the other
 *   mirror check COPY     reads all numbers from the mirror, and compares them
 *
 * Requests are lines: "put KEY NUMBER" is answered with "ok", and "get KEY" with the number.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT = 7000, KEYS = 256, CLIENTS = 16, BUFFER = 48 };

/* A connection, with the bytes of a request that is not complete. */
struct client {
    int fd;
    int length;
    char buffer[BUFFER + 1];
};

long numbers[KEYS];
static struct client clients[CLIENTS];
static const char *mirror_address;
static int mirror_fd = -1;

static int connect_to(const char *address) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    inet_pton(AF_INET, address, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    while (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        usleep(50000);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

static void send_all(int fd, const char *text) {
    for (int sent, left = strlen(text); left > 0; left -= sent, text += sent)
        if ((sent = write(fd, text, left)) <= 0)
            exit(1);
}

static void store_number(int key, long number) {
    numbers[key % KEYS] = number;
}

static void serve_line(struct client *client, const char *line) {
    int key;
    long number;
    char answer[32] = "ok\n";
    if (sscanf(line, "put %d %ld", &key, &number) == 2) {
        store_number(key, number);
        if (mirror_address) {
            char copy[64];
            snprintf(copy, sizeof copy, "%s\n", line);
            send_all(mirror_fd, copy);
        }
    } else if (sscanf(line, "get %d", &key) == 1) {
        snprintf(answer, sizeof answer, "%ld\n", numbers[key % KEYS]);
    }
    if (mirror_address || line[0] != 'p')
        send_all(client->fd, answer);
}

/* Serves the complete lines of a connection, and keeps the rest for later. */
static void serve_lines(struct client *client) {
    char *line = client->buffer, *end;
    while ((end = memchr(line, '\n', client->buffer + client->length - line))) {
        *end = 0;
        serve_line(client, line);
        line = end + 1;
    }
    int rest = client->buffer + client->length - line;
    if (client->length == BUFFER) {
        /* The line fills the buffer, so no more of it can be read. */
        line[rest] = 0;
        serve_line(client, line);
        rest = 0;
    }
    memmove(client->buffer, line, rest);
    client->length = rest;
}

static void serve(void) {
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bind(listener, (struct sockaddr *)&here, sizeof here);
    listen(listener, CLIENTS);
    for (int n = 0; n < CLIENTS; n++)
        clients[n].fd = -1;
    if (mirror_address)
        mirror_fd = connect_to(mirror_address);
    for (;;) {
        struct pollfd polled[CLIENTS + 1] = { { .fd = listener, .events = POLLIN } };
        for (int n = 0; n < CLIENTS; n++)
            polled[n + 1] = (struct pollfd){ .fd = clients[n].fd, .events = POLLIN };
        poll(polled, CLIENTS + 1, -1);
        for (int n = 0; n < CLIENTS; n++) {
            struct client *client = &clients[n];
            if (client->fd < 0 || !polled[n + 1].revents)
                continue;
            int got = read(client->fd, client->buffer + client->length, BUFFER - client->length);
            if (got <= 0) {
                close(client->fd);
                client->fd = -1;
                continue;
            }
            client->length += got;
            serve_lines(client);
        }
        if (polled[0].revents) {
            int n = 0;
            while (n < CLIENTS - 1 && clients[n].fd >= 0)
                n++;
            clients[n] = (struct client){ .fd = accept(listener, NULL, NULL) };
        }
    }
}

static long number_of(int key) {
    return 1000000 + 7919L * key;
}

static int ask(int fd, char *answer, const char *request) {
    int length = 0;
    send_all(fd, request);
    while (length == 0 || answer[length - 1] != '\n') {
        int got = read(fd, answer + length, 31 - length);
        if (got <= 0)
            return 0;
        length += got;
    }
    answer[length] = 0;
    return 1;
}

static void put(const char *address) {
    char request[64], answer[32];
    int fd = connect_to(address);
    for (int key = 0;; key = (key + 1) % KEYS) {
        /* Four requests follow one another without a wait. */
        for (int more = 0; more < 4; more++) {
            snprintf(request, sizeof request, "put %d %ld\n", (key + more) % KEYS, number_of((key + more) % KEYS));
            send_all(fd, request);
        }
        for (int lines = 0; lines < 4;) {
            int got = read(fd, answer, sizeof answer);
            if (got <= 0)
                return;
            for (int n = 0; n < got; n++)
                lines += answer[n] == '\n';
        }
        key += 3;
        usleep(2000);
    }
}

static int check(const char *address) {
    char request[64], answer[32];
    int fd = connect_to(address), wrong = 0;
    for (int key = 0; key < KEYS; key++) {
        snprintf(request, sizeof request, "get %d\n", key);
        if (!ask(fd, answer, request))
            return 2;
        long number = atol(answer);
        if (number != 0 && number != number_of(key)) {
            printf("the mirror has %ld for key %d, but it was %ld\n", number, key, number_of(key));
            wrong = 1;
        }
    }
    return wrong;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(what, "put"))
        put(arguments[2]);
    else if (!strcmp(what, "check"))
        return check(arguments[2]);
    else {
        mirror_address = !strcmp(what, "main") ? arguments[2] : NULL;
        serve();
    }
    return 0;
}
